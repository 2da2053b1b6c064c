"""What watches a round while its clients send: the connections of the senders, and a link that fails on purpose."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from nicbench.core.bond import Bond, BondObservation, Connection, FlowSilence, LinkFailure, LinkFailureOutcome
from nicbench.core.errors import NicbenchError
from nicbench.core.lists import grouped
from nicbench.core.round import Job, RoundRequest, SenderLook, SenderTrace
from nicbench.hosts.base import Host
from nicbench.measure.host_readings import Socket, parse_sockets
from nicbench.stats.bonds import UnpredictableError, arithmetics, port_of
from nicbench.stats.links import Look, silence_of, step_s
from nicbench.testbed.labs.base import BondMember, Endpoint
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.network import SetLinkUp
from nicbench.workloads.base import End, Watch
from nicbench.workloads.processes import Running

# Looks at the connections of a host, ten times a second, while a round runs; the clock is the host's own.
#
# Only rounds that ask for them have such looks: each costs the host a process.


_STEP_S: Final = 0.1
_MARK: Final = "=== at "
# Without `o` ss leaves out the flags of a connection, of which `ecn` is one.
_LOOK: Final = "while :; do read up _ < /proc/uptime; echo '=== at '$up; ss -tinoH; sleep {step}; done"
_MOST_BYTES: Final = 64 * 1024 * 1024
_UPTIME: Final = ("cat", "/proc/uptime")


async def start_looking(network: Host) -> Running:
    """Starts a process that prints the connections of ``network`` until it is stopped. HostError where it cannot."""
    return await Running.start(network, ("sh", "-c", _LOOK.format(step=_STEP_S)), {}, _MOST_BYTES)


def split_looks(text: str) -> Iterator[tuple[float, list[Socket]]]:
    """Yields the time of each look (``/proc/uptime``) and its connections; the last look may be cut off, and is not."""
    for part in text.split(_MARK)[1:-1]:
        first, _, rest = part.partition("\n")
        with contextlib.suppress(ValueError):
            yield float(first), parse_sockets(rest)


async def uptime_s(host: Host) -> float:
    """Returns the seconds since the host was started (``/proc/uptime``). HostError where it does not answer."""
    return seconds_of((await host.run(_UPTIME)).stdout)


def seconds_of(uptime: str) -> float:
    """Returns the first number of ``/proc/uptime``, in seconds."""
    return float(uptime.split()[0])


# Looks at the connections of the clients of a round while they send: what each sender makes of marks and losses.


@dataclass
class SenderWatch:
    """Looks at the hosts of all clients around what another watch looks at. A host that cannot be has no traces."""

    watch: Watch
    request: RoundRequest
    ends: Mapping[str, End]
    _looking: dict[str, Running] = field(default_factory=dict)
    _zero_s: dict[str, float] = field(default_factory=dict)

    async def begin(self) -> None:
        """Begins to look, and takes the time of each host at which its clients begin."""
        hosts = {end.host.name: end.host.network for end in (self.ends[job.client] for job in self.request.jobs)}
        for name, host in hosts.items():
            with contextlib.suppress(NicbenchError):
                self._looking[name] = await start_looking(host)
        await self.watch.begin()
        for name, host in hosts.items():
            with contextlib.suppress(NicbenchError):
                self._zero_s[name] = await uptime_s(host)

    async def end(self) -> None:
        """Every client has ended."""
        await self.close()
        await self.watch.end()

    async def close(self) -> None:
        """Whatever happened: nobody looks any more."""
        for running in self._looking.values():
            with contextlib.suppress(NicbenchError):
                await running.stop()

    def traces(self) -> tuple[SenderTrace, ...]:
        """Returns the connection of each job that was seen, in the order of the jobs."""
        looks = {
            name: list(split_looks(running.output.stdout))
            for name, running in self._looking.items()
            if name in self._zero_s
        }
        found = []
        for number, job in enumerate(self.request.jobs, 1):
            name = self.ends[job.client].host.name
            if name in looks:
                trace = trace_of(number, job, looks[name], self._zero_s[name])
                found += [] if trace is None else [trace]
        return tuple(found)


def trace_of(number: int, job: Job, looks: Iterable[tuple[float, list[Socket]]], zero_s: float) -> SenderTrace | None:
    """Picks, of the connections to the job's port, the one that moved the most: tools have one for control beside it.

    ``zero_s`` is the time of the looks' clock at which clients began. None where no connection was seen.
    """
    seen = grouped(
        (one.key, (at_s - zero_s, one))
        for at_s, sockets in looks
        for one in sockets
        if one.peer_port == job.port and one.sender is not None
    )
    if not seen:
        return None
    rows = max(seen.values(), key=lambda rows: max(one.sender.acked_bytes for _, one in rows if one.sender))
    counts = [(at_s, one.sender) for at_s, one in rows if one.sender is not None]
    last = counts[-1][1]
    return SenderTrace(
        job=number,
        congestion_control=last.congestion_control,
        ecn=last.ecn,
        looks=tuple(
            SenderLook(
                at_s=round(at_s, 3),
                acked_bytes=each.acked_bytes,
                delivered=each.delivered,
                delivered_marked=each.delivered_marked,
                resent=each.resent,
                round_trip_ns=each.round_trip_ns,
                window=each.window,
            )
            for at_s, each in counts
        ),
    )


# A link of a bond goes down in the midst of a round and comes back, as a test asks for (``failure``).
#
# Meanwhile the host of the bond looks at the bytes of its connections ten times a second, which it does in no other
# round. The clock is that host's own (``/proc/uptime``). The link is up again whatever happens: its undo is written
# down before.


# By one shell each, so that the time is that of the deed and not of a slow host's answer.
_DOWN: Final = 'ip link set dev "$1" down && cat /proc/uptime'
_UP: Final = 'cat /proc/uptime && ip link set dev "$1" up'


@dataclass
class FailureWatch:
    """Takes the link down and brings it back around what another watch looks at."""

    watch: Watch
    failure: LinkFailure
    endpoint: Endpoint
    member: BondMember
    changes: Changes
    _zero_s: float = 0.0
    _ended_s: float | None = None
    _down_s: float | None = None
    _up_s: float | None = None
    _trouble: str | None = None
    _looking: Running | None = None
    _acting: asyncio.Task[None] | None = None
    _looks: list[Look] = field(default_factory=list)

    async def begin(self) -> None:
        """Begins to look at connections, and starts the clock after which the link goes down."""
        network = self.endpoint.host.network
        try:
            self._looking = await start_looking(network)
        except NicbenchError as error:
            self._trouble = f"its connections could not be looked at: {error.message}"
        await self.watch.begin()
        self._zero_s = await uptime_s(network)
        self._acting = asyncio.create_task(self._act())

    async def end(self) -> None:
        """Every client has ended; the link comes back now if it has not."""
        if self._ended_s is None:
            self._ended_s = await uptime_s(self.endpoint.host.network)
        await self._stop()
        await self.watch.end()

    async def close(self) -> None:
        """Whatever happened: the link is up, and nobody looks any more."""
        with contextlib.suppress(NicbenchError):
            await self._stop()

    def outcome_of(self, bonds: tuple[BondObservation, ...]) -> LinkFailureOutcome:
        """What came of it; ``bonds`` are those of the round, whose flows are the connections of its jobs."""
        looks = [Look(look.at_s - self._zero_s, look.moved) for look in self._looks]
        far = self.member.far_host
        down_s, until_s = self._seconds_since(self._down_s), self._seconds_since(self._ended_s)
        return LinkFailureOutcome(
            asked=self.failure,
            link=self.member.device,
            taken_down=self.member.device if far is None else f"{self.member.far_device} of {far.name}",
            down_at_s=down_s,
            up_at_s=self._seconds_since(self._up_s),
            step_s=None if down_s is None else _round_to_ms(step_s(looks, down_s, until_s or float("inf"))),
            flows=() if self._down_s is None else tuple(self._flows(looks, bonds)),
            trouble=self._trouble,
        )

    def _flows(self, looks: list[Look], bonds: tuple[BondObservation, ...]) -> list[FlowSilence]:
        own = [seen for seen in bonds if self.endpoint.name in seen.endpoint.split(", ")]
        down_s, up_s, until_s = (
            self._seconds_since(self._down_s) or 0.0,
            self._seconds_since(self._up_s),
            self._seconds_since(self._ended_s),
        )
        found = []
        for flow in (flow for seen in own for flow in seen.flows):
            one = flow.connection
            key = (one.source, one.source_port, one.destination, one.destination_port)
            last_s = looks[-1].at_s if looks else 0.0
            silence = silence_of(looks, key, down_s, up_s, last_s if until_s is None else until_s)
            if silence is not None:
                found.append(
                    FlowSilence(
                        jobs=flow.jobs,
                        connection=one,
                        **ports_of(one, bonds, self._link_ends()),
                        silent_down_s=_round_to_ms(silence.down_s),
                        silent_back_s=_round_to_ms(silence.back_s),
                        went_on=silence.went_on,
                    )
                )
        return found

    def _link_ends(self) -> frozenset[str]:
        """The interfaces at both ends of the link."""
        return frozenset({self.member.device, self.member.far_device or self.member.device})

    async def _act(self) -> None:
        host = self.member.far_host or self.endpoint.host.network
        device = self.member.far_device if self.member.far_host is not None else self.member.device

        async def take_down() -> None:
            self._down_s = seconds_of((await host.run(("sh", "-c", _DOWN, "down", str(device)))).stdout)

        try:
            await asyncio.sleep(self.failure.after)
            await self.changes.make(host, SetLinkUp(device=str(device)), take_down)
            await asyncio.sleep(self.failure.lasts)
            self._up_s = seconds_of((await host.run(("sh", "-c", _UP, "up", str(device)))).stdout)
        except NicbenchError as error:
            self._trouble = f"{device} could not be taken down and brought back: {error.message}"

    async def _stop(self) -> None:
        acting, self._acting = self._acting, None
        if acting is not None:
            acting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await acting
            if self._down_s is not None and self._up_s is None:
                await self._bring_up()
        looking, self._looking = self._looking, None
        if looking is not None:
            await looking.stop()
            self._looks = parse_looks(looking.output.stdout)

    async def _bring_up(self) -> None:
        """Brings the link up where the round was over before its time had come."""
        host = self.member.far_host or self.endpoint.host.network
        device = self.member.far_device if self.member.far_host is not None else self.member.device
        await host.run(("ip", "link", "set", "dev", str(device), "up"))

    def _seconds_since(self, at_s: float | None) -> float | None:
        return None if at_s is None else _round_to_ms(at_s - self._zero_s)


def ports_of(connection: Connection, bonds: tuple[BondObservation, ...], lost: frozenset[str]) -> dict[str, str | None]:
    """The port by which the connection's bytes leave the bond that sends them, and without the one that is lost.

    Of each connection, as one end sees it, bonds may know the other end's view: the sender's counts.
    """
    ends = {(connection.source, connection.source_port), (connection.destination, connection.destination_port)}
    for seen in bonds:
        for flow in seen.flows:
            one = flow.connection
            is_it = {(one.source, one.source_port), (one.destination, one.destination_port)} == ends
            if is_it and flow.port is not None and (one.sent_bytes or 0) > (one.received_bytes or 0):
                return {"port_before": flow.port, "port_down": _predict_without(seen.bond, one, lost)}
    return {}


def _predict_without(bond: Bond, connection: Connection, lost: frozenset[str]) -> str | None:
    """As the driver computes it over the ports that are left."""
    left = tuple(port.replace(usable=False) if port.name in lost else port for port in bond.ports)
    try:
        return port_of(bond.replace(ports=left), connection, arithmetics(bond.kernel)[0])
    except UnpredictableError:
        return None


def parse_looks(text: str) -> list[Look]:
    """What the loop printed; its last look may be cut off, and is left out."""
    return [
        Look(
            at_s,
            {
                one.key: (one.sent_bytes or 0) + (one.received_bytes or 0)
                for one in sockets
                if one.sent_bytes is not None or one.received_bytes is not None
            },
        )
        for at_s, sockets in split_looks(text)
    ]


def _round_to_ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
