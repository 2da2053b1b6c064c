"""What methods of connections share: their options, who is client and who is server, and the jobs of a round."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from nicbench.core.base import Distinct, Frozen, WorkloadChoice
from nicbench.core.connections import Broken, ConnectionsSpec, ConnectionsTarget
from nicbench.core.endpoint import EndpointFacts
from nicbench.core.quantity import Seconds, SomeBytes
from nicbench.core.round import Job, JobSpec, RoundRequest
from nicbench.core.units import format_bytes
from nicbench.methods._round_figures import FIRST_PORT, PORTS_A_JOB, ROUND_OVERHEAD_S, clients_by_port
from nicbench.methods.base import Misfit, Objection, RoundContext

WORKLOAD: Final = WorkloadChoice(kind="nicbench-connections")
_URL: Final = re.compile(r"https?://(\[[0-9A-Fa-f:]+\]|[0-9.]+)(?::(\d{1,5}))?(/[!-~]*)")
_ACCEPTED: Final = '"http://192.0.2.1:8080/index.html"'


def _read_url(value: Any) -> Any:
    found = _URL.fullmatch(value) if isinstance(value, str) else None
    if found is None or not 0 < int(found[2] or 80) < 65_536:
        why = f"`{value}` is no address of a server with a path; a name is not looked up"
        raise PydanticCustomError("quantity", "{why}", {"why": why, "accepted": _ACCEPTED})
    return value


Url = Annotated[str, BeforeValidator(_read_url)]
_Every = Annotated[int, Field(ge=0, le=1_000_000)]


class OwnServer(Frozen):
    """How nicbench's own server answers, where a method is tried on a server of known faults."""

    delay: Seconds = Field(default=0.0, le=60.0)
    """An answer waits so long."""
    delay_every: _Every = 0
    """Only one of so many waits; 0: each."""
    reset_every: _Every = 0
    """One of so many answers is broken by a RST."""
    short_every: _Every = 0
    """One of so many ends early."""
    status_every: _Every = 0
    """One of so many has the status 503."""
    corrupt_every: _Every = 0
    """One of so many has a wrong byte."""


class ConnectionOptions(Frozen):
    """Options that all methods of connections have."""

    server: Literal["own", "nginx"] = "own"
    """What serves: nicbench's own server, or `nginx`, which nicbench configures and starts."""
    target: Url | None = None
    """A server that is there already, as `http://ADDRESS:PORT/PATH`, in place of one that nicbench starts. Its answers
    are taken as they are; the scheme says nothing of TLS, `tls` does.
    """
    through: bool = False
    """From the clients of the first port through the DUT to the first client of the second port, which serves."""
    own_server: OwnServer = OwnServer()
    """How nicbench's own server answers."""
    tls: Distinct[Literal["none", "1.2", "1.3"]] = Field(default=("none",), min_length=1)
    """Without TLS, or with a version of it; every handshake is a whole one (ECDSA, P-256)."""
    connect_within: Seconds = Field(default=0.8, gt=0.0, le=60.0)
    """How long a connection may take, and then its TLS session. The kernel repeats a SYN after 1 s: less makes one that
    was dropped a failure.
    """
    answer_within: Seconds = Field(default=5.0, gt=0.0, le=3600.0)
    """How long an answer may take."""
    ports: int = Field(default=4, ge=1, le=128)
    """TCP ports of the server, over which connections are spread: a client has about 28,000 for each."""
    duration: Seconds = Field(default=10.0, ge=1.0, le=86_400.0)
    """The sustain phase of a trial, which alone is measured. RFC 9411: 300 s or more."""
    ramp: Seconds = Field(default=2.0, ge=0.0, le=3600.0)
    """The ramp before it, in which the rate rises from 0. RFC 9411: 180 s or more."""
    client_threads: int = Field(default=1, ge=1, le=256)
    """Threads of each client."""
    server_threads: int = Field(default=1, ge=1, le=256)
    """Threads of nicbench's own server, or worker processes of nginx."""


class Way(NamedTuple):
    """Who asks whom: the clients, and the endpoint that serves, None for a server that is there already."""

    clients: tuple[EndpointFacts, ...]
    server: str | None


def way_of(context: RoundContext, options: ConnectionOptions) -> Way | None:
    """Returns who asks whom; None where ports or clients are missing."""
    groups = [(port, clients) for port, clients in clients_by_port(context).items() if clients]
    if len(groups) < (2 if options.through else 1):
        return None
    port, clients = groups[0]
    if options.target is not None:
        return Way(clients, None)
    return Way(clients, groups[1][1][0].name if options.through else port)


def objection_to(context: RoundContext, options: ConnectionOptions) -> Objection | None:
    """Returns why there is nobody to ask, or nobody who serves."""
    if way_of(context, options) is not None:
        return None
    return Objection(
        message="there are no clients" if not options.through else "through the DUT it takes clients of two ports",
        next_step="write `lab: {kind: clients, ports: 2}` and `dut: {kind: firewall}`, or add ports and links",
    )


def misfits_of(options: ConnectionOptions, clients: Mapping[str, Sequence[str]]) -> Iterator[Misfit]:
    """Yields options that do not fit each other or the ports."""
    if options.through and sum(bool(names) for names in clients.values()) < 2:
        step = "write `lab: {kind: clients, ports: 2}`, or leave `through` out"
        message = "`through` takes two ports with clients: one asks, the other serves"
        yield Misfit(option=("through",), message=message, next_step=step)
    if options.target is not None and options.through:
        message = "a `target` is where it is: `through` has no effect"
        yield Misfit(option=("through",), message=message, next_step="leave `through` out")
    if options.own_server != OwnServer() and (options.server != "own" or options.target is not None):
        message = "`own_server` says how nicbench's own server answers, and another serves"
        yield Misfit(
            option=("own_server",), message=message, next_step="leave `own_server` out, or write `server: own`"
        )


def spec_of(options: ConnectionOptions, tls: str, **asked: Any) -> ConnectionsSpec:
    """Returns what a client is asked, with what all methods have in common."""
    target = None
    if options.target is not None and (found := _URL.fullmatch(options.target)) is not None:
        address, port = found[1].strip("[]"), int(found[2] or (443 if options.target.startswith("https") else 80))
        target = ConnectionsTarget(address=address, port=port, host=address, path=found[3])
    own = options.own_server
    return ConnectionsSpec(
        tls=None if tls == "none" else tls,
        connect_within_s=options.connect_within,
        answer_within_s=options.answer_within,
        ports=options.ports if target is None else 1,
        client_threads=options.client_threads,
        server_threads=options.server_threads,
        server=options.server if target is None else "target",
        target=target,
        broken=Broken(
            delay_s=own.delay,
            delay_every=own.delay_every,
            reset_every=own.reset_every,
            short_every=own.short_every,
            status_every=own.status_every,
            corrupt_every=own.corrupt_every,
        ),
        **asked,
    )


def request_of(way: Way, spec: ConnectionsSpec, duration_s: float) -> RoundRequest:
    """Returns the round in which the clients share rate and connections of ``spec`` equally.

    So many clients take part that each has something due in the sustain phase, and a connection of its own.
    """
    due = spec.connections if spec.task == "hold" else int(spec.rate_per_s * duration_s)
    own = due if spec.task == "connect" else min(due, spec.connections)
    clients = way.clients[: max(1, own)]
    number = len(clients)
    jobs = []
    for index, client in enumerate(clients):
        connections = spec.connections // number + (index < spec.connections % number)
        share = spec.replace(rate_per_s=spec.rate_per_s / number, connections=max(1, connections))
        ask = JobSpec(operation="connections", duration_s=duration_s, connections=share)
        port = FIRST_PORT + PORTS_A_JOB * index
        jobs.append(Job(workload=WORKLOAD.kind, client=client.name, server=way.server, ask=ask, port=port))
    ramp_s = spec.connections / spec.rate_per_s if spec.task == "hold" else spec.ramp_s
    return RoundRequest(jobs=tuple(jobs), duration_s=ramp_s + duration_s + ROUND_OVERHEAD_S)


def words_of_tls(tls: str) -> str:
    """The transport as tables name it: "TCP", "TLS 1.3"."""
    return "TCP" if tls == "none" else f"TLS {tls}"


def words_of_point(point: Mapping[str, Any]) -> str:
    """A point as the overview names it: "TLS 1.3, 1 KiB"."""
    return ", ".join(str(point[name]) for name in ("transport", "object") if name in point)


ObjectBytes = Annotated[SomeBytes, Field(le=2**30)]
"""The size of an object: nicbench-connections has at most 1 GiB."""


class Mix(Frozen):
    """An object of a mix: its size, and how often it is asked for, against the others' weights."""

    bytes: ObjectBytes
    """Size of the object."""
    weight: int = Field(default=1, ge=1, le=1000)
    """How often it is asked for."""


def words_of_mix(objects: Sequence[tuple[int, int]]) -> str:
    """A mix as tables name it: "1 KiB", or "1 KiB x 3, 64 KiB x 1"."""
    if len(objects) == 1:
        return format_bytes(objects[0][0])
    return ", ".join(f"{format_bytes(size)} x {weight}" for size, weight in objects)
