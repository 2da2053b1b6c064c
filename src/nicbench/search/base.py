"""The interface of all searches: ``measure(load, duration) -> Sample`` in, one outcome for each goal out.

A search knows nothing of packets, clocks or machines. Given the same samples it asks for the same loads, so that a
resumed run continues where the killed one stopped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.described import DescribedPlugin
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, LimitedBy

CLOSE = 1e-6
"""Loads that differ relatively by less than this are the same load: they differ by rounding only."""


class Sample(Frozen):
    """One trial as a search sees it.

    Every trial guides a search. ``may_pass`` says whether one without loss shows that its load is passed, ``may_fail``
    whether its losses are the DUT's, and ``is_even`` whether its frames left as evenly as they were due.
    """

    load_frames_per_s: float
    """The load that was asked for."""
    duration_s: float
    """The time over which frames were offered."""
    counts: Counts
    overtime: float = Field(default=1.0, ge=1.0)
    """That time over the time that was asked for."""
    may_pass: bool = True
    may_fail: bool = True
    is_even: bool = True
    held_up_share: float = Field(default=0.0, ge=0.0)
    """The sum of the tester's pauses as a share of the transmission."""
    longest_pause_share: float = Field(default=0.0, ge=0.0)
    """The longest of them: frames may have been denser by this share."""
    queued_s: float | None = Field(default=None, ge=0.0)
    """How much longer than they were sent the DUT needed for the frames that it took; None where that is unknown."""
    core_shared: bool = False
    """Somebody else used the DUT's core."""
    took_s: float | None = None
    """The time from the sample before to this one, other searches' turns included; None: ``duration_s``."""
    trial_ids: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether nothing speaks against the trial."""
        return self.may_pass and self.may_fail and self.is_even

    @cached_property
    def sent_share(self) -> float:
        """The share of the load that the tester offered; frames that the DUT refused count as offered."""
        return self.counts.offered / self.counts.intended / self.overtime if self.counts.intended else 0.0

    @cached_property
    def sent_frames_per_s(self) -> float:
        """The load that was offered."""
        return self.load_frames_per_s * self.sent_share

    @property
    def queued_share(self) -> float:
        """The share of the offered frames that were still in the DUT when the sending ended."""
        return (self.queued_s or 0.0) / self.duration_s

    @cached_property
    def forwarded_frames_per_s(self) -> float:
        """The rate at which frames came back while the DUT was busy with them."""
        kept = 1.0 - self.counts.loss_ratio
        return self.sent_frames_per_s * kept / (1.0 + self.queued_share)


Measure = Callable[[float, float], Sample]
"""Maps load in frames per second and duration in seconds to a sample."""


class Goal(Frozen):
    """A goal for a load: at most this share of the offered frames may be lost by the DUT."""

    name: str
    loss_ratio: float = Field(ge=0.0, lt=1.0)

    def passed_by(self, sample: Sample) -> bool:
        """Returns whether the DUT met the goal; frames that the tester never sent do not count (RFC 1242 3.6, 3.17)."""
        return sample.counts.loss_ratio <= self.loss_ratio


NDR = Goal(name="NDR", loss_ratio=0.0)
PDR = Goal(name="PDR", loss_ratio=0.005)


class Limits(Frozen):
    """The bounds of a search.

    ``precision`` is the relative width of the answer of a DUT whose trials agree. ``trial_duration_s`` is that of the
    trials that look for the answer, ``validation_duration_s`` that of the longer trial that its lower end must pass in
    the end (RFC 2544 section 24: "the final determination SHOULD be made with full length trials"); ``None`` without
    such a trial. ``time_s`` is the time in which the search has to end, by ``Sample.took_s``.
    """

    minimum_load_frames_per_s: float = Field(gt=0.0)
    maximum_load_frames_per_s: float = Field(gt=0.0)
    maximum_limited_by: LimitedBy
    precision: float = Field(default=0.005, gt=0.0, lt=0.5)
    trial_duration_s: float = Field(gt=0.0)
    validation_duration_s: float | None = Field(default=None, gt=0.0)
    maximum_trials: int = Field(ge=1)
    time_s: float | None = Field(default=None, gt=0.0)
    searches: int = Field(default=1, ge=1)
    """As many searches take turns in that time."""
    spends_time: bool = False
    """A search whose trials disagree goes on until its time is over, to see more of a DUT whose rate changes."""
    step_frames_per_s: float = Field(default=0.0, ge=0.0)
    """An interval of at most this width is narrow too."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.minimum_load_frames_per_s > self.maximum_load_frames_per_s:
            raise ValueError("minimum_load_frames_per_s exceeds maximum_load_frames_per_s")
        if self.validation_duration_s is not None and self.validation_duration_s <= self.trial_duration_s:
            raise ValueError("validation_duration_s does not exceed trial_duration_s: it validates nothing")
        return self

    @property
    def longest_trial_s(self) -> float:
        """The duration of a trial that the lower end of a settled answer has passed."""
        return self.validation_duration_s or self.trial_duration_s


def highest_load(
    line_rate_frames_per_s: float, ceiling_frames_per_s: float | None, asked_frames_per_s: float | None
) -> tuple[float, LimitedBy]:
    """Returns the highest load of a search, and what it is limited by: the line rate, the tester's ceiling or the load
    that was asked for, where these are known.
    """
    known = (
        (line_rate_frames_per_s, LimitedBy.LINE_RATE),
        (ceiling_frames_per_s, LimitedBy.TESTER),
        (asked_frames_per_s, LimitedBy.MAXIMUM_LOAD),
    )
    return min(((rate, limit) for rate, limit in known if rate is not None), key=lambda one: one[0])


def lowest_load(asked_frames_per_s: float, maximum_frames_per_s: float) -> float:
    """Returns the lowest load of a search: as asked for, or half the highest one where that is not above it."""
    return asked_frames_per_s if asked_frames_per_s < maximum_frames_per_s else maximum_frames_per_s / 2.0


def check_loads(minimum_frames_per_s: float, maximum_frames_per_s: float | None) -> None:
    """Raises ValueError where no load lies between those that a bench file gives."""
    if maximum_frames_per_s is not None and maximum_frames_per_s <= minimum_frames_per_s:
        raise ValueError(
            f"`maximum_load` ({maximum_frames_per_s:g} pps) is not above `minimum_load` ({minimum_frames_per_s:g} pps)"
        )


class Ended(StrEnum):
    """Why a search ended."""

    SETTLED = "settled"
    TRIALS = "trials"  # its trials were spent
    TIME = "time"  # its time was spent
    STOPPED = "stopped"  # the run was interrupted


class Outcome(Frozen):
    """What trials showed for one goal.

    The rate's ``lower`` end is the highest load up to which every trial passed, its ``upper`` end the lowest from which
    on none did. ``is_settled``: as narrow as asked for, or as the trials disagree; confirmed and validated.
    """

    goal: str
    rate: Bounded
    is_settled: bool
    ended: Ended = Ended.SETTLED
    passed_for_s: float | None = None
    """The duration of the longest trial that the lower end passed; ``None`` where nothing passed."""
    trials: int = 0
    disturbed: bool = False
    """An end rests on trials of which the tester's own state leaves open whether their losses are the DUT's."""
    wanted_validation_s: float | None = None
    """The duration of the trial that the lower end should have passed, and did not for want of time or trials."""
    misleading_frames_per_s: float | None = None
    """The lowest load that short trials passed and a validation trial failed."""


class SearchOptions(Frozen):
    """The options of every search."""

    trials_per_bound: int = Field(default=2, ge=1, le=21)
    """How many trials confirm each end of the answer; fewer where the rates that the DUT forwarded agree. 1 is RFC 2544
    to the letter.
    """


class Search(DescribedPlugin, ABC):
    """A way of choosing loads, found by its ``kind``."""

    kind: ClassVar[str]
    how: ClassVar[str]
    """How it chooses its loads, in words behind a colon."""
    Options = SearchOptions

    def __init__(self, options: SearchOptions | None = None) -> None:
        self.options = options if options is not None else self.Options()

    @abstractmethod
    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        """Measures until every goal is settled or the trials or the time are spent; returns the outcome of each goal by
        its name.
        """

    def conclude(self, samples: Sequence[Sample], goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        """Returns what the trials of a search that was interrupted show so far."""
        from nicbench.search._zones import outcomes_of  # imported here, as it imports this module

        return outcomes_of(samples, goals, limits, Ended.STOPPED)
