"""The engine as a generator: flows that begin, pause and end on their own (protocol/README.md, "Generator").

Requests are plain data, as the protocol has them; replies become frozen types. It knows nothing of what a frame means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Protocol, TypeVar

from pydantic import ConfigDict, ValidationError, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import EngineError
from nicbench.core.trial import Health
from nicbench.engine.client import REPLY_TIMEOUT_S
from nicbench.engine.reading import parse_health

LOAD_WITHIN_S = 60.0
"""Thousands of flows with long lists of values take their time on a slow machine."""

CAPTURE_WITHIN_S = 120.0
"""The reply to the end of a capture follows when its file is complete."""


class FlowState(StrEnum):
    """How far a flow is."""

    STOPPED = "stopped"
    STARTED = "started"
    PAUSED = "paused"


class Action(StrEnum):
    """What may happen to flows."""

    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"


class _Told(Frozen):
    """Part of a reply. A newer engine may tell more: that is left out."""

    model_config = ConfigDict(extra="ignore")


class FlowLatency(_Told):
    """The latency of a flow's frames at all its ports."""

    count: int
    minimum_ns: int
    mean_ns: float
    maximum_ns: int
    histogram: str | None = None
    """HdrHistogram V2 in base64; None where it was not asked for."""


class FlowAtPort(_Told):
    """What one port received of a flow; bytes with FCS, times as UNIX time."""

    port: int
    received: int
    received_bytes: int
    first_received_ns: int | None
    last_received_ns: int | None


class FlowTagged(_Told):
    """Received frames of a flow with the same ``values`` in its tags, in hexadecimal; bytes with FCS.

    Without values they are all frames that came when 4096 values were known.
    """

    values: tuple[str, ...] | None
    frames: int
    bytes: int
    first_ns: int
    """UNIX time, as that of the last."""
    last_ns: int


class FlowTally(_Told):
    """The counts of a flow since it was started; bytes with FCS, times as UNIX time. None means unknown."""

    flow: int
    state: FlowState
    intended: int | None
    """Frames in all; None where the flow goes on until it is stopped."""
    sent: int
    sent_bytes: int
    unsent_tester: int
    unsent_backpressure: int
    late_maximum_ns: int
    """The longest time from when a frame was due until the port took it."""
    received: int | None
    received_bytes: int | None
    lost: int | None
    """While the flow transmits, only frames that others overtook."""
    in_flight: int | None
    duplicated: int | None
    reordered: int | None
    corrupted: int | None
    misdirected: int | None
    """Frames that came in by a port outside of the flow."""
    latency: FlowLatency | None
    first_sent_ns: int | None
    last_sent_ns: int | None
    first_received_ns: int | None
    last_received_ns: int | None
    by_port: tuple[FlowAtPort, ...]
    tagged: tuple[FlowTagged, ...] = ()
    """What was received by the values of its tags."""


class FlowColumns(_Told):
    """The counts of many flows, as tuples with one value for each of them; meanings as in FlowTally.

    So few objects are kept that a tally of thousands of flows costs milliseconds.
    """

    flow: tuple[int, ...]
    state: tuple[FlowState, ...]
    intended: tuple[int | None, ...]
    sent: tuple[int, ...]
    sent_bytes: tuple[int, ...]
    unsent_tester: tuple[int, ...]
    unsent_backpressure: tuple[int, ...]
    late_maximum_ns: tuple[int, ...]
    received: tuple[int | None, ...]
    received_bytes: tuple[int | None, ...]
    lost: tuple[int | None, ...]
    duplicated: tuple[int | None, ...]
    reordered: tuple[int | None, ...]
    corrupted: tuple[int | None, ...]
    latency_count: tuple[int | None, ...]
    latency_minimum_ns: tuple[int | None, ...]
    latency_mean_ns: tuple[float | None, ...]
    latency_maximum_ns: tuple[int | None, ...]
    first_sent_ns: tuple[int | None, ...]
    last_sent_ns: tuple[int | None, ...]
    first_received_ns: tuple[int | None, ...]
    last_received_ns: tuple[int | None, ...]

    @model_validator(mode="after")
    def _have_one_length(self) -> FlowColumns:
        if any(len(column) != len(self.flow) for _, column in self):
            raise ValueError("columns of flows differ in their length")
        return self

    def is_any_about_to_end(self) -> bool:
        """Whether a flow transmits that ends by itself."""
        pairs = zip(self.state, self.intended, strict=True)
        return any(state is FlowState.STARTED and intended is not None for state, intended in pairs)

    def tallies(self) -> tuple[FlowTally, ...]:
        """Returns the same flow by flow, without what each port received."""
        names = list(type(self).model_fields)
        return tuple(
            map(_tally_of, (dict(zip(names, row, strict=True)) for row in zip(*dict(self).values(), strict=True)))
        )


def _tally_of(row: dict[str, Any]) -> FlowTally:
    latency = {name: row.pop(f"latency_{name}") for name in ("count", "minimum_ns", "mean_ns", "maximum_ns")}
    known = None if latency["count"] is None else FlowLatency(**latency)
    return FlowTally(**row, latency=known, in_flight=None, misdirected=None, by_port=())


class PortCounts(_Told):
    """The counts of a port since the flows were loaded; bytes with FCS."""

    name: str
    sent: int
    sent_bytes: int
    received: int
    received_bytes: int
    foreign: int
    """Frames of no flow."""
    stale: int
    """Frames that a flow sent before it was started anew, or before the flows were loaded."""
    link_up: bool | None
    counters: dict[str, int]
    """All other counters, since the port was configured."""


class Tally(_Told):
    """The counts of flows and ports at one moment, by the monotonic clock of the engine's host."""

    at_ns: int
    flows: tuple[FlowTally, ...]
    ports: tuple[PortCounts, ...]
    health: Health | None
    """How the engine's loop fared since a flow was started while none transmitted; None before that."""


class ColumnTally(_Told):
    """The counts of flows, by columns, and of ports at one moment."""

    at_ns: int
    columns: FlowColumns
    ports: tuple[PortCounts, ...]
    health: Health | None

    def whole(self) -> Tally:
        """Returns the same flow by flow."""
        return Tally(at_ns=self.at_ns, flows=self.columns.tallies(), ports=self.ports, health=self.health)


class CapturedFile(_Told):
    """The file of one port's capture."""

    port: int
    path: str
    frames: int
    bytes: int
    dropped: int
    """Frames that passed the filters and are not in the file."""
    error: str | None


class NeighbourState(StrEnum):
    """How far a neighbour of a host is known (RFC 4861 section 7.3.2)."""

    INCOMPLETE = "incomplete"
    REACHABLE = "reachable"
    STALE = "stale"
    PROBE = "probe"
    FAILED = "failed"


class Neighbour(_Told):
    """An entry of a host's table."""

    host: int
    address: IPv4Address | IPv6Address
    mac: str | None
    """None where it has not answered."""
    state: NeighbourState


class Duplicate(_Told):
    """An address of a host that somebody else claims."""

    host: int
    address: IPv4Address | IPv6Address
    mac: str
    claims: int
    is_given_up: bool
    """Whether the other had it first: the host does not use it."""


class PingState(StrEnum):
    """What became of an echo request."""

    WAITING = "waiting"
    ANSWERED = "answered"
    FAILED = "failed"


class HostCounts(_Told):
    """What the hosts of one port did since the engine was started."""

    received: int
    sent: int
    arp_answered: int
    nd_answered: int
    echo_answered: int
    asked: int
    dropped: int
    """Frames beyond what is looked at and sent in a second."""
    malformed: int
    unasked: int
    contradicted: int
    """Claims of another MAC address for a neighbour that is known."""
    looped: int


class Neighbours(_Told):
    """What hosts know of others, who else has their addresses, what became of their pings, and counts by port."""

    neighbours: tuple[Neighbour, ...]
    duplicates: tuple[Duplicate, ...]
    tentative: int
    """Addresses of which it is not known yet whether somebody else has them."""
    pings: tuple[PingState, ...]
    counts: tuple[HostCounts, ...]


class _Hosted(_Told):
    hosts: int


class _Pinged(_Told):
    pings: int


class Controlled(_Told):
    """When flows changed their state, by the monotonic clock of the engine's host, and how many did."""

    at_ns: int
    changed: int


class _Captures(_Told):
    captures: tuple[CapturedFile, ...]


class _Loaded(_Told):
    loaded: int


Reply = TypeVar("Reply", bound=_Told)


def parse_tally(reply: Mapping[str, Any]) -> Tally:
    """Returns the reply to ``tally`` as a frozen type; EngineError if it is malformed."""
    return _parse(Tally, _with_health(reply))


def _with_health(reply: Mapping[str, Any]) -> dict[str, Any]:
    try:
        health = reply.get("health")
        return {**reply, "health": parse_health(health) if health else None}
    except (TypeError, AttributeError) as error:
        raise _inconsistent(error) from error


def _parse(kind: type[Reply], reply: Mapping[str, Any]) -> Reply:
    try:
        return kind.model_validate(reply)
    except ValidationError as error:
        raise _inconsistent(error) from error


def _inconsistent(error: Exception) -> EngineError:
    why = " ".join(str(error).split())[:200]
    step = "build engine and controller from the same source: `make install`"
    return EngineError(f"the engine's reply is none of a generator: {why}", kind="protocol", next_step=step)


class Asks(Protocol):
    """Whatever talks with the engine."""

    async def request(self, command: str, *, within_s: float = REPLY_TIMEOUT_S, **fields: Any) -> dict[str, Any]:
        """Sends a request and returns its reply. EngineError where it is refused."""


class Generator:
    """One engine that generates. Its ports are configured, and it has made no trials.

    Every method raises EngineError where the engine refuses: nothing has changed then.
    """

    def __init__(self, asks: Asks) -> None:
        self._asks = asks

    async def load(self, flows: Sequence[Mapping[str, Any]]) -> int:
        """Replaces all flows, while none transmits; returns how many there are. A flow's number is its place."""
        reply = await self._asks.request("load", within_s=LOAD_WITHIN_S, flows=list(flows))
        return _parse(_Loaded, reply).loaded

    async def control(self, action: Action, flows: Sequence[int] | None = None) -> Controlled:
        """Starts, stops, pauses or resumes these flows, or all, while others go on."""
        named = None if flows is None else list(flows)
        return _parse(Controlled, await self._asks.request("control", action=action, flows=named))

    async def tally(self, flows: Sequence[int] | None = None, *, histograms: bool = False) -> Tally:
        """Counts these flows, or all, and every port."""
        named = None if flows is None else list(flows)
        return parse_tally(await self._asks.request("tally", flows=named, histograms=histograms))

    async def tally_columns(self) -> ColumnTally:
        """Counts all flows, by columns, and every port."""
        return _parse(ColumnTally, _with_health(await self._asks.request("tally", columns=True)))

    async def start_capture(self, ports: Sequence[int], path_prefix: str, **options: Any) -> tuple[CapturedFile, ...]:
        """Begins to keep what these ports receive, in files on the engine's host; ``options`` as the protocol has."""
        reply = await self._asks.request(
            "capture", action="start", ports=list(ports), path_prefix=path_prefix, **options
        )
        return _parse(_Captures, reply).captures

    async def stop_capture(self, ports: Sequence[int]) -> tuple[CapturedFile, ...]:
        """Ends captures, and waits until their files are complete."""
        reply = await self._asks.request("capture", within_s=CAPTURE_WITHIN_S, action="stop", ports=list(ports))
        return _parse(_Captures, reply).captures

    async def set_hosts(self, hosts: Sequence[Mapping[str, Any]]) -> int:
        """Replaces all hosts while flows go on, and returns their number. A host's number is its place."""
        return _parse(_Hosted, await self._asks.request("hosts", hosts=list(hosts))).hosts

    async def neighbours(self, *, ask_again: bool = False) -> Neighbours:
        """Returns the hosts' tables. ``ask_again``: gateways that did not answer are asked again."""
        return _parse(Neighbours, await self._asks.request("neighbours", ask_again=ask_again))

    async def ping(self, pings: Sequence[Mapping[str, Any]]) -> int:
        """Has hosts send echo requests, in the place of earlier ones, and returns their number."""
        return _parse(_Pinged, await self._asks.request("ping", pings=list(pings))).pings
