"""What a report shows, as plain values without markup. Numbers are those of summary and journal, untouched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nicbench.events import CeilingFound, Note, TesterLatencyFound
from nicbench.model.analysis import Capture
from nicbench.model.bond import Bond
from nicbench.model.plan import Plan
from nicbench.model.rate import Bounded
from nicbench.model.report_wishes import DEFAULT_WISHES, ReportWishes
from nicbench.model.result import Result, ResultVerdict
from nicbench.model.table import Column
from nicbench.model.trial import Purpose, Trial
from nicbench.report import numbers
from nicbench.report.cells import printed
from nicbench.report.detail import DetailTable
from nicbench.report.editors.study import Study
from nicbench.report.endpoints import EndpointRow
from nicbench.report.failed_links import FailedLink
from nicbench.report.imported import ImportedView
from nicbench.report.injected import InjectedRow
from nicbench.report.ledger import LedgerTable
from nicbench.report.machine import MachineTable
from nicbench.report.ports import PortsTable
from nicbench.report.rounds import RoundGroup, Tool
from nicbench.report.stamps import ClockRow, clock_rows, warnings, words
from nicbench.report.study.revisions import RevisionRow
from nicbench.report.system_table import SystemTable
from nicbench.report.tables import Section
from nicbench.report.tails import TailTable
from nicbench.report.tuned import TunedRow
from nicbench.units import l1_bits_per_s, l2_bits_per_s

if TYPE_CHECKING:  # it is made of tables of this file
    from nicbench.report.comparison import Comparison
    from nicbench.report.statistics.view import StatisticsView
    from nicbench.report.watched import WatchedMachine
LATENCIES = (
    Column(value="latency_minimum_ns", head="min"),
    Column(value="latency_mean_ns", head="mean"),
    Column(value="latency_p50_ns", head="p50", is_main=True),
    Column(value="latency_p99_ns", head="p99"),
    Column(value="latency_p99_9_ns", head="p99.9", is_main=True),
    Column(value="latency_p99_99_ns", head="p99.99"),
    Column(value="latency_p99_999_ns", head="p99.999"),
    Column(value="latency_p99_9999_ns", head="p99.9999"),
    Column(value="latency_maximum_ns", head="max"),
    Column(value="pdv_ns", head="PDV"),
)
"""Of a table of latencies, in microseconds."""

CALIBRATION = frozenset({Purpose.CEILING, Purpose.TESTER_LATENCY})
"""Trials that measure the tester itself."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A loss ratio a rate was searched for; ``key`` begins the names of its values (``ndr_frames_per_s``)."""

    key: str
    name: str
    loss_ratio: float | None


@dataclass(frozen=True, slots=True)
class SizedRow:
    """A row for one frame size; ``frame_bytes`` of a mix is the mean, ``size`` its name."""

    frame_bytes: float
    size: str

    @property
    def size_name(self) -> str:
        """Before "frames": "64-byte", "imix"."""
        return f"{self.size}-byte" if self.size.isdigit() else self.size

    @property
    def size_words(self) -> str:
        """As the subject of a sentence: "64 bytes", "imix"."""
        return f"{self.size} bytes" if self.size.isdigit() else self.size


@dataclass(frozen=True, slots=True)
class ThroughputRow(SizedRow):
    """One frame size. Rates are per port unless the table's scope says otherwise; ``spoilt`` tells of bad trials."""

    rates: Mapping[str, Bounded]
    percents: Mapping[str, float | None]
    line_rate_frames_per_s: float | None
    ceiling_frames_per_s: float | None
    result: Result
    spoilt: str | None = None

    def rate_words(self, goal: str, decimals: int) -> str:
        """A rate in Mpps; of an imported one the digits that its source printed."""
        column = Column(value=f"{goal}_frames_per_s", head="", unit="Mpps")
        return printed(self.result, column) or numbers.rate_words(self.rates[goal], decimals)

    def percent_words(self, goal: str) -> str:
        """Its share of the line rate in percent, likewise."""
        column = Column(value=f"{goal}_percent_of_line_rate", head="%")
        return printed(self.result, column) or numbers.percent(self.percents[goal])

    def line_rate_words(self) -> str:
        """The line rate in Mpps, likewise."""
        column = Column(value="line_rate_frames_per_s", head="", unit="Mpps")
        return printed(self.result, column) or numbers.mpps(self.line_rate_frames_per_s, 3)

    @property
    def reason_null(self) -> str | None:
        """Why there is no rate at all; the first goal's reason stands for all."""
        return next((rate.reason_null for rate in self.rates.values() if rate.reason_null), None)

    def l2_bits_per_s(self, goal: str) -> float | None:
        """Throughput without preamble and gap, the frame's FCS counted."""
        value = self.rates[goal].value
        return None if value is None else l2_bits_per_s(value, self.frame_bytes)

    def l1_bits_per_s(self, goal: str) -> float | None:
        """Throughput with preamble, delimiter and gap: what the wire carries."""
        value = self.rates[goal].value
        return None if value is None else l1_bits_per_s(value, self.frame_bytes)


@dataclass(frozen=True, slots=True)
class ThroughputTable:
    """One throughput test of one configuration."""

    test: str
    configuration: str
    scope: str
    goals: tuple[Goal, ...]
    rows: tuple[ThroughputRow, ...]


@dataclass(frozen=True, slots=True)
class LatencyRow(SizedRow):
    """One frame size at one load. ``values`` are the result's plain numbers by name; ``tail`` is (ns, share above)."""

    load_percent: float | None
    load_of: str | None
    values: Mapping[str, float | None]
    trial: Trial | None
    frames: int | None
    reason_null: str | None
    tail: tuple[tuple[float, float], ...]
    result: Result

    def microseconds(self, name: str) -> str:
        """A latency in microseconds; of an imported one the digits that its source printed."""
        column = Column(value=name, head="", unit="us")
        return printed(self.result, column) or numbers.microseconds(self.values.get(name))


@dataclass(frozen=True, slots=True)
class LatencyTable:
    """One latency test of one configuration at one load."""

    test: str
    configuration: str
    scope: str
    load: str
    rows: tuple[LatencyRow, ...]

    def shown(self, *, has_gaps: bool) -> tuple[Column, ...]:
        """The columns of latencies; without gaps those of which something is known."""
        return tuple(
            column
            for column in LATENCIES
            if has_gaps or any(row.values.get(column.value) is not None for row in self.rows)
        )

    @property
    def stamped_by(self) -> tuple[str, ...]:
        """By what frames were stamped, a clause for each way."""
        return words(row.trial.reading.latency for row in self.rows if row.trial and row.trial.reading.latency)

    @property
    def is_sample(self) -> bool:
        """Whether the tester timed some of the frames only."""
        latencies = [row.trial.reading.latency for row in self.rows if row.trial]
        return any(latency is not None and latency.sample_of is not None for latency in latencies)

    @property
    def clocks(self) -> tuple[ClockRow, ...]:
        """Of the ports whose own clocks stamped frames."""
        return clock_rows((row.size, row.trial) for row in self.rows if row.trial)

    @property
    def stamp_warnings(self) -> tuple[str, ...]:
        """What of the stamps cannot be right."""
        return tuple(said for row in self.rows if row.trial for said in warnings(row.size_words, row.trial))


@dataclass(frozen=True, slots=True)
class TrialGroup:
    """The trials of one test, in the order they were made."""

    test: str
    trials: tuple[Trial, ...]

    @property
    def spoilt(self) -> int:
        """How many were not valid."""
        return sum(1 for trial in self.trials if not trial.verdict.valid)


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """How the trials of a run divide; ``spoilt_used`` are those that had to be used after all."""

    measuring: int
    calibrating: int
    spoilt_measuring: int
    spoilt_calibrating: int
    spoilt_used: int


@dataclass(frozen=True, slots=True)
class TesterLimits:
    """What the tester by itself can do at a frame size; None where it could not be measured."""

    ceiling: CeilingFound | None
    latency: TesterLatencyFound | None

    @property
    def size(self) -> str:
        """The number of bytes, or the name of a mix."""
        known = self.ceiling or self.latency
        return "" if known is None else known.mix or f"{known.frame_bytes:g}"

    @property
    def turn(self) -> str:
        """Whose it is, where configurations or runs took turns."""
        known = self.ceiling or self.latency
        return "" if known is None else f"{known.configuration}, run {known.run}"

    @property
    def words(self) -> str:
        """How it is known."""
        if self.ceiling is None or self.ceiling.calibrated:
            return "measured without a DUT, before the first test"
        measured = "; the latency was measured without a DUT" if self.latency else ""
        return f"learnt from a shortfall: {self.ceiling.text}{measured}"


def place_of(found: CeilingFound | TesterLatencyFound) -> tuple[float, str, str, int]:
    """The frame size and the turn that it is about, so that they sort."""
    return found.frame_bytes, found.mix or "", found.configuration, found.run


@dataclass(frozen=True, slots=True)
class Report:
    """Everything on the page, in its order."""

    run_id: str
    title: str
    description: str | None
    started: str | None
    nicbench_version: str | None
    verdict: ResultVerdict
    verdict_text: str
    headline: str
    details: tuple[str, ...]
    statements: tuple[str, ...]
    labels: tuple[str, ...]
    throughput: tuple[ThroughputTable, ...]
    latency: tuple[LatencyTable, ...]
    sections: tuple[Section, ...]
    other_results: tuple[Result, ...]
    ceilings: tuple[CeilingFound, ...]
    own_latencies: tuple[TesterLatencyFound, ...]
    groups: tuple[TrialGroup, ...]
    notes: tuple[Note, ...]
    plan: Plan | None
    inventory: Mapping[str, Any]
    bench_text: str
    core_clock_hz: tuple[float, float] | None
    changed_files: tuple[str, ...] = ()
    measured_s: float | None = None
    ledger: LedgerTable | None = None
    machine: MachineTable | None = None
    detail: tuple[DetailTable, ...] = ()
    bonds: Mapping[str, Mapping[str, Bond]] = field(default_factory=dict)
    """Of each configuration, by the endpoint that stands on one, as the first round with it had it."""
    revisions: tuple[RevisionRow, ...] = ()
    captures: tuple[Capture, ...] = ()
    injected: tuple[InjectedRow, ...] = ()
    """Of DUTs with known faults: what was injected beside what was measured."""
    failed_links: tuple[FailedLink, ...] = ()
    """Of tests that pull a link: what each connection did."""
    tails: tuple[TailTable, ...] = ()
    ports: tuple[PortsTable, ...] = ()
    comparison: Comparison | None = None
    imported: ImportedView | None = None
    watched: tuple[WatchedMachine, ...] = ()
    system: SystemTable = field(default_factory=lambda: SystemTable((), ()))
    tuned: tuple[TunedRow, ...] = ()
    rounds: tuple[RoundGroup, ...] = ()
    has_frame_samples: bool = False
    """Whether every frame's times are in the run folder."""
    tools: tuple[Tool, ...] = ()
    endpoints: tuple[EndpointRow, ...] = ()
    studies: tuple[Study, ...] = ()
    statistics: StatisticsView | None = None
    rounds_used: int = 0
    """Rounds in which something was wrong and that results rest on."""

    @property
    def wishes(self) -> ReportWishes:
        """What the bench file says of its report."""
        return self.plan.report if self.plan else DEFAULT_WISHES

    @property
    def heading(self) -> str:
        """The bench file may give the report another title than the run."""
        return self.wishes.title or self.title

    @property
    def tester_limits(self) -> tuple[TesterLimits, ...]:
        """One row for each frame size at which something is known of the tester by itself, smallest first."""
        ceilings = {place_of(found): found for found in self.ceilings}
        latencies = {place_of(found): found for found in self.own_latencies}
        return tuple(TesterLimits(ceilings.get(size), latencies.get(size)) for size in sorted({*ceilings, *latencies}))

    @property
    def runs_by_themselves(self) -> bool:
        """Whether anything is shown of single runs: of a study of editors its own tables have every run."""
        return bool(self.throughput or self.latency or self.tails or self.sections)

    @property
    def trials(self) -> int:
        """How many trials were made, all tests."""
        return sum(len(group.trials) for group in self.groups)

    @property
    def counts(self) -> TrialCounts:
        """How the trials divide."""
        trials = [trial for group in self.groups for trial in group.trials]
        spoilt = [trial for trial in trials if not trial.verdict.valid]
        results = [result for table in self.throughput for result in (row.result for row in table.rows)]
        results += [row.result for table in self.latency for row in table.rows]
        results += [row.result for section in self.sections for row in section.rows]
        used = {name for result in (*results, *self.other_results) for name in result.trials}
        return TrialCounts(
            measuring=sum(1 for trial in trials if trial.request.purpose not in CALIBRATION),
            calibrating=sum(1 for trial in trials if trial.request.purpose in CALIBRATION),
            spoilt_measuring=sum(1 for trial in spoilt if trial.request.purpose not in CALIBRATION),
            spoilt_calibrating=sum(1 for trial in spoilt if trial.request.purpose in CALIBRATION),
            spoilt_used=sum(1 for trial in spoilt if trial.id in used and trial.request.purpose not in CALIBRATION),
        )

    @property
    def has_unknown_counts(self) -> bool:
        """Whether there are counts that a tester does not measure."""
        return any(
            None in trial.reading.counts.model_dump().values() for group in self.groups for trial in group.trials
        )

    @property
    def gap_floor_ns(self) -> int | None:
        """Pauses of the tester's loop that are longer were counted; one value for the whole run."""
        return next((trial.reading.health.gap_floor_ns for group in self.groups for trial in group.trials), None)
