"""The model of plan.json: the bench file as resolved on the machine, with everything that a report must disclose."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.hypervisor import Hypervisor
from nicbench.core.monitor import MonitorPlan
from nicbench.core.report_options import DEFAULT_WISHES, ReportWishes
from nicbench.core.turn import DEFAULT, ONCE, Runs


class PlannedTest(Frozen):
    """One test of the bench file, resolved: every option with its default filled in."""

    name: str
    method: str
    description: str
    procedure: str = ""
    """The steps of the method, the standard it follows and what it verifies, in plain words."""
    options: dict[str, Any]
    points: int
    estimate_s: float


class ThresholdRow(Frozen):
    """One row of the table of thresholds behind the verdicts."""

    name: str
    value: float
    default: float | None = None
    unit: str
    why: str


class Difference(Frozen):
    """A setting of the bench file that differs between configurations, as written in each; None: not given there."""

    setting: str
    values: dict[str, str | None]


class PlannedTurn(Frozen):
    """One run of one configuration, as planned; turns are listed in the order in which they run."""

    configuration: str
    run: int
    points: int
    estimate_s: float
    warm_up: bool = False
    is_sure: bool = True
    """Whether the turn runs whatever the earlier runs find."""


class Plan(Frozen):
    """The plan of one configuration, written before the first trial.

    Facts that become known with the engine (ports, EAL arguments) are in ``tester``.
    """

    run_id: str
    title: str
    description: str | None = None
    nicbench_version: str
    seed: int
    command: tuple[str, ...] = ()
    lab: dict[str, Any] | None = None
    dut: dict[str, Any] = Field(default_factory=dict)
    dut_disclosure: dict[str, Any] = Field(default_factory=dict)
    cores: dict[str, Any] = Field(default_factory=dict)
    reference_clock: dict[str, Any] | None = Field(default=None, exclude=True)
    """Of runs whose rates were estimated for a clock. It is read, and not written."""
    link_bits_per_s: float | None = None
    link_is_nominal: bool = False
    simulated: bool = False
    statements: tuple[str, ...] = ()
    facts: dict[str, Any] = Field(default_factory=dict)
    tester: dict[str, Any] = Field(default_factory=dict)
    traffic: dict[str, Any] = Field(default_factory=dict)
    addressing: tuple[dict[str, Any], ...] = ()
    tests: tuple[PlannedTest, ...] = ()
    thresholds: tuple[ThresholdRow, ...] = ()
    deviations: tuple[str, ...] = ()
    declared: dict[str, Any] = Field(default_factory=dict)
    """Facts that no program can read, as the bench file declares them: by machine or other object."""
    hypervisors: dict[str, Hypervisor] = Field(default_factory=dict)
    """What the hypervisors of guests are set to, as their administrators saved it."""
    report: ReportWishes = DEFAULT_WISHES
    """The options of the bench file for the report."""
    monitors: tuple[MonitorPlan, ...] = ()
    """How each machine is monitored; empty where none is."""
    configuration: str = DEFAULT
    compared: tuple[str, ...] = ()
    """The names of all configurations, in the order of the bench file; empty where no configurations are compared."""
    axes: dict[str, tuple[str, ...]] = Field(default_factory=dict, exclude_if=lambda axes: not axes)
    """The values of each axis, where the configurations are all of their combinations."""
    differences: tuple[Difference, ...] = ()
    turns: tuple[PlannedTurn, ...] = ()
    runs: Runs = ONCE
    """The requested number of runs of each configuration."""
    others: tuple[Plan, ...] = ()
    """The plans of the other configurations whose turn has begun; this plan is that of the first turn."""

    @property
    def each(self) -> tuple[Plan, ...]:
        """The known plan of each configuration, in the order of the bench file."""
        known = (self, *self.others)
        return (
            tuple(sorted(known, key=lambda plan: self.compared.index(plan.configuration))) if self.compared else known
        )
