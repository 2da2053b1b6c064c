"""Typed events of a run and the bus that carries them; journal, progress bar and ``--json`` subscribe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.round import Round
from nicbench.core.trial import Trial
from nicbench.core.turn import DEFAULT


class RunStarted(Frozen):
    """A run begins: the first line of a journal. ``wall_time`` is only a label and never computed with."""

    event: Literal["run_started"] = "run_started"
    run_id: str
    title: str
    nicbench_version: str
    wall_time: str
    seed: int
    resumed: bool = False
    bench_sha256: str | None = None
    redacted: bool = False
    """Whether identifiers of machines are removed from what is written; a resumed run keeps this choice."""


class UsedMachine(Frozen):
    """A machine of a run. ``machine_hash`` is a hash of its machine id and name, comparable within this run alone."""

    machine_hash: str
    host_name: str
    cards: dict[str, str]
    """PCI vendor and device number of each network adapter, by its slot."""


class MachinesUsed(Frozen):
    """The machines, by the hosts of the bench file; again where a run was resumed on other machines."""

    event: Literal["machines_used"] = "machines_used"
    machines: dict[str, UsedMachine]


class StageStarted(Frozen):
    """A stage of the run (lab, dut, tester, test, ...) begins."""

    event: Literal["stage_started"] = "stage_started"
    stage: str
    text: str


class TurnStarted(Frozen):
    """One run of one configuration begins, the ``number``-th ``of`` all; not published where there is only one turn."""

    event: Literal["turn_started"] = "turn_started"
    configuration: str
    run: int
    number: int
    of: int
    warm_up: bool = False
    at_most: bool = False
    """Whether ``of`` is an upper limit: the actual number of turns depends on the results."""


class TurnFinished(Frozen):
    """All results of one run of one configuration are in the journal, and the machine is in its original state."""

    event: Literal["turn_finished"] = "turn_finished"
    configuration: str
    run: int
    warm_up: bool = False


class IntervalsChecked(Frozen):
    """The check, after a number of runs of each configuration, whether more runs are needed."""

    event: Literal["intervals_checked"] = "intervals_checked"
    runs: int
    reached: bool
    text: str


class DriverChosen(Frozen):
    """The driver of the tester's kernel interfaces, where the bench file leaves it to the run, and why this one."""

    event: Literal["driver_chosen"] = "driver_chosen"
    driver: str
    reason: str


class ConfigurationSet(Frozen):
    """A client of `nicbench serve` set a configuration, which is ``file`` of the run folder; ``number`` counts them."""

    event: Literal["configuration_set"] = "configuration_set"
    number: int
    ports: int
    flows: int
    file: str


class TestStarted(Frozen):
    """A test begins; ``points`` is how many measurement points (frame sizes) it has, ``results`` how many results it
    gives at most: None where that is not known beforehand.
    """

    event: Literal["test_started"] = "test_started"
    test: str
    method: str
    points: int
    results: int | None = None
    estimate_s: float
    kept: int = 0
    """The trials or rounds of it that the journal of a resumed run has; they are not made again."""
    kept_s: float = 0.0
    """The seconds that those took, by what was asked for."""


class TrialStarted(Frozen):
    """A trial begins (not journaled)."""

    event: Literal["trial_started"] = "trial_started"
    test: str
    parameters: dict[str, Any]
    purpose: str
    load_frames_per_s: float | None
    duration_s: float
    repeat: int
    bidirectional: bool = False


class TrialFinished(Frozen):
    """A trial is complete: the raw sample, written to the journal and flushed at once."""

    event: Literal["trial_finished"] = "trial_finished"
    trial: Trial

    @property
    def sample(self) -> Trial:
        """The trial, under the name that this event shares with ``RoundFinished``."""
        return self.trial


class RoundBegun(Frozen):
    """A round of workloads begins (not journaled)."""

    event: Literal["round_begun"] = "round_begun"
    test: str
    parameters: dict[str, Any]
    jobs: int
    duration_s: float
    repeat: int


class RoundFinished(Frozen):
    """A round is complete: the report of every tool, written to the journal and flushed at once."""

    event: Literal["round_finished"] = "round_finished"
    round: Round

    @property
    def sample(self) -> Round:
        """The round, under the name that this event shares with ``TrialFinished``."""
        return self.round


class CeilingFound(Frozen):
    """The tester's own ceiling at a frame size, calibrated without a DUT or learnt from repeated equal shortfalls."""

    event: Literal["ceiling_found"] = "ceiling_found"
    configuration: str = DEFAULT
    run: int = 1
    frame_bytes: int | float
    mix: str | None = None
    ceiling_frames_per_s: float | None
    calibrated: bool
    text: str


class TesterLatencyFound(Frozen):
    """The tester's own median latency in nanoseconds at a frame size, over a cable in place of the DUT."""

    event: Literal["tester_latency_found"] = "tester_latency_found"
    configuration: str = DEFAULT
    run: int = 1
    frame_bytes: int | float
    mix: str | None = None
    latency_p50_ns: int
    text: str


class GoalBounds(Frozen):
    """The rate of one goal of a search so far: the loads per port between which it lies; None where none is known."""

    goal: str
    passing_frames_per_s: float | None
    failing_frames_per_s: float | None


class BoundsNarrowed(Frozen):
    """What the trials of a search say so far; published after each new trial."""

    event: Literal["bounds_narrowed"] = "bounds_narrowed"
    test: str
    parameters: dict[str, Any]
    bounds: tuple[GoalBounds, ...]
    trials: int
    maximum_trials: int
    """The number of trials that the search may make; it ends earlier where it is done earlier."""


class Waiting(Frozen):
    """The run waits for a machine that somebody else holds, or for its turn; again where this changes."""

    event: Literal["waiting"] = "waiting"
    text: str
    """What it waits for, who holds it or comes before, and the place in the queue."""


class ResultReady(Frozen):
    """A result (a row of a table) is complete."""

    event: Literal["result_ready"] = "result_ready"
    test: str
    result: Result


class Note(Frozen):
    """A note for readers of the run (a repeat, a torn journal line that was dropped, a leftover that was removed)."""

    event: Literal["note"] = "note"
    level: Literal["info", "warning", "error"] = "info"
    text: str


class RunFinished(Frozen):
    """A run ended by itself: the last line of its journal."""

    event: Literal["run_finished"] = "run_finished"
    verdict: ResultVerdict
    complete: bool = True
    """False where the run stopped early, so that ``nicbench resume`` can continue it."""
    measured_s: float | None = None
    wall_time: str | None = None
    """The wall-clock time, only a label; None in journals from before 2026-11."""


Event = Annotated[
    RunStarted
    | MachinesUsed
    | StageStarted
    | TurnStarted
    | TurnFinished
    | IntervalsChecked
    | DriverChosen
    | ConfigurationSet
    | TestStarted
    | TrialStarted
    | TrialFinished
    | RoundBegun
    | RoundFinished
    | CeilingFound
    | TesterLatencyFound
    | BoundsNarrowed
    | Waiting
    | ResultReady
    | Note
    | RunFinished,
    Field(discriminator="event"),
]


class Bus:
    """Passes each event to every subscriber in the order of subscription, synchronously, so the journal comes first."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[[Event], None]] = []

    def subscribe(self, subscriber: Callable[[Event], None]) -> None:
        """Adds a subscriber, which must not raise because of a failed display."""
        self._subscribers.append(subscriber)

    def publish(self, event: Event) -> None:
        """Passes an event to every subscriber."""
        for subscriber in self._subscribers:
            subscriber(event)
