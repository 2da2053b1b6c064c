"""What a report shows, as plain values without markup. Numbers are those of summary and journal, untouched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nicbench.core.bond import Bond
from nicbench.core.events import CeilingFound, Note, TesterLatencyFound
from nicbench.core.plan import Plan
from nicbench.core.reading import Capture
from nicbench.core.report_options import DEFAULT_WISHES, ReportWishes
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.trial import Purpose, Trial
from nicbench.report.bonds import FailedLink
from nicbench.report.comparison import Comparison
from nicbench.report.editors.study import Study
from nicbench.report.endpoints import EndpointRow
from nicbench.report.imported import ImportedView
from nicbench.report.injected import InjectedRow
from nicbench.report.ports import PortsTable
from nicbench.report.rounds import RoundGroup, Tool
from nicbench.report.section import Section
from nicbench.report.statistics.view import StatisticsView
from nicbench.report.study.revisions import RevisionRow
from nicbench.report.system_table import SystemTable, TunedRow
from nicbench.report.tails import TailTable
from nicbench.report.trial_tables import DetailTable, LedgerTable, MachineTable
from nicbench.report.watched import WatchedMachine

CALIBRATION = frozenset({Purpose.CEILING, Purpose.TESTER_LATENCY})
"""Trials that measure the tester itself."""


@dataclass(frozen=True, slots=True)
class TrialGroup:
    """The trials of one test, in the order they were made."""

    test: str
    trials: tuple[Trial, ...]

    @property
    def invalid_count(self) -> int:
        """How many were not valid."""
        return sum(1 for trial in self.trials if not trial.verdict.valid)


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """How the trials of a run divide; ``invalid_used`` are the invalid ones that had to be used after all."""

    measuring: int
    calibrating: int
    invalid_measuring: int
    invalid_calibrating: int
    invalid_used: int


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
        return bool(self.tails or self.sections)

    @property
    def trials(self) -> int:
        """How many trials were made, all tests."""
        return sum(len(group.trials) for group in self.groups)

    @property
    def counts(self) -> TrialCounts:
        """How the trials divide."""
        trials = [trial for group in self.groups for trial in group.trials]
        invalid = [trial for trial in trials if not trial.verdict.valid]
        results = [row.result for section in self.sections for row in section.rows]
        used = {name for result in (*results, *self.other_results) for name in result.trials}
        return TrialCounts(
            measuring=sum(1 for trial in trials if trial.request.purpose not in CALIBRATION),
            calibrating=sum(1 for trial in trials if trial.request.purpose in CALIBRATION),
            invalid_measuring=sum(1 for trial in invalid if trial.request.purpose not in CALIBRATION),
            invalid_calibrating=sum(1 for trial in invalid if trial.request.purpose in CALIBRATION),
            invalid_used=sum(1 for trial in invalid if trial.id in used and trial.request.purpose not in CALIBRATION),
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
