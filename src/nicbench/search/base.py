"""The interface of all searches: ``measure(load, duration) -> Sample`` in, one outcome for each goal out.

A search knows nothing of packets, clocks or machines. Given the same samples it asks for the same loads, so that a
resumed run continues where the killed one stopped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import date
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.clocks.reference_clock import ReferenceClock
from nicbench.core.described import DescribedPlugin
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, LimitedBy

CLOSE = 1e-9
"""Loads that differ relatively by less than this are the same load: they differ by rounding only."""
CLOCK_CHANGES = 0.01
"""A clock is worth saying where it changed relatively by more than this."""
CERTAIN = 0.9
"""Below this probability, and above its opposite, the trials do not tell whether the rate follows the clock."""


class Sample(Frozen):
    """One trial as a search sees it. ``valid`` is false where the least disturbed of several repeats had to be used."""

    load_frames_per_s: float
    duration_s: float
    counts: Counts
    valid: bool = True
    pacing_uncertainty: float = Field(default=0.0, ge=0.0)
    """The tester's longest pause as a share of the transmission: frames may have been denser by this share."""
    slow_share: float | None = Field(default=None, ge=0.0, le=1.0)
    """The share of the looks at the DUT's core that found it slow; None where nobody looked."""
    looks: int = 0
    """The looks at that core."""
    independent_looks: float | None = None
    """How many looks at random moments would tell the share as well (``stats.looks.count_independent``)."""
    clock_hz: float | None = Field(default=None, gt=0.0)
    """The mean clock of the DUT's core over the trial; None where it was not measured."""
    highest_clock_hz: float | None = Field(default=None, gt=0.0)
    """The highest clock seen of that core by then, the 99th percentile of all looks; None where it was not measured."""
    reference_clock: ReferenceClock | None = None
    """The highest clock that its machine has shown in earlier runs; None where none is known."""
    adjusted: bool = False
    """Somebody else used the core for so much of the time that the trial counts only because the search allows for it.
    """
    trial_ids: tuple[str, ...] = ()

    @property
    def sent_share(self) -> float:
        """The share of the intended frames that the tester offered; frames that the DUT refused count as offered."""
        offered = self.counts.offered
        return offered / self.counts.intended if self.counts.intended else 0.0

    def count_at(self, load_frames_per_s: float) -> Self:
        """Returns this sample as one of the load that was offered: the tester intended no more than it sent."""
        offered = self.counts.offered
        counts = self.counts.model_copy(update={"intended": offered, "unsent_tester": 0})
        return self.model_copy(update={"load_frames_per_s": load_frames_per_s, "counts": counts})


Measure = Callable[[float, float], Sample]
"""Maps load in frames per second and duration in seconds to a sample; raises CeilingReached."""


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

    ``precision`` is the relative width of the answer: (upper - lower) / upper; an interval of at most
    ``narrow_enough_frames_per_s`` is taken for narrow too. ``trial_duration_s`` is that of the trials that look for the
    answer, ``validation_duration_s`` that of the longer trial that its lower bound must pass in the end (RFC 2544
    section 24: "the final determination SHOULD be made with full length trials"); ``None`` where there is none.
    """

    minimum_load_frames_per_s: float = Field(gt=0.0)
    maximum_load_frames_per_s: float = Field(gt=0.0)
    maximum_limited_by: LimitedBy
    precision: float = Field(default=0.005, gt=0.0, lt=0.5)
    trial_duration_s: float = Field(gt=0.0)
    validation_duration_s: float | None = Field(default=None, gt=0.0)
    maximum_trials: int = Field(ge=1)
    narrow_enough_frames_per_s: float = Field(default=0.0, ge=0.0)
    asked_up_to_frames_per_s: float | None = Field(default=None, gt=0.0)
    """No higher load was asked for in the end, as the tester fell short of what it has sent in other trials: no ceiling
    of its own, and no limit of the rate.
    """

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.minimum_load_frames_per_s > self.maximum_load_frames_per_s:
            raise ValueError("minimum_load_frames_per_s exceeds maximum_load_frames_per_s")
        if self.validation_duration_s is not None and self.validation_duration_s <= self.trial_duration_s:
            raise ValueError("validation_duration_s does not exceed trial_duration_s: it validates nothing")
        return self

    @property
    def longest_trial_s(self) -> float:
        """The duration of a trial that the lower bound of a settled answer has passed."""
        return self.validation_duration_s or self.trial_duration_s

    def lowered_to(self, ceiling_frames_per_s: float) -> Limits | None:
        """Returns the limits for a tester that cannot send more; ``None`` where even the minimum is too much.

        The maximum is half a precision below the ceiling and falls by half a precision at least, so that a ceiling that
        varies from trial to trial ends the restarts instead of prolonging them.
        """
        room = 1.0 - self.precision / 2
        maximum = min(ceiling_frames_per_s, self.maximum_load_frames_per_s) * room
        if maximum < self.minimum_load_frames_per_s:
            return None
        return self.model_copy(update={"maximum_load_frames_per_s": maximum, "maximum_limited_by": LimitedBy.TESTER})

    def limited_to_share(self, share: float) -> Limits | None:
        """Returns the limits, as loads that are sent, for a tester that sends this share of what it is asked for.

        ``None`` where it would have to be asked for more than the maximum to send the minimum.
        """
        maximum = self.maximum_load_frames_per_s * share
        if maximum < self.minimum_load_frames_per_s:
            return None
        return self.model_copy(update={"maximum_load_frames_per_s": maximum, "maximum_limited_by": LimitedBy.TESTER})


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


class CeilingReached(Exception):  # noqa: N818 - a finding, no error
    """The tester repeatedly could not send what was asked; ``rate_frames_per_s`` is what it sent.

    ``disturbed`` is set where only an invalid trial shows it: results that rest on the ceiling are then marked.
    """

    def __init__(self, rate_frames_per_s: float, *, disturbed: bool = False) -> None:
        super().__init__(f"the tester sends no more than {rate_frames_per_s:.0f} frames/s")
        self.rate_frames_per_s = rate_frames_per_s
        self.disturbed = disturbed


class FellShort(CeilingReached):
    """The tester sent less than in another trial of the search: that trial was disturbed, and shows no ceiling.

    ``is_sample`` is set where the trial is known, and counts at what was sent.
    """

    def __init__(self, rate_frames_per_s: float, *, is_sample: bool) -> None:
        super().__init__(rate_frames_per_s, disturbed=True)
        self.is_sample = is_sample


class Contradiction(Frozen):
    """A trial that disagrees with the reported interval: it passed above it, or failed below it."""

    load_frames_per_s: float
    passed: bool
    loss_ratio: float
    trial_ids: tuple[str, ...] = ()


class Estimate(Frozen):
    """What an estimated rate says beyond its interval: of a core that others use too, and how well the model fits.

    The rate itself is that of a core that nobody else uses, a share of 0, at its highest clock, which an earlier run
    may have seen. ``slope`` is by how much of it the rate falls where the core is slow all the time; None where no
    trial saw the core slow, so that there is nothing to tell.
    """

    slope: float | None = None
    slope_lower: float | None = None
    slope_upper: float | None = None
    least_share: float | None = None
    """Of slow looks, in the quietest trial; None where nobody looked."""
    extrapolated: bool = False
    """Whether no trial came near a share of 0, or near the clock for which the rate is stated."""
    observed: bool = False
    """Whether the model does not fit: the rate is what the trials showed, as their clocks and neighbours were."""
    clock_hz: float | None = None
    """The clock for which the rate is stated, where it follows the clock; None where nobody looked."""
    reference_seen_on: date | None = None
    """The day on which the machine showed that clock; None where it is the highest clock seen in the search itself."""
    lowest_clock_hz: float | None = None
    """Of the trials' mean clocks."""
    follows_clock: float | None = None
    """The probability that the rate is proportional to the core's clock, and not independent of it."""
    half_frames_per_s: float | None = None
    """What the DUT bore, as the machine was, in half of the trials."""
    nine_tenths_frames_per_s: float | None = None
    """What it bore in nine of ten."""
    scatter: float
    """The deviation of the trials from the model, relative."""

    @property
    def stated_clock_hz(self) -> float | None:
        """The clock for which the rate is stated, where the rate follows the clock and the clock changed."""
        return self.clock_hz if self._clock_changed and (self.follows_clock or 0.0) > 0.5 else None

    @property
    def unscaled_clock_hz(self) -> float | None:
        """The lowest clock of the trials, where the rate is one of the clocks as they were: below the one for which
        other rates are stated, and nobody knows whether it follows them. None where the rate is the same at any clock.
        """
        independent = self.follows_clock is not None and self.follows_clock < 1.0 - CERTAIN
        is_unscaled = self._clock_changed and self.stated_clock_hz is None and not independent
        return self.lowest_clock_hz if is_unscaled else None

    @property
    def _clock_changed(self) -> bool:
        if not self.clock_hz or not self.lowest_clock_hz:
            return False
        return self.lowest_clock_hz < (1.0 - CLOCK_CHANGES) * self.clock_hz


class Outcome(Frozen):
    """What the search found for one goal.

    ``interval``: a load passed and a higher one failed. ``at_least``: the highest load allowed passed. ``none``:
    nothing passed. The ``value`` of the rate is its lower bound: the highest load that the DUT was seen to carry.
    """

    goal: str
    outcome: Literal["interval", "at_least", "none"]
    rate: Bounded
    converged: bool
    passed_for_s: float | None = None
    """The duration of the longest trial that the lower bound passed; ``None`` where nothing passed."""
    contradictions: tuple[Contradiction, ...] = ()
    trials: int = 0
    disturbed: bool = False
    adjusted: bool = False
    """Trials count whose DUT shared its core with somebody else."""
    deciding_trial_ids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    estimate: Estimate | None = None
    """Of a search that estimates; its interval holds the rate with the stated confidence, and need not have passed."""


class SearchOptions(Frozen):
    """The options of every search."""

    trials_per_bound: int = Field(default=3, ge=1, le=21)
    """An odd number. A bound is settled by the majority of so many trials, where `maximum_trials` allows. 1 is RFC
    2544 to the letter.
    """

    @model_validator(mode="after")
    def _has_a_majority(self) -> Self:
        if self.trials_per_bound % 2 == 0:
            raise ValueError("trials_per_bound must be odd, so that there is a majority")
        return self

    @property
    def votes_needed(self) -> int:
        """The number of equal results that settles a bound."""
        return self.trials_per_bound // 2 + 1


class Search(DescribedPlugin, ABC):
    """A way of choosing loads. Each is a file of its own, found by its ``kind``."""

    kind: ClassVar[str]
    Options: ClassVar[type[SearchOptions]] = SearchOptions
    adjusts: ClassVar[bool] = False
    """Whether it allows for what somebody else took of the DUT's core: a trial need not be repeated for that."""

    def __init__(self, options: SearchOptions | None = None) -> None:
        self.options = options if options is not None else self.Options()

    @abstractmethod
    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        """Measures until every goal is settled or the trials are spent; returns the outcome of each goal by its
        name.
        """
