"""What every search does around its choice of loads: it keeps samples, counts the budget and restarts below a
ceiling.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import accumulate, combinations

from nicbench.core.result import Bounded, LimitedBy
from nicbench.core.units import format_rate
from nicbench.search._interval import SENT_LESS, Reading, explain_none, outcome_of, read, same_load
from nicbench.search._narrowing import halve, next_trial
from nicbench.search._rare_loss import explain_rare_loss
from nicbench.search.base import CLOSE, CeilingReached, FellShort, Goal, Limits, Measure, Outcome, Sample, Search
from nicbench.stats.shortfalls import Offer, describe_share, find_constant_share

WORTH_A_SHARE = 0.1
"""A tester that falls short by less than this part of the precision need not be asked for more."""

SHORT_IN_A_ROW = 3
"""After so many trials in a row that sent less than others did, no load above that is asked for again."""
TOLD_IN_A_ROW = 2
"""The same where each of them was repeated, and sent as little."""


class BudgetSpent(Exception):  # noqa: N818 - it ends a search, it is no error
    """The trials of the search are used up; the outcome is computed from the samples so far."""


class ShareSpent(Exception):  # noqa: N818 - as above
    """The remaining trials are reserved for later steps."""


class ShareFound(Exception):  # noqa: N818 - a finding, no error
    """The tester sends a constant share of what it is asked for: the search begins anew with loads that are sent."""

    def __init__(self, share: float) -> None:
        super().__init__(describe_share(share))
        self.share = share


class Recorder:
    """Measures at most ``maximum_trials`` times over all restarts; a restarted search first gets the known samples.

    Loads are those that are sent: a tester that falls short by a constant ``share`` is asked for so much more, unless
    the search does not begin anew for it (``finds_share``).
    """

    def __init__(self, measure: Measure, limits: Limits, *, finds_share: bool = True) -> None:
        self.samples: list[Sample] = []
        self.share = 1.0
        self._measure = measure
        self._finds_share = finds_share
        self._limits = limits
        self._trials_left = limits.maximum_trials
        self._ceilings = 0
        self._reserved = 0
        self._served: list[int] = []
        self._offers: list[Offer] = []
        self._fell_short: list[Sample] = []
        self._short_in_a_row = 0

    @property
    def trials_left(self) -> int:
        """The number of trials that may be made before the reserved ones."""
        return max(0, self._trials_left - self._reserved)

    def reserve(self, trials: int) -> None:
        """Reserves this many of the remaining trials, until the next call."""
        self._reserved = trials

    def restart(self) -> None:
        """Lets a search that asks again for a load get the sample that was measured before."""
        self._served = []

    def use_share(self, share: float) -> None:
        """Counts every trial, also one that seemed to show a ceiling, at the load that was sent, from now on."""
        self.share = share
        if self._fell_short and self._ceilings:
            self._trials_left -= 1  # the first one was not counted, and now it is a sample
        self.samples = [self._at_what_was_sent(sample) for sample in (*self._fell_short, *self.samples)]
        self._fell_short = []
        self.restart()

    def measure(self, load_frames_per_s: float, duration_s: float) -> Sample:
        """Returns the next sample at this load: one from before the restart, else a new trial."""
        for index, sample in enumerate(self.samples):
            if index in self._served:
                continue
            if same_load(sample.load_frames_per_s, load_frames_per_s) and same_load(sample.duration_s, duration_s):
                self._served.append(index)
                # Rounding apart, it is the load asked for; MLRsearch compares exactly.
                return sample.model_copy(update={"load_frames_per_s": load_frames_per_s, "duration_s": duration_s})
        return self._new_trial(load_frames_per_s, duration_s)

    def _new_trial(self, load_frames_per_s: float, duration_s: float) -> Sample:
        if self._trials_left <= 0:
            raise BudgetSpent
        if self._trials_left <= self._reserved:
            raise ShareSpent
        self._trials_left -= 1
        try:
            sample = self._run_trial(load_frames_per_s, duration_s)
        except FellShort:
            self._short_in_a_row += 1
            raise
        except CeilingReached:
            # A load that the tester cannot send says nothing about the DUT: the first one costs no trial.
            self._ceilings += 1
            self._trials_left += self._ceilings == 1
            raise
        self._short_in_a_row = 0
        return sample

    @property
    def most_sent_frames_per_s(self) -> float:
        """The most that the tester sent in any trial so far."""
        return max((offer.sent for offer in self._offers), default=0.0)

    def falls_short_for_long(self, short: FellShort) -> bool:
        """Returns whether the tester has sent less than in other trials so often that asking again is in vain."""
        return self._short_in_a_row >= (SHORT_IN_A_ROW if short.is_sample else TOLD_IN_A_ROW)

    def _sent_more_before(self, rate_frames_per_s: float) -> bool:
        """Returns whether a trial before the last one sent so much more that this rate cannot be the ceiling."""
        most = max((offer.sent for offer in self._offers[:-1]), default=0.0)
        return rate_frames_per_s < most * (1.0 - self._limits.precision)

    def _run_trial(self, load_frames_per_s: float, duration_s: float) -> Sample:
        asked = load_frames_per_s / self.share
        try:
            sample = self._measure(asked, duration_s)
        except CeilingReached as ceiling:
            self._offers.append(Offer(asked, ceiling.rate_frames_per_s, asked * duration_s))
            self._find_share()
            if self._sent_more_before(ceiling.rate_frames_per_s):
                raise FellShort(ceiling.rate_frames_per_s, is_sample=False) from ceiling
            raise
        offered = asked * sample.sent_share
        self._offers.append(Offer(asked, offered, sample.counts.intended))
        try:
            self._find_share()
        except ShareFound:
            self._fell_short.append(sample)
            raise
        # A shortfall below half the precision moves no bound by more than that. With a larger one this load was not
        # offered: counted as sent it would pass, counted as lost (MLRsearch adds unsent to loss) it would fail. On a
        # disturbed machine it is kept as a sample of the load that was offered: better than no answer at all.
        if offered < load_frames_per_s * (1.0 - self._limits.precision / 2):
            if self._sent_more_before(offered):
                if offered > 0.0:
                    self.samples.append(sample.count_at(offered).model_copy(update={"valid": False}))
                raise FellShort(offered, is_sample=offered > 0.0)
            if sample.valid:
                self._fell_short.append(sample)
            elif offered > 0.0:
                self.samples.append(sample.count_at(offered))
            raise CeilingReached(offered, disturbed=not sample.valid)
        if self.share < 1.0:
            sample = self._at_what_was_sent(sample)
        self._served.append(len(self.samples))
        self.samples.append(sample)
        return sample.model_copy(update={"load_frames_per_s": load_frames_per_s})

    def _find_share(self) -> None:
        """Raises ShareFound where the tester falls short by a constant share, and that was not known yet."""
        share = find_constant_share(self._offers) if self._finds_share and self.share == 1.0 else None
        # Pauses of a virtual machine cost as much now and then, and two of them may look alike.
        if share is not None and share < 1.0 - self._limits.precision * WORTH_A_SHARE:
            raise ShareFound(share)

    def _at_what_was_sent(self, sample: Sample) -> Sample:
        """Returns a sample of the load that was asked for as one of the load that was sent."""
        expected, offered = (sample.load_frames_per_s * share for share in (self.share, sample.sent_share))
        if sample.sent_share == 1.0:
            return sample
        close = abs(offered - expected) <= self._limits.precision / 2 * expected
        return sample.count_at(expected if close else offered)


class DrivenSearch(Search):
    """A search that is restarted with a lower maximum when the tester cannot send what it asks for."""

    @abstractmethod
    def drive(self, recorder: Recorder, goals: tuple[Goal, ...], limits: Limits) -> None:
        """Measures through ``recorder``; returns when it has nothing left to measure."""

    def conclude(self, samples: Sequence[Sample], goal: Goal, limits: Limits) -> Outcome:
        """Computes the outcome for one goal from all samples."""
        outcome = outcome_of(samples, goal, limits)
        explanation = explain_rare_loss(samples, goal, read(samples, goal, limits).bounds, limits)
        if explanation is None:
            return outcome
        return outcome.model_copy(update={"notes": (*outcome.notes, explanation)})

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        """Runs the search as the base says; all restarts share the budget of trials."""
        recorder = Recorder(measure, limits)
        asked, asks, ceiling_disturbed = limits, limits, False
        while True:
            try:
                self.drive(recorder, tuple(goals), asks)
                break
            except BudgetSpent:
                break
            except ShareFound as found:
                recorder.use_share(found.share)
                ceiling, ceiling_disturbed = CeilingReached(asked.maximum_load_frames_per_s * found.share), False
                lowered = asked.limited_to_share(found.share)
            except FellShort as short:
                recorder.restart()
                if not recorder.falls_short_for_long(short):
                    continue
                # It is asked for less, but what it sent elsewhere shows that this is no ceiling: none is named.
                ceiling, lowered = short, asks.lowered_to(short.rate_frames_per_s)
                if lowered is not None:
                    asks = lowered
                    update = {"asked_up_to_frames_per_s": lowered.maximum_load_frames_per_s}
                    limits = limits.model_copy(update=update)
                    continue
            except CeilingReached as reached:
                ceiling, ceiling_disturbed = reached, reached.disturbed
                lowered = limits.lowered_to(ceiling.rate_frames_per_s)
                recorder.restart()
            if lowered is None:
                ended = describe_too_little(ceiling, recorder.most_sent_frames_per_s, limits)
                disturbed = ceiling.disturbed
                return {
                    goal.name: _outcome_below_minimum(recorder.samples, goal, limits, ended, disturbed=disturbed)
                    for goal in goals
                }
            limits = asks = lowered
        outcomes = order_outcomes({goal.name: self.conclude(recorder.samples, goal, limits) for goal in goals}, goals)
        if ceiling_disturbed:
            outcomes = {name: _mark_disturbed(outcome) for name, outcome in outcomes.items()}
        outcomes = {name: _say_asked_up_to(outcome, limits) for name, outcome in outcomes.items()}
        return {name: _say_share(outcome, recorder.share) for name, outcome in outcomes.items()}


def order_outcomes(outcomes: Mapping[str, Outcome], goals: Sequence[Goal]) -> dict[str, Outcome]:
    """Orders what was found for one goal at a time: a goal that tolerates more loss has no lower rate.

    What passes one goal passes a more tolerant one. So each lower end holds for more tolerant goals too, and each upper
    end for stricter ones; values in the wrong order give way to their mean, weighed by how exact each is (isotonic
    regression), or to a rate of which only the lower end is known. Intervals in the wrong order that do not even
    overlap are widened until they do. Where a goal has no upper end no more tolerant one has, and where it has no rate
    no stricter one has.
    """
    names = [goal.name for goal in sorted(goals, key=lambda goal: goal.loss_ratio)]
    nothing = max((at for at, name in enumerate(names) if outcomes[name].rate.value is None), default=-1)
    dead, alive = names[: nothing + 1], [outcomes[name].rate for name in names[nothing + 1 :]]
    ends = [(rate.lower or rate.value or 0.0, math.inf if rate.upper is None else rate.upper) for rate in alive]
    lowers, uppers = [lower for lower, _ in ends], [upper for _, upper in ends]
    for strict, tolerant in combinations(range(len(alive)), 2):
        if math.isinf(ends[strict][1]):
            uppers[tolerant] = math.inf
        elif lowers[strict] > uppers[tolerant]:
            lowers[strict], uppers[tolerant] = lowers[tolerant], uppers[strict]
    lowers = list(accumulate(lowers, max))
    uppers = list(accumulate(reversed(uppers), min))[::-1]
    most = min((lower for lower, upper in zip(lowers, uppers, strict=True) if math.isinf(upper)), default=math.inf)
    values = [
        lower if math.isinf(upper) else min(max(value, lower), upper, most)
        for value, lower, upper in zip(_pool(alive), lowers, uppers, strict=True)
    ]
    unlimited = next((rate.limited_by for rate in alive if rate.upper is None), None)
    ordered = {name: _without_rate(outcomes[name], outcomes[dead[-1]]) for name in dead}
    for name, value, lower, upper in zip(names[nothing + 1 :], values, lowers, uppers, strict=True):
        ordered[name] = _with_rate(outcomes[name], value, lower, upper, unlimited)
    return {name: ordered[name] for name in outcomes}


def _pool(rates: Sequence[Bounded]) -> list[float]:
    """Returns the nearest values that do not fall, in the sense of least squares; narrow intervals weigh more."""
    pools: list[tuple[float, float, int]] = []
    for rate in rates:
        value = rate.value or 0.0
        width = 0.0 if rate.lower is None or rate.upper is None else rate.upper - rate.lower
        pool = value, 1.0 / max(width, CLOSE * value, CLOSE) ** 2, 1
        while pools and pools[-1][0] > pool[0]:
            before, weight, count = pools.pop()
            together = weight + pool[1]
            pool = (before * weight + pool[0] * pool[1]) / together, together, count + pool[2]
        pools.append(pool)
    return [value for value, _, count in pools for _ in range(count)]


def _with_rate(outcome: Outcome, value: float, lower: float, upper: float, unlimited: LimitedBy | None) -> Outcome:
    """Returns the outcome with this rate, and a note of what it was by itself; unchanged where it is the same. Without
    an upper end, ``unlimited`` bounded what was offered.
    """
    rate = outcome.rate
    if (value, lower, upper) == (rate.value, rate.lower, math.inf if rate.upper is None else rate.upper):
        return outcome
    beyond = math.isinf(upper)
    limited_by = unlimited if beyond and rate.upper is not None else rate.limited_by
    ends = {"lower": lower, "upper": None if beyond else upper, "limited_by": limited_by}
    ordered = rate.model_copy(update={"value": value, **ends})
    alone = format_rate(rate.value or 0.0)
    if rate.lower is not None and rate.upper is not None:
        alone += f" ({format_rate(rate.lower)} to {format_rate(rate.upper)})"
    note = f"by itself it would be {alone}, but with more loss tolerated no rate is lower"
    is_wider = lower < (rate.lower or 0.0) or (rate.upper is not None and upper > rate.upper)
    found = {
        "rate": ordered,
        "outcome": "at_least" if beyond else "interval",
        "converged": outcome.converged and not is_wider,
        "notes": (*outcome.notes, note),
    }
    return outcome.model_copy(update=found)


def _without_rate(outcome: Outcome, tolerant: Outcome) -> Outcome:
    """Returns the outcome without a rate, as a more ``tolerant`` goal has none."""
    if outcome.rate.value is None:
        return outcome
    upper = min((end for end in (outcome.rate.upper, tolerant.rate.upper) if end is not None), default=None)
    update = {"value": None, "lower": None, "upper": upper, "reason_null": tolerant.rate.reason_null}
    # What an estimate says besides is about the rate that it had.
    notes = outcome.notes if outcome.estimate is None else ()
    found = {"rate": outcome.rate.model_copy(update=update), "outcome": "none", "notes": notes}
    return outcome.model_copy(update=found)


class NarrowingSearch(DrivenSearch):
    """A search that takes its trials from ``next_trial``; it only chooses where an open interval is cut."""

    def choose(self, reading: Reading, samples: Sequence[Sample], limits: Limits) -> float:
        """Returns the load that narrows an open interval."""
        return halve(reading, samples, limits)

    def drive(self, recorder: Recorder, goals: tuple[Goal, ...], limits: Limits) -> None:
        """Makes one trial after another until every goal is settled."""
        while True:
            request = next_trial(
                recorder.samples, goals, limits, self.options.votes_needed, recorder.trials_left, self.choose
            )
            if request is None:
                return
            recorder.measure(*request)


def _say_share(outcome: Outcome, share: float) -> Outcome:
    """Adds what the loads are where the tester sends a constant share of what it is asked for."""
    return outcome if share == 1.0 else outcome.model_copy(update={"notes": (*outcome.notes, describe_share(share))})


def _say_asked_up_to(outcome: Outcome, limits: Limits) -> Outcome:
    """Adds why an open interval was not narrowed further, where the tester fell short of what it sends otherwise."""
    most = limits.asked_up_to_frames_per_s
    if most is None or outcome.converged or any(SENT_LESS in note for note in outcome.notes):
        return outcome
    note = f"{SENT_LESS}: at last none above {format_rate(most)} was tried"
    return outcome.model_copy(update={"notes": (*outcome.notes, note)})


def _mark_disturbed(outcome: Outcome) -> Outcome:
    """Marks an outcome that is limited by the tester's ceiling, which a disturbed trial showed."""
    if outcome.rate.limited_by is not LimitedBy.TESTER:
        return outcome
    return outcome.model_copy(update={"disturbed": True})


def describe_too_little(ceiling: CeilingReached, most_sent_frames_per_s: float, limits: Limits) -> str:
    """Says that the tester sends too little for the lowest load, and how much it sent at most."""
    last, minimum = ceiling.rate_frames_per_s, limits.minimum_load_frames_per_s
    too_little = "less than the minimum load" if last < minimum else "hardly more than the minimum load"
    if most_sent_frames_per_s <= last * (1.0 + CLOSE):
        return f"{ceiling}, {too_little}"
    return (
        f"the tester sent {last:.0f} frames/s at last, {too_little}, and {most_sent_frames_per_s:.0f} frames/s in an "
        "earlier trial"
    )


def _outcome_below_minimum(
    samples: Sequence[Sample], goal: Goal, limits: Limits, ended: str, *, disturbed: bool
) -> Outcome:
    """Returns the outcome where the tester does not send even the minimum, as ``ended`` says: passes and failures of
    earlier trials stand, and without any the DUT is not blamed.
    """
    outcome = outcome_of(samples, goal, limits)
    if outcome.rate.value is not None:
        return outcome.model_copy(update={"notes": (*outcome.notes, ended), "converged": False})
    failed = read(samples, goal, limits).bounds.upper
    if failed is None:
        found = {"limited_by": LimitedBy.TESTER, "reason_null": ended}
    else:
        found = {"reason_null": explain_none(samples, failed, limits, goal, ended=ended)}
    rate = outcome.rate.model_copy(update=found)
    marked = disturbed or outcome.disturbed
    return outcome.model_copy(update={"rate": rate, "converged": False, "disturbed": marked})
