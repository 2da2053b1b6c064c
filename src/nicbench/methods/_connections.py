"""Connections: options, client and server, figures of a round, and the greatest rate that is kept up."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from nicbench.core.base import Distinct, Frozen, WorkloadChoice
from nicbench.core.connections import (
    Broken,
    ConnectionDriver,
    ConnectionFigures,
    ConnectionsSpec,
    ConnectionsTarget,
    ConnectionTable,
    ConnectionTimes,
)
from nicbench.core.quantity import Ratio, Seconds, SomeBytes
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.round import EndpointFacts, Job, JobSpec, Round, RoundRequest
from nicbench.core.table import Column
from nicbench.core.units import format_bytes, format_digits
from nicbench.methods._round_figures import (
    FIRST_PORT,
    PORTS_A_JOB,
    ROUND_OVERHEAD_S,
    PlayedRounds,
    clients_by_port,
    cpu_values,
    loads_of,
)
from nicbench.methods.base import Misfit, Objection, RoundContext, RoundMethod, Values
from nicbench.methods.connection_capacity import Fill, most_held
from nicbench.stats.latency import add_histograms, percentiles_ns

# What methods of connections share: their options, who is client and who is server, and the jobs of a round.


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
    """It accepts so many connections a second, evenly."""
    accept_queue: int | None = Field(default=None, ge=1, le=65_535)
    """So many wait for that on each port, and one; SYNs beyond are dropped. The kernel lowers it to
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
    if options.driver == "xdp":
        yield from _misfits_of_hook(options, clients)
    if options.own_server != OwnServer() and (options.server != "own" or options.target is not None):
        message = "`own_server` says how nicbench's own server answers, and another serves"
        yield Misfit(
            option=("own_server",), message=message, next_step="leave `own_server` out, or write `server: own`"
        )


def _misfits_of_hook(options: ConnectionOptions, clients: Mapping[str, Sequence[str]]) -> Iterator[Misfit]:
    """Yields what only the kernel's sockets can do."""
    asking = next((names for names in clients.values() if names), ())
    serves_in_hook = options.server == "own" and options.own_server == OwnServer()
    if serves_in_hook and len(asking) > 1:
        message = f"the interface of a server takes one server in its hook, and {len(asking)} clients want one each"
        yield Misfit(option=("driver",), message=message, next_step="write `server: nginx`, or leave one client there")
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


# Figures of rounds of connections: counts of all clients together, percentiles of all histograms, and failures.


CLIENT_FAILURES: Final = frozenset({"no_ports", "no_files", "not_begun", "late"})
"""Failures of the client itself, which say nothing of DUT or server."""
ANSWER_FAILURES: Final = frozenset({"reset", "short", "status", "length", "content", "not_http", "lost"})
"""Failures after a connection stood: a server or a DUT that is broken has them at every load."""
LATEST_START_NS: Final = 100_000_000
"""A client that begins one of a hundred later than this is not on time: its rate was not offered."""
FAILURE_RATIO: Final = 1e-5
"""RFC 9411 allows 0.001 % of transactions and of connections to fail."""
IN_TIME_RATIO: Final = 0.99
"""The share of what was due in the sustain phase that must be complete before it ends: a rate that falls behind does
not count.
"""
_TIMES: Final = ("connect", "handshake", "first_byte", "last_byte")
_WORDS: Final = {
    "no_ports": "no local port was free",
    "no_files": "the client may open no more files",
    "not_begun": "the client could not begin them in time",
    "late": "not connected when the client had been away",
    "refused": "refused",
    "unreachable": "unreachable",
    "connect_timeout": "not connected in time",
    "tls": "TLS failed",
    "tls_timeout": "no TLS session in time",
    "reset": "reset",
    "short": "closed before the answer was complete",
    "response_timeout": "not answered in time",
    "status": "another status than 200",
    "length": "another length",
    "content": "another content",
    "not_http": "no HTTP/1.1",
    "lost": "ended while held",
}


def figures_of(one: Round) -> tuple[ConnectionFigures, ...] | None:
    """Returns the figures of every client; None where one has none."""
    found = [outcome.figures.connections if outcome.figures else None for _, outcome in loads_of(one)]
    known = tuple(each for each in found if each is not None)
    return known if known and len(known) == len(found) else None


class Outcome:
    """What all clients of a round counted together."""

    def __init__(
        self,
        figures: Sequence[ConnectionFigures],
        duration_s: float,
        *,
        is_of_held: bool = False,
        table: ConnectionTable | None = None,
    ) -> None:
        """``table`` is the DUT's table of tracked connections, where it is seen."""
        self.figures = tuple(figures)
        self.table = table
        self.is_of_held = is_of_held
        self.due = sum(each.sustain.due for each in figures)
        self.completed = sum(each.sustain.completed for each in figures)
        self.in_time = sum(each.in_time for each in figures)
        self.held = sum(each.held for each in figures)
        self.failed: Counter[str] = Counter()
        for each in figures:
            for counts in (each.ramp, each.sustain):
                self.failed.update(counts.failed)
        self.bits_per_s = 8.0 * sum(each.bytes for each in figures) / duration_s
        self.busiest_thread = max(
            (each.busiest_thread_ns / each.wall_ns for each in figures if each.wall_ns), default=0
        )

    @property
    def starts_late(self) -> bool:
        """Whether a client did not begin on time what was due."""
        return any(each.lateness_p99_ns > LATEST_START_NS for each in self.figures)

    @property
    def is_late(self) -> bool:
        """Whether a client did not begin on time what was due, or had no ports or files left.

        One that was only away for a moment is not: what fails beside that is the DUT's.
        """
        return self.starts_late or any(self.failed[kind] for kind in CLIENT_FAILURES - {"late"})

    @property
    def is_limited_by_client(self) -> bool:
        """Whether a client did not offer what was asked, and no more failed than RFC 9411 allows."""
        return (self.is_late or self.failed["late"] > 0) and self.failures <= FAILURE_RATIO * self.due

    @property
    def failures(self) -> int:
        """How many failed by DUT or server, in the ramp or after it."""
        return sum(count for kind, count in self.failed.items() if kind not in CLIENT_FAILURES)

    @property
    def asked(self) -> int:
        """How many were due, in the ramp or after it."""
        return sum(each.ramp.due + each.sustain.due for each in self.figures)

    @property
    def is_table_full(self) -> bool:
        """Whether the DUT had no place for a new connection."""
        return self.table is not None and self.table.is_full

    @property
    def wrong_answers(self) -> int:
        """How many failed although their connection stood."""
        return sum(self.failed[kind] for kind in ANSWER_FAILURES)

    @property
    def keeps_up(self) -> bool:
        """Whether nothing fails beyond what RFC 9411 allows, and what is due does not pile up."""
        return self.due > 0 and self.failures <= FAILURE_RATIO * self.due and self.in_time >= IN_TIME_RATIO * self.due

    @property
    def words(self) -> str:
        """What went wrong, in words: "12 not connected in time, 3 reset"; "" where nothing did."""
        counted = (f"{count} {_WORDS.get(kind, kind)}" for kind, count in self.failed.most_common() if count)
        late = f"the client is late (its busiest thread: {100 * self.busiest_thread:.0f} %)" if self.starts_late else ""
        behind = not self.is_of_held and self.in_time < IN_TIME_RATIO * self.due and not self.failures
        piled = f"only {self.in_time} of {self.due} were complete in time" if behind else ""
        full = f"the DUT's connection table was full ({self.table.words})" if self.table and self.is_table_full else ""
        return "; ".join(part for part in (", ".join(counted), full, piled, late) if part)

    def times(self) -> Values:
        """Percentiles of each kind of time, over all clients: ``connect_p50_ns`` and so on."""
        values: Values = {}
        for kind in _TIMES:
            known: list[ConnectionTimes | None] = [getattr(each, kind) for each in self.figures]
            values |= _percentiles(kind, known)
        return values

    def resent(self) -> Values:
        """Segments that each side sent again, over all clients; none of a side that does not count them."""
        sides = (("client", "segments"), ("server", "server_segments"))
        known = {side: [getattr(each, name) for each in self.figures] for side, name in sides}
        return {
            f"{side}_resent_segments": sum(each.resent for each in counted)
            for side, counted in known.items()
            if None not in counted
        }


def _percentiles(kind: str, known: Sequence[ConnectionTimes | None]) -> Values:
    complete = [each for each in known if each is not None]
    joined = add_histograms([each.histogram for each in complete]) if complete else None
    maximum_ns = max((each.maximum_ns for each in complete), default=None)
    found = percentiles_ns(joined, maximum_ns=maximum_ns) if joined is not None else {}
    return {
        f"{kind}_p50_ns": found.get("50"),
        f"{kind}_p99_ns": found.get("99"),
        f"{kind}_maximum_ns": maximum_ns,
    }


def bounded(passed: int, failed: int | None, limited_by: LimitedBy, why: str) -> Bounded:
    """The result of a search over whole numbers: what passed, and the least that did not."""
    if failed is None:
        return Bounded(value=passed or None, lower=passed, limited_by=limited_by, reason_null=None if passed else why)
    if passed == 0:
        return Bounded(value=None, upper=failed, limited_by=LimitedBy.DUT, reason_null=f"{failed} already fail: {why}")
    return Bounded(value=passed, lower=passed, upper=failed, limited_by=LimitedBy.DUT)


KPI_OF_TIMES: Final = {
    "connect": "Connect",
    "handshake": "TLS handshake",
    "first_byte": "Time to First Byte (TTFB)",
    "last_byte": "Time to Last Byte (TTLB)",
}
"""The printed name of each time; RFC 9411 section 6.3 names the last two."""
RESENT: Final = tuple(
    Column(value=f"{side}_resent_segments", head=f"by the {side}", form="whole", group="Sent again", is_optional=True)
    for side in ("client", "server")
)
"""The columns of segments that each side sent again in that trial; left out where the kernel's sockets sent them."""


def columns_of_times(kinds: Iterable[str] = ("connect", "handshake", "first_byte")) -> tuple[Column, ...]:
    """Columns of the times that belong to a rate; columns that no result has are left out."""
    return tuple(
        Column(
            value=f"{kind}_{which}_ns",
            head=head,
            name=f"{KPI_OF_TIMES[kind]}, {head}",
            form="microseconds",
            group=KPI_OF_TIMES[kind],
            is_optional=True,
        )
        for kind in kinds
        for which, head in (("p50", "median"), ("p99", "99 %"))
    )


def interval_of(column: Column) -> Column:
    """Returns the column of the interval of a searched value."""
    return Column(
        value=column.value, head="Interval", unit=column.unit, form=column.form, aspect="interval", is_minor=True
    )


# The greatest rate that is kept up: trials of a ramp and a sustain phase (RFC 9411 section 4.3.4), in halves.


LEFT_RATIO: Final = 0.01
"""Where more of a full table is from before the trial, the limit is not that of the load alone."""
EXPECTED_AMONG_PASSED: Final = 4.6
"""Where fewer wrong answers than this are to be expected in the trial that passed, it may have had none by chance
(e^-4.6, one in a hundred): then their share is not shown to depend on the load."""
STANDARD_RAMP_S, STANDARD_SUSTAIN_S = 180.0, 300.0
"""RFC 9411 section 4.3.4: a ramp of at least 180 s, a sustain phase of at least 300 s."""


class SearchedOptions(ConnectionOptions):
    """Options of the methods that look for a greatest rate or number."""

    precision: Ratio = 0.02
    """The search ends where its interval is at most this share of its upper bound wide."""
    loss_verification: int = Field(default=1, ge=0, le=10)
    """The repetitions of a trial with failures before it counts; none where the DUT's connection table was full."""

    def searched_s(self, most: int, trial_s: float) -> float:
        """Returns an upper estimate of the time of one search, in seconds."""
        trials, left = 1, 1.0
        while left > max(self.precision, 1.0 / most):
            trials, left = trials + 1, left / 2.0
        return trials * (1 + self.loss_verification) * (trial_s + self.connect_within + ROUND_OVERHEAD_S)

    def deviations(self) -> tuple[str, ...]:
        """Returns where the times of a trial fall short of the RFC."""
        return tuple(shorter_phases(self.ramp, self.duration))


def shorter_phases(ramp_s: float, sustain_s: float) -> Iterator[str]:
    """Yields which phases of a trial are shorter than RFC 9411 asks for."""
    if sustain_s < STANDARD_SUSTAIN_S:
        yield f"a sustain phase of {sustain_s:g} s, RFC 9411 asks for {STANDARD_SUSTAIN_S:g} s and more"
    if ramp_s < STANDARD_RAMP_S:
        yield f"a ramp of {ramp_s:g} s, RFC 9411 asks for {STANDARD_RAMP_S:g} s and more"


@dataclass
class Found:
    """What a search found: what passed and what did not, the best round that passed, and the first that did not."""

    passed: int
    failed: int | None
    played: PlayedRounds
    best: Outcome | None
    worst: Outcome | None
    wrong: int = 0
    """Wrong answers of all trials that did not pass, among ``asked``."""
    asked: int = 0
    is_cut_off: bool = False
    """Whether the search ended at a trial that gave no figures."""
    fits_hook: bool = False
    """Whether the client could ask the same in its driver's hook, and does not."""

    @property
    def is_client_late(self) -> bool:
        """Whether nothing failed, but the client could not offer more."""
        return self.failed is None and self.worst is not None

    @property
    def is_broken(self) -> bool:
        """Whether wrong answers come at every load, as far as the trial that passed can tell."""
        if not self.wrong:
            return False
        passed = self.best.asked if self.best is not None else 0
        return passed * self.wrong / self.asked < EXPECTED_AMONG_PASSED

    @property
    def unfit(self) -> str | None:
        """Why the result is missing, in words; None with a result."""
        if self.is_cut_off:
            return "a trial gave no figures"
        if self.is_broken:
            share = f"{format_digits(100 * self.wrong / self.asked, 2)} % of the answers are wrong ({self.why})"
            return f"{share}, and nothing shows that fewer are at a lower load"
        return None

    @property
    def leftovers(self) -> str | None:
        """Why the limit is not that of a DUT that began empty, in words; None where nothing shows that."""
        table = self.worst.table if self.worst is not None else None
        if table is None or not table.is_full or table.before <= LEFT_RATIO * table.limit:
            return None
        return (
            f"the DUT's connection table was full, and {table.before} of its {table.limit} entries were from before "
            "the trial: rest longer than it remembers ended connections, or have it emptied"
        )

    @property
    def why(self) -> str:
        """What went wrong above the result, in words; "" where nothing did."""
        advice = "; next: write `driver: xdp`, a faster client" if self.is_client_late and self.fits_hook else ""
        return f"{self.worst.words}{advice}" if self.worst is not None else ""


async def find_most(
    context: RoundContext,
    options: SearchedOptions,
    way: Way,
    point: dict[str, Any],
    most: int,
    spec_at: Callable[[int], ConnectionsSpec],
    passes: Callable[[Outcome, int], bool],
    made_of: Callable[[Outcome], int],
) -> Found:
    """Looks for the greatest whole number up to ``most`` at which a trial passes (``most_held``).

    ``made_of`` says what was really offered, where the client could not offer what it was asked to.
    """
    played = PlayedRounds()
    found = Found(0, None, played, None, None, fits_hook=_fits_hook(context, options, spec_at(1)))
    least_failed: int | None = None

    async def trial(number: int) -> Fill:
        nonlocal least_failed
        best: Fill | None = None
        for _ in range(1 + options.loss_verification):
            spec = spec_at(number)
            request = request_of(way, spec, options.duration)
            played.add(await context.play({**point, "asked": number}, request))
            figures = figures_of(played.rounds[-1])
            if figures is None:
                raise _CutOffError
            table = played.rounds[-1].connection_table
            outcome = Outcome(figures, options.duration, is_of_held=spec.task == "hold", table=table)
            if outcome.is_limited_by_client:
                best = Fill(min(made_of(outcome), number - 1), True)
                found.worst = found.worst or outcome
                continue
            if passes(outcome, number):
                found.best = outcome
                return Fill(number, True)
            if not outcome.is_late:
                found.wrong += outcome.wrong_answers
                found.asked += outcome.asked
            if least_failed is None or number <= least_failed:
                least_failed, found.worst = number, outcome
            best = best or Fill(number, False, made_of(outcome))
            if outcome.is_table_full:
                break  # the DUT says itself that it had no place: no chance is left that a repetition could rule out
        return best or Fill(number, False)

    try:
        found.passed, found.failed = await most_held(trial, most, options.precision)
        if found.worst is not None and found.worst.is_late and not found.worst.is_table_full:
            found.failed = None  # what failed first beside a client that was late is not shown to be the DUT's
    except _CutOffError:
        found.is_cut_off = True
    return found


def _fits_hook(context: RoundContext, options: ConnectionOptions, spec: ConnectionsSpec) -> bool:
    clients = {port: [each.name for each in found] for port, found in clients_by_port(context).items()}
    largest = max(size for size, _ in spec.objects)
    is_kept = options.driver == "kernel" and spec.tls is None and largest <= MOST_IN_HOOK_BYTES
    return is_kept and not any(_misfits_of_hook(options.replace(tls=("none",)), clients))


class _CutOffError(Exception):
    """A trial gave no figures, also when it was repeated."""


def _value_of(found: Found, limit: LimitedBy) -> Bounded:
    if found.unfit is not None:
        return Bounded(value=None, reason_null=found.unfit)
    return bounded(found.passed, found.failed, limit, found.why or "nothing could be measured")


def _words_of_limit(found: Found) -> str | None:
    if found.is_cut_off:
        return None
    if found.is_broken:
        return "wrong answers"
    if found.failed is not None:
        return "DUT's connection table" if found.worst and found.worst.is_table_full else "DUT or server"
    return "client" if found.is_client_late else "highest that was tried"


def result_of(
    context: RoundContext,
    way: Way,
    name: str,
    kind: str,
    parameters: dict[str, Any],
    main: str,
    found: Found,
    values: Values,
) -> Result:
    """Returns the result of a search: the value, the times of the best round that passed, and what limited it."""
    limit = LimitedBy.TESTER if found.is_client_late else LimitedBy.MAXIMUM_LOAD
    client = next(end for end in context.clients if end.name == way.clients[0].name)
    rounds = found.played.rounds[-1:]
    return Result(
        id=name,
        method=kind,
        scope="all clients together",
        parameters=parameters,
        values={
            main: _value_of(found, limit),
            "row": words_of_point(parameters),
            **({**found.best.times(), **found.best.resent()} if found.best and not found.unfit else {}),
            **(values if not found.unfit else {}),
            **cpu_values(rounds, context.servers[0].machine, "server"),
            **cpu_values(rounds, client.machine, "client"),
            "limited_by": _words_of_limit(found),
            "limit": found.unfit or found.why or None,
            "trials": len(found.played.rounds),
        },
        verdict=_verdict_of(found),
        disturbances=(*found.played.disturbances, *((found.leftovers,) if found.leftovers else ())),
        trials=found.played.round_ids,
    )


def _verdict_of(found: Found) -> ResultVerdict:
    verdict = found.played.verdict(found.unfit is not None)
    return ResultVerdict.DISTURBED if verdict is ResultVerdict.VALID and found.leftovers else verdict


# What the methods of connections have in common: who asks whom, and a result for each point.


class ConnectionMethod(RoundMethod):
    """Base of methods of connections. Subclasses say which points there are, and measure one of them."""

    options: ConnectionOptions

    @abstractmethod
    def _list_points(self) -> Iterator[tuple[Any, ...]]:
        """Yields what distinguishes each point: the version of TLS, and what is asked for."""

    @abstractmethod
    def _greatest_spec(self, *point: Any) -> ConnectionsSpec:
        """Returns the most that a client is asked for at a point."""

    @abstractmethod
    async def _measure(self, context: RoundContext, way: Way, *point: Any) -> Result:
        """Measures one point."""

    def points(self) -> int:
        return sum(1 for _ in self._list_points())

    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        seconds = self.options.duration
        specs = (self._greatest_spec(*point) for point in self._list_points())
        return tuple(
            (WORKLOAD, JobSpec(operation="connections", duration_s=seconds, connections=spec)) for spec in specs
        )

    def find_misfits(self, clients: Mapping[str, Sequence[str]], hosts: Sequence[str]) -> Iterator[Misfit]:
        yield from misfits_of(self.options, clients)
        asked = (ask.connections.objects for _, ask in self.job_specs() if ask.connections is not None)
        largest = max((size for objects in asked for size, _ in objects), default=0)
        if self.options.driver == "xdp" and largest > MOST_IN_HOOK_BYTES:
            most = format_bytes(MOST_IN_HOOK_BYTES)
            message = f"`driver: xdp` takes objects of at most {most}, and one has {format_bytes(largest)}"
            yield Misfit(option=("object_bytes",), message=message, next_step=f"write sizes of at most {most}")

    def objection(self, context: RoundContext) -> Objection | None:
        return objection_to(context, self.options)

    async def run(self, context: RoundContext) -> tuple[Result, ...]:
        way = way_of(context, self.options)
        if way is None:  # ``objection`` has said so
            return ()
        results = []
        for point in self._list_points():
            results.append(await self._measure(context, way, *point))
            context.publish(results[-1])
        return tuple(results)
