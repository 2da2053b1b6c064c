"""Who asks whom for connections, and how: options of the methods of connections, their misfits, and jobs of a round."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from nicbench.core.base import Distinct, Frozen, WorkloadChoice
from nicbench.core.connections import Broken, ConnectionDriver, ConnectionsSpec, ConnectionsTarget
from nicbench.core.quantity import Seconds, SomeBytes
from nicbench.core.round import EndpointFacts, Job, JobSpec, RoundRequest
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


LONGEST_IN_HOOK_S: Final = 30.0
MOST_IN_HOOK_BYTES: Final = 64 * 1024
MOST_IN_HOOK_THREADS: Final = 64
"""What a connection in the driver's hook may last, the largest object there, and the most threads of its client."""


class OwnServer(Frozen):
    """How nicbench's own server accepts and answers, where a method is tried on a server of known limits and faults."""

    delay: Seconds = Field(default=0.0, le=60.0)
    """An answer waits so long."""
    delay_every: _Every = 0
    """One of this number waits; 0: each waits."""
    reset_every: _Every = 0
    """One of this number of answers is broken by a RST."""
    short_every: _Every = 0
    """One of this number of answers ends early."""
    status_every: _Every = 0
    """One of this number of answers has the status 503."""
    corrupt_every: _Every = 0
    """One of this number of answers has a wrong byte."""
    accept_rate: int | None = Field(default=None, ge=1, le=1_000_000)
    """Connections that it accepts in a second, evenly."""
    accept_queue: int | None = Field(default=None, ge=1, le=65_535)
    """Connections that wait for that on each port, and one more; SYNs beyond are dropped. The kernel lowers it to
    `net.core.somaxconn`.
    """


class ConnectionOptions(Frozen):
    """Options that all methods of connections have."""

    driver: ConnectionDriver = "kernel"
    """`xdp`: the ends make and answer connections in their driver's hook, many times as fast as the kernel's sockets
    (`kernel`); without TLS, and objects of at most 64 KiB. `nginx`, or a server with `own_server`, keeps the kernel's
    sockets.
    """
    server: Literal["own", "nginx"] = "own"
    """What serves: nicbench's own server, or `nginx`, which nicbench configures and starts."""
    target: Url | None = None
    """A server that is there already, as `http://ADDRESS:PORT/PATH`, in place of one that nicbench starts. Its answers
    are taken as they are; the scheme says nothing of TLS, `tls` does.
    """
    through: bool = False
    """Through the DUT: clients of the first ports ask, in turn, the first client of each of the last ports."""
    serving: Distinct[str] = ()
    """The ports with those that serve; by default the last half of all ports."""
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


class Asking(NamedTuple):
    """A client, and the endpoint that serves it, None for a server that is there already."""

    client: EndpointFacts
    server: str | None


Way = tuple[Asking, ...]
"""Who asks whom."""


def way_of(context: RoundContext, options: ConnectionOptions) -> Way:
    """Returns who asks whom; nobody where ports or clients are missing."""
    groups = {port: clients for port, clients in clients_by_port(context).items() if clients}
    if options.target is not None:
        return tuple(Asking(client, None) for client in next(iter(groups.values()), ()))
    if not options.through:
        return tuple(Asking(client, port) for port, clients in groups.items() for client in clients)
    serving = options.serving or tuple(groups)[(len(groups) + 1) // 2 :]
    servers = [groups[port][0].name for port in serving if port in groups]
    asking = [clients for port, clients in groups.items() if port not in serving]
    turns = zip(asking, cycle(servers), strict=False)  # without servers there are none
    return tuple(Asking(client, server) for clients, server in turns for client in clients)


def objection_to(context: RoundContext, options: ConnectionOptions) -> Objection | None:
    """Returns why there is nobody to ask, or nobody who serves, or why a link would not hold its ends to its rate."""
    if options.driver == "xdp" and any(end.bucket_bytes for end in (*context.servers, *context.clients)):
        return Objection(
            message="what the driver's hook sends passes no token bucket, which holds a link here to its rate",
            next_step="leave `driver` out, or the `rate` of the lab",
        )
    if way_of(context, options):
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
    elif options.serving:
        yield from _misfits_of_serving(options, [port for port, names in clients.items() if names])
    if options.target is not None and options.through:
        message = "a `target` is where it is: `through` has no effect"
        yield Misfit(option=("through",), message=message, next_step="leave `through` out")
    if options.driver == "xdp":
        yield from _misfits_of_hook(options)
    if options.own_server != OwnServer() and (options.server != "own" or options.target is not None):
        message = "`own_server` says how nicbench's own server answers, and another serves"
        yield Misfit(
            option=("own_server",), message=message, next_step="leave `own_server` out, or write `server: own`"
        )


def _misfits_of_serving(options: ConnectionOptions, ports: Sequence[str]) -> Iterator[Misfit]:
    """Yields ports that do not serve, or leave nobody to ask them."""
    names = ", ".join(f"`{port}`" for port in ports)
    if not options.through:
        message = "without `through` each port itself serves its clients"
        yield Misfit(option=("serving",), message=message, next_step="write `through: true`, or leave `serving` out")
    elif unknown := [port for port in options.serving if port not in ports]:
        message = f"`{unknown[0]}` is no port with clients"
        yield Misfit(option=("serving",), message=message, next_step=f"choose among {names}")
    elif set(options.serving) == set(ports):
        yield Misfit(option=("serving",), message="no port is left that asks", next_step=f"leave one of {names} out")


def _misfits_of_hook(options: ConnectionOptions) -> Iterator[Misfit]:
    """Yields what only the kernel's sockets can do."""
    serves_in_hook = options.server == "own" and options.own_server == OwnServer()
    if options.client_threads > MOST_IN_HOOK_THREADS:
        message = f"`driver: xdp` sends by at most {MOST_IN_HOOK_THREADS} threads"
        yield Misfit(option=("client_threads",), message=message, next_step=f"write at most {MOST_IN_HOOK_THREADS}")
    if options.server_threads > 1 and serves_in_hook:
        message = "a server in the driver's hook answers on the CPU to which each receive queue belongs"
        yield Misfit(option=("server_threads",), message=message, next_step="leave `server_threads` out")
    step = "leave `driver` out"
    if options.tls != ("none",):
        yield Misfit(option=("tls",), message="`driver: xdp` speaks no TLS", next_step=step)
    if options.target is not None:
        message = "`driver: xdp` takes answers of a known length, and a `target` gives any"
        yield Misfit(option=("target",), message=message, next_step=step)
    for name, seconds in (("connect_within", options.connect_within), ("answer_within", options.answer_within)):
        if seconds > LONGEST_IN_HOOK_S:
            message = f"`driver: xdp` waits at most {LONGEST_IN_HOOK_S:g} s"
            yield Misfit(option=(name,), message=message, next_step=f"write at most {LONGEST_IN_HOOK_S:g} s")


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
        driver=options.driver,
        target=target,
        broken=Broken(
            delay_s=own.delay,
            delay_every=own.delay_every,
            reset_every=own.reset_every,
            short_every=own.short_every,
            status_every=own.status_every,
            corrupt_every=own.corrupt_every,
            accept_rate=own.accept_rate,
            accept_queue=own.accept_queue,
        ),
        **asked,
    )


def request_of(way: Way, spec: ConnectionsSpec, duration_s: float) -> RoundRequest:
    """Returns the round in which the clients share rate and connections of ``spec`` equally.

    The number of clients that take part: each has something due in the sustain phase, and its own connection.
    """
    due = spec.connections if spec.task == "hold" else int(spec.rate_per_s * duration_s)
    own = due if spec.task == "connect" else min(due, spec.connections)
    pairs = way[: max(1, own)]
    number = len(pairs)
    servers = [server for _, server in pairs]
    jobs = []
    for index, (client, server) in enumerate(pairs):
        connections = spec.connections // number + (index < spec.connections % number)
        first = servers.index(server) if spec.serves_in_hook else index
        share = spec.replace(rate_per_s=spec.rate_per_s / number, connections=max(1, connections))
        if spec.serves_in_hook:
            share = share.replace(clients=servers.count(server) if first == index else 0)
        ask = JobSpec(operation="connections", duration_s=duration_s, connections=share)
        port = FIRST_PORT + PORTS_A_JOB * first
        jobs.append(Job(workload=WORKLOAD.kind, client=client.name, server=server, ask=ask, port=port))
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


def fits_hook(options: ConnectionOptions, spec: ConnectionsSpec) -> bool:
    """Returns whether the ends could do the same in their driver's hook, and do not."""
    largest = max(size for size, _ in spec.objects)
    is_kept = options.driver == "kernel" and spec.tls is None and largest <= MOST_IN_HOOK_BYTES
    return is_kept and not any(_misfits_of_hook(options.replace(tls=("none",))))
