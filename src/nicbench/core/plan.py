"""The models of plan.json, the bench file as resolved on the machine, and of tuning.json, every requested setting."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, StringConstraints

from nicbench.core.base import Frozen, optional
from nicbench.core.machine import Hypervisor, MonitorPlan
from nicbench.core.turn import DEFAULT, ONCE, Runs

# The options of a bench file for the report of its run; they change nothing that is measured.


class Layout(StrEnum):
    """The layout of a report; each is a file of that name in ``report/layouts``."""

    STUDY = "study"
    """From the question to the answer: for readers who want to know the outcome, and to repeat the measurement."""
    DATASHEET = "datasheet"
    """One sheet for each test: for readers who want the setup, the settings and the numbers side by side."""


Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300, pattern=r"^[^\n\r]*$")]
"""A text on one line, of at most 300 characters."""


Paragraphs = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000)]
"""A text of several lines; an empty line begins a paragraph."""


def _number(value: Any) -> Any:
    """The number of a revision as text; ValueError for one whose last zeros YAML has dropped."""
    if isinstance(value, float):
        raise ValueError(f"{value} may have lost a zero at its end: write the number in quotes, as in `'{value}'`")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class Revision(Frozen):
    """One entry of the revision history that the report's author wrote."""

    number: Annotated[Line, BeforeValidator(_number)] | None = None
    """In quotes (`"1.0"`), as YAML drops zeros. Either all revisions have one or none has."""
    date: date
    """`2026-11-22`."""
    text: Line
    """What changed."""


def _check_history(revisions: tuple[Revision, ...]) -> tuple[Revision, ...]:
    """Gives the history back; ValueError where it is not in order, or its numbers are incomplete or not distinct."""
    numbers = [each.number for each in revisions]
    if any(numbers) and not all(numbers):
        raise ValueError("some revisions have a `number` and others have none: give one to each, or to none")
    twice = next((number for number in numbers if number and numbers.count(number) > 1), None)
    if twice is not None:
        raise ValueError(f"the number {twice} is that of two revisions: give each its own")
    if [each.date for each in revisions] != sorted(each.date for each in revisions):
        raise ValueError("the dates are not in order: write the oldest revision first")
    return revisions


class ReportWishes(Frozen):
    """The section ``report`` of a bench file."""

    layout: Layout = Layout.STUDY
    """`study`: from the question to the answer. `datasheet`: a sheet for each test."""
    title: Line | None = None
    """The heading of the report; without it the title of the file."""
    question: Line | None = None
    """The question of the run, in one sentence; without it one is made of the tests."""
    author: Line | None = None
    """Who is responsible for the report."""
    contact: Line | None = None
    """Where to ask: an address of a page or of mail. It stands behind the author."""
    sponsor: Line | None = None
    """Who paid for the test, or lent what was tested."""
    licence: Line | None = None
    """Under which licence others may use report and data, as SPDX writes it: `CC-BY-4.0`."""
    disclaimer: Paragraphs | None = None
    """What the publisher of the report states about its use. It stands above the foot of the page."""
    how_to: Annotated[tuple[Paragraphs, ...], Field(max_length=100)] = ()
    """The author's own steps, in their order, before nicbench's under “How to repeat it”: cabling, BIOS, a switch."""
    about: Paragraphs | None = None
    """The section “About this report” in the author's words. An empty line begins a paragraph."""
    audience: Paragraphs | None = None
    """The section “Audience”: for whom the report is written."""
    revisions: Annotated[tuple[Revision, ...], Field(max_length=100), AfterValidator(_check_history)] = ()
    """The revision history, oldest first. Number and date of the last entry stand below the title."""

    @property
    def revision(self) -> Revision | None:
        """The revision that the report is: the last one of its history; None where no revision has a number."""
        return self.revisions[-1] if self.revisions and self.revisions[-1].number else None


DEFAULT_WISHES = ReportWishes()
"""The options where the bench file has no section ``report``."""


# The model of plan.json: the bench file as resolved on the machine, with everything that a report must disclose.


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


# The model of tuning.json: every requested setting of each host: before, requested, during and after the undo.


Values = dict[str, JsonValue]
"""A setting as plain data: flat, with units in the names."""


class Outcome(StrEnum):
    """The outcome of a setting."""

    CHANGED = "changed"
    ALREADY = "already"
    """The value was there before: nothing was changed, and nothing will be undone."""
    SKIPPED = "skipped"
    """The setting of a profile does not exist on this machine; ``reason`` says why."""
    MET = "met"
    """The setting was only checked, and has the requested value."""
    NOT_MET = "not_met"
    """The setting was only checked, and has another value, ``during``."""
    FAILED = "failed"
    """The setting could not be applied, and the run was refused; ``reason`` says why."""


class TunedSetting(Frozen):
    """One setting in one place. A value that is not known is ``None``."""

    configuration: str = DEFAULT
    run: int = 1
    host: str
    """The host's name in the bench file; in a lab ``tester``, ``dut``, or ``local`` for the machine itself."""
    scope: str
    device: str | None
    item: str
    source: str
    """The origin of the setting: ``bench file``, or ``profile`` and its name."""
    options: dict[str, Any]
    outcome: Outcome
    reason: str | None = None
    commands: tuple[str, ...] = optional(())
    """The commands that made the setting, where they say more than its values."""
    before: Values | None = None
    """Everything that was read before the change, not only the requested keys."""
    asked: Values | None = None
    during: Values | None = None
    """The requested keys, as read once the whole test setup was in place, before the first trial."""
    at_end: Values | None = None
    """The requested keys, as read after the last trial and before the undo."""
    after: Values | None = None
    """The requested keys, as read after the undo.

    None where the place no longer exists (the namespace of a lab) or the run was killed.
    """
    strayed: tuple[str, ...] | None = None
    """The requested keys whose value ``during`` is another one than requested, as the item compares them."""
    not_restored: tuple[str, ...] | None = None
    """The requested keys whose value ``after`` is another one than ``before``, as the item compares them."""


class TuningDocument(Frozen):
    """The content of tuning.json: rows in the order in which they were applied, turn after turn."""

    format: Literal[1] = 1
    settings: tuple[TunedSetting, ...] = ()


class PlannedSetting(Frozen):
    """One row of a dry run. ``outcome`` is the expected one; None where it cannot be predicted, for the ``reason``."""

    configuration: str = DEFAULT
    host: str
    device: str | None
    item: str
    source: str
    outcome: Outcome | None
    reason: str | None = None
    now: Values | None = None
    asked: Values | None = None
