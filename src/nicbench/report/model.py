"""What a report shows, as plain values without markup. Its numbers are those of the summary and the
journal, unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from nicbench.core.bond import Bond
from nicbench.core.events import CeilingFound, ConfigurationSet, Note, TesterLatencyFound
from nicbench.core.frozen import frozen
from nicbench.core.plan import DEFAULT_WISHES, Plan, ReportWishes
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.round import EndpointFacts, Round
from nicbench.core.trial import Purpose, Trial
from nicbench.report.comparison import Comparison
from nicbench.report.editors import Study
from nicbench.report.imported import ImportedView
from nicbench.report.injected import InjectedRow
from nicbench.report.overview import Overview
from nicbench.report.section import Section
from nicbench.report.sections.rounds import Tool, Variable
from nicbench.report.statistics import StatisticsView
from nicbench.report.system_table import SystemTable, TunedRow
from nicbench.report.tails import PortsTable, TailTable
from nicbench.report.watched import CpuUsers, WatchedMachine

CALIBRATION = frozenset({Purpose.CEILING, Purpose.TESTER_LATENCY})
"""The purposes of trials that measure the tester itself."""


def place_of(found: CeilingFound | TesterLatencyFound) -> tuple[float, str, str, int]:
    """Returns a sortable key: the frame size and the turn that something was found for."""
    return found.frame_bytes, found.mix or "", found.configuration, found.run


@frozen
class Report:
    """Everything on the page, in its order."""

    run_id: str
    title: str
    nicbench_version: str | None
    verdict: ResultVerdict
    headline: str
    details: tuple[str, ...]
    plan: Plan | None
    description: str | None = None
    started: str | None = None
    verdict_text: str = ""
    statements: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    other_results: tuple[Result, ...] = ()
    ceilings: tuple[CeilingFound, ...] = ()
    own_latencies: tuple[TesterLatencyFound, ...] = ()
    groups: Mapping[str, Sequence[Trial]] = field(default_factory=dict)
    """The trials of each test, in the order in which they were made."""
    notes: tuple[Note, ...] = ()
    inventory: Mapping[str, Any] = field(default_factory=dict)
    bench_text: str = ""
    core_clock_hz: tuple[float, float] | None = None
    changed_files: tuple[str, ...] = ()
    measured_s: float | None = None
    ledger: tuple[Trial, ...] = ()
    """The trials that lost frames and whose counters were read."""
    known_trials: Mapping[str, Trial] = field(default_factory=dict)
    """The trials of the run by their id, in the order in which they were made."""
    telling_trials: Mapping[str, Sequence[Trial]] = field(default_factory=dict)
    """For each test, the trials that show frame by frame what its results rest on."""
    bonds: Mapping[str, Mapping[str, Bond]] = field(default_factory=dict)
    """For each configuration, its bonds by endpoint, as they were in the first round with one."""
    revisions: tuple[tuple[str, str], ...] = ()
    injected: tuple[InjectedRow, ...] = ()
    """For DUTs with known faults: what was injected, compared with what was measured."""
    failed_links: tuple[Round, ...] = ()
    """The rounds in which a test took a link down."""
    tails: tuple[TailTable, ...] = ()
    ports: tuple[PortsTable, ...] = ()
    comparison: Comparison | None = None
    imported: ImportedView | None = None
    watched: tuple[WatchedMachine, ...] = ()
    system: SystemTable = field(default_factory=lambda: SystemTable((), ()))
    tuned: tuple[TunedRow, ...] = ()
    rounds: Mapping[str, Sequence[Round]] = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()
    variables: tuple[Variable, ...] = ()
    endpoints: tuple[EndpointFacts, ...] = ()
    studies: tuple[Study, ...] = ()
    statistics: StatisticsView | None = None
    cpu_users: tuple[CpuUsers, ...] = ()
    """For rounds: who used the CPUs of each machine."""
    overview: Overview = field(default_factory=lambda: Overview(None, ()))
    configured: tuple[ConfigurationSet, ...] | None = None
    """For a session of clients: the configurations that they set; None for a run."""
    rounds_used: int = 0
    """The number of rounds in which something was wrong and that results rest on."""

    @property
    def wishes(self) -> ReportWishes:
        """What the bench file asks of its report."""
        return self.plan.report if self.plan else DEFAULT_WISHES

    @property
    def heading(self) -> str:
        """The title of the report; the bench file may give it another title than the run."""
        return self.wishes.title or self.title

    @property
    def own_sections(self) -> tuple[Section, ...]:
        """The sections of single runs that say more than the comparison of configurations."""
        sections = tuple(section for section in self.sections if not section.is_bare)
        if not self._is_of_one_run:
            return sections
        searched = (section for section in sections if section.table.rates is not None)
        are_beside = self.comparison is not None and not any(table.is_long for table in self.comparison.rates)
        return tuple(section.without_rates() if are_beside else section for section in searched)

    @property
    def own_tails(self) -> tuple[TailTable, ...]:
        """The long tails of single runs that say more than the comparison of configurations."""
        return () if self._is_of_one_run else self.tails

    @property
    def _is_of_one_run(self) -> bool:
        """Whether configurations with one run each are compared: their numbers stand side by side as they are."""
        return self.comparison is not None and self.comparison.runs == 1 and not self.comparison.warm_ups

    @property
    def transmissions(self) -> tuple[Trial, ...] | None:
        """The transmissions of a session of clients; None for a run."""
        if self.configured is None:
            return None
        return tuple(self.known_trials.values())

    @property
    def gap_floor_ns(self) -> int | None:
        """The gap floor, above which pauses of the tester's loop were counted; one value for the whole run."""
        return next((trial.reading.health.gap_floor_ns for trial in self.known_trials.values()), None)
