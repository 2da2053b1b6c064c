"""Connections: figures of a round, the greatest rate or number that is kept up, and what the methods have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from pydantic import Field

from nicbench.core.base import WorkloadChoice
from nicbench.core.connections import (
    ConnectionCounts,
    ConnectionFigures,
    ConnectionsSpec,
    ConnectionTable,
)
from nicbench.core.lists import without_none
from nicbench.core.quantity import Ratio
from nicbench.core.reading import Times
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.round import JobSpec, Round
from nicbench.core.table import Column
from nicbench.core.units import format_bytes, format_digits
from nicbench.methods._connection_jobs import (
    MOST_IN_HOOK_BYTES,
    WORKLOAD,
    ConnectionOptions,
    Way,
    fits_hook,
    misfits_of,
    objection_to,
    request_of,
    way_of,
    words_of_point,
)
from nicbench.methods._results import bounds_between
from nicbench.methods._round_figures import ROUND_OVERHEAD_S, PlayedRounds, cpu_values, loads_of
from nicbench.methods._tail import time_values
from nicbench.methods.base import Misfit, Objection, RoundContext, RoundMethod, Values
from nicbench.methods.connection_capacity import Fill, most_held

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


class PortFigures(NamedTuple):
    """The figures of a client, and the port of the DUT that it is linked to."""

    port: str
    figures: ConnectionFigures


def figures_of(one: Round, way: Way) -> tuple[PortFigures, ...] | None:
    """Returns the figures of every client; None where one has none."""
    ports = {client.name: client.port or client.name for client, _ in way}
    loads = [(job, outcome.figures.connections if outcome.figures else None) for job, outcome in loads_of(one)]
    known = tuple(PortFigures(ports[job.client], figures) for job, figures in loads if figures is not None)
    return known if known and len(known) == len(loads) else None


class Outcome:
    """What all clients of a round counted together."""

    def __init__(
        self,
        of_ports: Sequence[PortFigures],
        duration_s: float,
        *,
        is_of_held: bool = False,
        table: ConnectionTable | None = None,
    ) -> None:
        """``table`` is the DUT's table of tracked connections, where it is seen."""
        self.of_ports = tuple(of_ports)
        self.figures = figures = tuple(each.figures for each in of_ports)
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

        A client that was only away for a moment is not late: its other failures are the DUT's.
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

    @property
    def by_port(self) -> str | None:
        """What became of those of each port's clients, in words: "s0: 500 of 500 completed"; None of one port."""
        found: dict[str, list[ConnectionCounts]] = {}
        for port, figures in self.of_ports:
            found.setdefault(port, []).extend((figures.ramp, figures.sustain))
        return (
            "; ".join(f"{port}: {_sum_in_words(counts)}" for port, counts in found.items()) if len(found) > 1 else None
        )

    def times(self) -> Values:
        """Percentiles of each kind of time, over all clients: ``connect_p50_ns`` and so on."""
        values: Values = {}
        for kind in _TIMES:
            known: list[Times | None] = [getattr(each, kind) for each in self.figures]
            values |= time_values(kind, without_none(known))
        return values

    def resent(self) -> Values:
        """Segments that each side sent again, over all clients; none of a side that does not count them. Where several
        clients share a server it counts for all of them.
        """
        sides = (("client", "segments"), ("server", "server_segments"))
        known = {side: [getattr(each, name) for each in self.figures if getattr(each, name)] for side, name in sides}
        return {
            f"{side}_resent_segments": sum(each.resent for each in counted)
            for side, counted in known.items()
            if counted
        }


def _sum_in_words(counts: Sequence[ConnectionCounts]) -> str:
    failed: Counter[str] = Counter()
    for each in counts:
        failed.update(each.failed)
    told = "".join(f", {count} {_WORDS.get(kind, kind)}" for kind, count in failed.most_common() if count)
    return f"{sum(each.completed for each in counts)} of {sum(each.due for each in counts)} completed{told}"


def bounded(passed: int, failed: int | None, limited_by: LimitedBy, why: str) -> Bounded:
    """The result of a search over whole numbers: what passed, and the least that did not."""
    if failed is None:
        return Bounded(value=passed or None, lower=passed, limited_by=limited_by, reason_null=None if passed else why)
    return bounds_between(passed, failed, f"{failed} already fail: {why}")


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


BY_PORT: Final = ("by_port", "By port")
"""The note of what became of the connections of each port's clients; none where only one port has clients that ask."""


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
    maximum: int = Field(ge=1)
    """The greatest number that is tried."""

    def searched_s(self, trial_s: float) -> float:
        """Returns an upper estimate of the time of one search, in seconds."""
        trials, left = 1, 1.0
        while left > max(self.precision, 1.0 / self.maximum):
            trials, left = trials + 1, left / 2.0
        return trials * (1 + self.loss_verification) * (trial_s + self.connect_within + ROUND_OVERHEAD_S)


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
    def by_port(self) -> str | None:
        """What became of those of each port in the trial that passed, and in the least that did not."""
        tried = (("passed", self.best), ("did not pass", self.worst))
        told = [f"{what}: {one.by_port}" for what, one in tried if one is not None and one.by_port]
        return ". ".join(told) or None

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
    found = Found(0, None, played, None, None, fits_hook=fits_hook(options, spec_at(1)))
    least_failed: int | None = None

    async def trial(number: int) -> Fill:
        nonlocal least_failed
        best: Fill | None = None
        for _ in range(1 + options.loss_verification):
            spec = spec_at(number)
            request = request_of(way, spec, options.duration)
            played.add(await context.play({**point, "asked": number}, request))
            figures = figures_of(played.rounds[-1], way)
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
    client = next(end for end in context.clients if end.name == way[0].client.name)
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
            "by_port": found.by_port,
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

    async def results(self, context: RoundContext) -> AsyncIterator[Result]:
        way = way_of(context, self.options)
        for point in self._list_points():
            yield await self._measure(context, way, *point)


class SearchedMethod(ConnectionMethod):
    """Base of methods that look for the greatest rate at each point. Subclasses say what a client is asked for then."""

    main: ClassVar[Column]
    options: SearchedOptions

    @abstractmethod
    def _spec(self, *point_and_number: Any) -> ConnectionsSpec:
        """Returns what a client is asked for at a point, at a rate or number."""

    @abstractmethod
    def _parameters(self, *point: Any) -> dict[str, Any]:
        """Returns what distinguishes the point in results and their table."""

    @abstractmethod
    def _values(self, best: Outcome | None) -> Values:
        """Returns the values of the best trial that passed, but those that all such methods have."""

    def _label(self, *point: Any) -> str:
        """Returns the point as part of the id of its result."""
        return "/".join(map(str, point))

    def _trial_s(self) -> float:
        """Returns how long a trial at the greatest rate takes."""
        return self.options.ramp + self.options.duration

    def _passes(self, outcome: Outcome, asked: int) -> bool:
        return outcome.keeps_up

    def _made_of(self, outcome: Outcome) -> int:
        """Returns the rate that a trial bore."""
        return int(outcome.in_time / self.options.duration)

    def estimate_s(self) -> float:
        return self.points() * self.options.searched_s(self._trial_s())

    def deviations(self) -> tuple[str, ...]:
        return tuple(shorter_phases(self.options.ramp, self.options.duration))

    def _greatest_spec(self, *point: Any) -> ConnectionsSpec:
        return self._spec(*point, self.options.maximum)

    async def _measure(self, context: RoundContext, way: Way, *point: Any) -> Result:
        parameters = self._parameters(*point)
        found = await find_most(
            context,
            self.options,
            way,
            parameters,
            self.options.maximum,
            lambda number: self._spec(*point, number),
            self._passes,
            self._made_of,
        )
        name = f"{self.name}/{self._label(*point)}"
        return result_of(context, way, name, self.kind, parameters, self.main.value, found, self._values(found.best))
