"""From trials to an answer of three zones: every trial passed up to A, some did up to B, none above.

Each trial first decides for itself (``decide``): its load was passed, was failed, or the trial leaves that open. An
open trial still guides a search. The rule is one for every search, so that they differ in the loads they choose alone.

- A trial passes at the load that was *sent*, however unevenly: the DUT forwarded that many frames in that time.
- A trial fails where the DUT lost more than the goal allows, or held back a growing queue: a load that it takes and
  does not forward in time is not sustained. The losses must be more than a tester's pauses explain: frames that were
  due while it paused leave in a burst, and a DUT may lose as many of them as it would carry evenly. Where they are not,
  an even trial fails at the load raised by the longest pause, and an uneven one is open.
- Where a validation trial failed, shorter passes at its load or above misled and do not count.

A loss at any load (``find_floor``) and a queue are outcomes of their own.
"""

from __future__ import annotations

import math
import operator
import statistics
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property, lru_cache
from itertools import accumulate

from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy, LossFloor, Queue
from nicbench.search.base import CLOSE, Ended, Goal, Limits, Outcome, Sample

CEILING_AGREEMENT = 0.03
"""Two trials in which a tester sent the same rate, but for this part of it, show its ceiling."""
SUSTAINED = 0.5
"""A queue that grows by more than this part of the precision, as a share of the load, is not sustained."""
TELLS_RATE = 0.25
"""A trial tells the rate that a DUT forwards where it lost, or held back, more than this part of the precision."""
NEAR = 10.0
"""The precisions above the upper end within which trials show the DUT's limit, and not what overload does to it."""
CERTAINLY = 8
"""The frames more than the goal allows from which on a loss is not due to chance."""
SLIGHT = 1e-3
MANY = 100
"""More lost frames than that are not due to chance in any number of trials."""
SOFT = 0.06
"""Where losses begin slowly, ends within this part of the load of each other are near enough to count frames
there."""
SURE_DEVIATIONS = 1.5
"""A loss that differs by fewer deviations from what the goal allows may meet it, or miss it, by chance;"""
BESIDE = 0.05
"""then the next load, this part of it away at most, is the end."""
KEPT_BY_CHANCE, LOST_BY_CHANCE = 0.065, 0.04
"""So few losses, or so many, have no greater probability where half of the trials lose nothing: four without any."""
SAME_LOAD = 1e-3
"""Trials whose loads differ relatively by no more were made at one load, but for frames that the tester missed."""
APART = 0.0025
"""Loads that differ relatively by more are others."""
ZONE_RESOLUTION = 0.34
"""Where trials disagree over a zone, its ends need no narrower steps than this part of it."""
FLOOR_LOSSES = 5
"""The losses from which on a floor is distinguished from chance."""
FLOOR_TRIALS = 3
FLOOR_LOW = 3.0
"""The losses to expect at the lower loads of a floor: if none of them occurs, that is not chance."""
HIGHEST_FLOOR = 0.1
FLOOR_RANGE = 1.5
"""The least ratio of the highest load of a floor's trials to the lowest."""
UNLIKELY = 5e-3
"""Trials whose losses differ from one share by a smaller probability have no share in common."""
COLLAPSED = 0.75
"""A DUT that forwarded less than this part of a load that every trial passed may have collapsed under an overload."""
SEPARATE = 25
"""The number of orders of passes and failures by their load, of which one alone keeps them apart."""
_DEVIATIONS = 1.96


class Decision(Enum):
    """What one trial shows of its load."""

    PASS = auto()
    FAIL = auto()
    OPEN = auto()


@dataclass(frozen=True)
class Vote:
    """A trial's decision for one goal, and the load for which it holds."""

    decision: Decision
    load_frames_per_s: float
    sample: Sample


def is_sustained(sample: Sample, goal: Goal, limits: Limits) -> bool:
    """Returns whether the DUT forwarded the frames as fast as they came, but for those that the goal lets it lose, and
    a rest below the precision: in a longer trial it would lose what it holds back.
    """
    if not sample.queued_s:
        return True
    counts = sample.counts
    held = sample.queued_share * counts.offered
    allowed = max(goal.loss_ratio, SUSTAINED * limits.precision) * counts.offered - counts.failed
    return held <= max(1.0, allowed)


def decide(sample: Sample, goal: Goal, limits: Limits) -> Vote:
    """Returns what a trial shows of a load, for one goal."""
    counts, sent = sample.counts, sample.sent_frames_per_s
    sustained = is_sustained(sample, goal, limits)
    if goal.passed_by(sample) and sustained:
        return Vote(Decision.PASS if sample.may_pass and counts.offered else Decision.OPEN, sent, sample)
    if not sample.may_fail:
        return Vote(Decision.OPEN, sent, sample)
    excess = counts.failed - goal.loss_ratio * counts.offered
    if not sustained:
        excess += sample.queued_share * counts.offered
    if excess > sample.held_up_share * counts.intended:
        return Vote(Decision.FAIL, sent, sample)
    raised = sample.load_frames_per_s * (1.0 + sample.longest_pause_share)
    return Vote(Decision.FAIL if sample.is_even else Decision.OPEN, raised, sample)


def forwarded_rate(sample: Sample, goal: Goal, limits: Limits) -> float | None:
    """Returns the load at which the goal would just be met if the DUT forwarded as much as it did in a trial that was
    too much for it; None of any other trial.
    """
    least = TELLS_RATE * limits.precision
    if not sample.counts.received or max(sample.counts.loss_ratio, sample.queued_share) < least:
        return None
    return sample.forwarded_frames_per_s / (1.0 - goal.loss_ratio)


@dataclass(frozen=True)
class Zones:
    """All trials of a search, read for one goal; ``every``, ``lowest_fail``, ``highest_pass`` and ``none`` are in
    ascending order of load, and ``None`` where no trial shows them.
    """

    goal: Goal
    votes: tuple[Vote, ...]
    every: Vote | None
    """The highest load up to which every trial passed."""
    lowest_fail: Vote | None
    highest_pass: Vote | None
    none: Vote | None
    """The lowest load from which on no trial passed."""
    misleading_frames_per_s: float | None
    told: tuple[tuple[Vote, float], ...]
    """Failed trials near the upper end with the rate that each forwarded; empty where losses begin below that rate."""

    @cached_property
    def lower(self) -> float | None:
        """The rate that every trial carried: ``every``, or less where a failed trial near it forwarded less.

        Where losses begin slowly a few passes are chance: then it is the load from which on trials lost fewer frames
        than where half of them meet the goal, or one lost clearly less than the goal allows.
        """
        if self.every is None:
            return None
        load = self.every.load_frames_per_s
        if self.is_slight:
            load = min(load, self.surely_kept or min(self._decided(Decision.PASS)))
        elif self.goal.loss_ratio:
            load = self._next_beside(self.every, Decision.PASS, -1.0)
        return min(load, *(rate for _, rate in self.told), math.inf)

    @cached_property
    def upper(self) -> float | None:
        """The rate that no trial carried: ``none``, or more where a failed trial forwarded more.

        Where losses begin slowly a few failures by few frames are chance: then it is the load up to which more frames
        were lost than where half of the trials meet the goal.
        """
        if self.none is None:
            return None
        load = self.none.load_frames_per_s
        if _is_slight(self.none, self.goal):
            load = max(load, self.surely_lossy or max(self._decided(Decision.FAIL)))
        elif self.goal.loss_ratio:
            load = self._next_beside(self.none, Decision.FAIL, 1.0)
        return max(load, *(rate for _, rate in self.told), 0.0)

    @cached_property
    def is_slight(self) -> bool:
        """Whether losses begin slowly: a trial at the lowest load that failed may pass."""
        return self.lowest_fail is not None and _is_slight(self.lowest_fail, self.goal)

    def _next_beside(self, end: Vote, decision: Decision, side: float) -> float:
        """Returns the load of an end; the next one outside of it where so few frames more or less were lost than the
        goal allows that this may be chance.
        """
        load = end.load_frames_per_s
        if abs(_margin(end, self.goal)) > SURE_DEVIATIONS:
            return load
        apart = (one for one in self._decided(decision) if APART < side * (one / load - 1.0) < BESIDE)
        return min(apart, key=lambda one: abs(one - load), default=load)

    @cached_property
    def surely_kept(self) -> float | None:
        """The highest load from which on trials lost fewer frames than where half of the trials lose none."""
        return self._find_sure(len(self.votes) - 1, -1, lambda chances: chances[0] <= KEPT_BY_CHANCE)

    @cached_property
    def surely_lossy(self) -> float | None:
        """The lowest load up to which trials lost more frames than where half of the trials lose none."""
        return self._find_sure(0, 1, lambda chances: chances[1] <= LOST_BY_CHANCE)

    def _find_sure(self, first: int, step: int, is_sure: Callable[[tuple[float, float]], bool]) -> float | None:
        """Returns the first trial's load for which ``is_sure`` holds of some trials from it backwards."""
        for place in range(first, len(self.votes) if step > 0 else -1, step):
            decided = [vote for vote in self.votes[place::-step] if vote.decision is not Decision.OPEN]
            if any(map(is_sure, _chances(decided, self.goal))):
                return self.votes[place].load_frames_per_s
        return None

    def _decided(self, decision: Decision) -> list[float]:
        return [vote.load_frames_per_s for vote in self.votes if vote.decision is decision]

    @cached_property
    def disagree(self) -> bool:
        """Whether some trials carried what others did not."""
        told = min((rate for _, rate in self.told), default=math.inf)
        return self.some is not None or (self.every is not None and told < self.every.load_frames_per_s)

    @property
    def some(self) -> Vote | None:
        """The highest load that passed although a lower one failed."""
        return self.highest_pass if self.highest_pass is not self.every else None

    def step(self, limits: Limits) -> float:
        """Returns how near two loads have to be, in frames per second, so that nothing is left to find between them."""
        top = (self.none or self.highest_pass or self.votes[-1]).load_frames_per_s
        step = max(limits.precision * top, limits.step_frames_per_s)
        if not self.disagree or self.lower is None or self.upper is None:
            return step
        # More passes, or a failure between them, tell a rate that changes from a collapse (``_collapses``).
        if self.some is None and self.every is not None and self.lower < COLLAPSED * self.every.load_frames_per_s:
            return step
        return max(step, ZONE_RESOLUTION * (self.upper - self.lower))


def _chances(votes: Iterable[Vote], goal: Goal) -> Iterator[tuple[float, float]]:
    """Yields with each further trial the probabilities that no more, and no fewer, frames are lost than in all up to
    it, where half of such trials lose none.
    """
    lost = 0
    for trials, vote in enumerate(votes, start=1):
        counts, mean = vote.sample.counts, trials * math.log(2.0)
        lost += max(0, counts.failed - int(goal.loss_ratio * counts.offered))
        if lost > MANY:
            yield 1.0, 0.0
            return
        terms = [math.exp(-mean)]
        for count in range(1, lost + 1):
            terms.append(terms[-1] * mean / count)
        yield sum(terms), 1.0 - sum(terms[:-1])


def _margin(vote: Vote, goal: Goal) -> float:
    """Returns by how many deviations of a count a trial lost more than its goal allows, fewer below 0."""
    counts = vote.sample.counts
    return (counts.failed - goal.loss_ratio * counts.offered) / math.sqrt(max(1, counts.failed))


def _is_slight(vote: Vote, goal: Goal) -> bool:
    """Returns whether a trial failed by so few of many frames that the next may pass."""
    counts = vote.sample.counts
    return 0.0 < counts.failed - goal.loss_ratio * counts.offered < min(CERTAINLY, SLIGHT * counts.offered)


class _Same:
    """Samples that equal others where each is the same object."""

    __slots__ = ("samples",)

    def __init__(self, samples: tuple[Sample, ...]) -> None:
        self.samples = samples

    def __hash__(self) -> int:
        return hash(tuple(map(id, self.samples)))

    def __eq__(self, other: object) -> bool:
        mine, others = self.samples, other.samples if isinstance(other, _Same) else ()
        return len(mine) == len(others) and all(map(operator.is_, mine, others))


def read(samples: Iterable[Sample], goal: Goal, limits: Limits, *, open_fails: bool = False) -> Zones:
    """Reads the zones of one goal; ``open_fails`` counts trials that lost frames for whatever reason as failed."""
    return _read(_Same(tuple(samples)), goal, limits, open_fails)


# After each trial the search and the event of its progress read the same samples.
@lru_cache(maxsize=16)
def _read(same: _Same, goal: Goal, limits: Limits, open_fails: bool) -> Zones:
    votes = [decide(sample, goal, limits) for sample in same.samples]
    if open_fails:
        votes = [
            Vote(Decision.FAIL, vote.load_frames_per_s, vote.sample)
            if vote.decision is Decision.OPEN and not goal.passed_by(vote.sample)
            else vote
            for vote in votes
        ]
    votes.sort(key=lambda vote: vote.load_frames_per_s)
    misleading = _find_misleading(votes, limits)
    counted = [vote for vote in votes if _counts(vote, votes, misleading, limits)]
    passes = [vote for vote in counted if vote.decision is Decision.PASS]
    fails = [vote for vote in counted if vote.decision is Decision.FAIL]
    lowest_fail = fails[0] if fails else None
    highest_pass = passes[-1] if passes else None
    every = next((one for one in reversed(passes) if lowest_fail is None or _is_below(one, lowest_fail)), None)
    none = next((one for one in fails if highest_pass is None or _is_below(highest_pass, one)), None)
    told = _find_told(votes, every, none, goal, limits)
    return Zones(goal, tuple(votes), every, lowest_fail, highest_pass, none, misleading, told)


def _find_told(
    votes: Sequence[Vote], every: Vote | None, none: Vote | None, goal: Goal, limits: Limits
) -> tuple[tuple[Vote, float], ...]:
    """Returns the failed trials near the upper end with the rate that each forwarded.

    Further up a DUT may forward less because it is overloaded. Where many trials failed without telling a rate losses
    begin below it, and it says nothing of the goal; a rate above a lower end that differs by less than a rest of the
    precision from it is that end.
    """
    if every is None or none is None:
        return ()
    low, high = every.load_frames_per_s, none.load_frames_per_s
    highest = max(vote.load_frames_per_s for vote in votes if vote.decision is Decision.PASS)
    if high > highest * (1.0 + NEAR * limits.precision):
        return ()
    fails = [
        vote
        for vote in votes
        if vote.decision is Decision.FAIL
        and vote.load_frames_per_s <= high * (1.0 + NEAR * limits.precision)
        and vote.sample.duration_s >= limits.trial_duration_s * (1.0 - CLOSE)
    ]
    rates = [forwarded_rate(vote.sample, goal, limits) for vote in fails]
    if 3 * rates.count(None) > len(rates):
        return ()
    rates = [rate or vote.sample.forwarded_frames_per_s for vote, rate in zip(fails, rates, strict=True)]
    if _collapses(votes, every, goal, limits) or _falls(fails, rates, limits):
        return ()
    room = TELLS_RATE * limits.precision
    return tuple(
        (vote, low if low * (1.0 - room) <= rate < low else high if high < rate <= high * (1.0 + room) else rate)
        for vote, rate in zip(fails, rates, strict=True)
        if rate is not None
    )


def _collapses(votes: Sequence[Vote], every: Vote, goal: Goal, limits: Limits) -> bool:
    """Returns whether the DUT forwards less than it could because it is overloaded: trials that were too much for it
    forwarded less than all of a number of passed ones, more often than a changing rate would by chance.
    """
    load = every.load_frames_per_s
    rates = [forwarded_rate(vote.sample, goal, limits) for vote in votes if vote.decision is Decision.FAIL]
    passes = [vote.load_frames_per_s for vote in votes if vote.decision is Decision.PASS]
    if any(one > load * (1.0 + CLOSE) for one in passes):
        return False
    low = sorted(rate for rate in rates if rate is not None and rate < COLLAPSED * load)
    return any(
        math.comb(count + sum(one > rate for one in passes), count) >= SEPARATE
        for count, rate in enumerate(low, start=1)
    )


def _falls(fails: Sequence[Vote], rates: Sequence[float | None], limits: Limits) -> bool:
    """Returns whether the rate falls with the overload, and no rate that changes by chance: it lies on a line."""
    known = [(vote.load_frames_per_s, rate) for vote, rate in zip(fails, rates, strict=True) if rate is not None]
    if len(known) < FLOOR_TRIALS or known[-1][0] <= known[0][0]:
        return False
    slope, middle = statistics.linear_regression([load for load, _ in known], [rate for _, rate in known])
    away = max(abs(rate - middle - slope * load) for load, rate in known)
    return -slope * (known[-1][0] - known[0][0]) > max(4.0 * away, TELLS_RATE * limits.precision * known[0][1])


def _is_below(one: Vote, other: Vote) -> bool:
    return one.load_frames_per_s < other.load_frames_per_s * (1.0 - CLOSE)


def is_long(sample: Sample, limits: Limits) -> bool:
    """Returns whether it is a validation trial."""
    longest = limits.validation_duration_s
    return longest is not None and sample.duration_s >= longest * (1.0 - CLOSE)


def _find_misleading(votes: Sequence[Vote], limits: Limits) -> float | None:
    """Returns the lowest load that failed a validation trial and passed shorter ones, there or above."""
    failed = [one for one in votes if one.decision is Decision.FAIL and is_long(one.sample, limits)]
    for one in failed:
        short = (other for other in votes if other.decision is Decision.PASS and not is_long(other.sample, limits))
        if any(other.load_frames_per_s >= one.load_frames_per_s * (1.0 - CLOSE) for other in short):
            return one.load_frames_per_s
    return None


def _counts(vote: Vote, votes: Sequence[Vote], misleading: float | None, limits: Limits) -> bool:
    """Returns whether a vote counts: a fail always does, as a longer trial contains it; a pass does if it was long
    enough.
    """
    if vote.decision is not Decision.PASS:
        return vote.decision is Decision.FAIL
    if vote.sample.duration_s < limits.trial_duration_s * (1.0 - CLOSE):
        return False
    if misleading is None or is_long(vote.sample, limits) or vote.load_frames_per_s < misleading * (1.0 - CLOSE):
        return True
    return any(
        other.decision is Decision.PASS
        and is_long(other.sample, limits)
        and other.load_frames_per_s >= vote.load_frames_per_s * (1.0 - CLOSE)
        for other in votes
    )


def _find_some(zones: Zones) -> float | None:
    """Returns the highest rate that some trials carried, where others did not."""
    if not zones.disagree or zones.highest_pass is None:
        return None
    return max(zones.highest_pass.load_frames_per_s, *(rate for _, rate in zones.told), 0.0)


def find_half(zones: Zones) -> float | None:
    """Returns the load between the ends that half of the trials carried: as many carried less as carried more. None
    where no trial contradicts another.
    """
    if not zones.disagree:
        return None
    told = {id(vote): rate for vote, rate in zones.told}
    passed = [vote.load_frames_per_s for vote in zones.votes if vote.decision is Decision.PASS]
    failed = [told.get(id(vote), vote.load_frames_per_s) for vote in zones.votes if vote.decision is Decision.FAIL]
    loads = sorted({*passed, *failed})

    def balance(load: float) -> int:
        return sum(one <= load for one in failed) - sum(one >= load for one in passed)

    below = max((load for load in loads if balance(load) <= 0), default=loads[0])
    above = min((load for load in loads if balance(load) >= 0), default=loads[-1])
    return min(max((below + above) / 2.0, zones.lower or 0.0), _find_some(zones) or math.inf)


# A share of the frames that is lost at any load.


def find_floor(samples: Sequence[Sample], goal: Goal) -> LossFloor | None:
    """Finds a share of the frames that is lost at any load, which leaves no load without loss: None where there is
    none, or the goal tolerates it.

    The lowest loads belong to it, as many as have a share in common: their losses differ by chance alone, do not grow
    with the load, and their loads differ by ``FLOOR_RANGE``.
    """
    even = (one for one in samples if one.may_fail and one.is_even and one.counts.offered)
    usable = sorted(even, key=lambda one: one.sent_frames_per_s)
    loads = [one.sent_frames_per_s for one in usable]
    failed = [one.counts.failed for one in usable]
    # Of the lowest trials, as many as the index says: what they lost, were offered, and how many lost something.
    lost_of, hit_of = (list(accumulate(each, initial=0)) for each in (failed, (count > 0 for count in failed)))
    offered_of = list(accumulate((one.counts.offered for one in usable), initial=0))
    for count in range(len(usable), FLOOR_TRIALS - 1, -1):
        lost, offered = lost_of[count], offered_of[count]
        if lost < FLOOR_LOSSES or not offered:
            return None
        ratio = lost / offered
        low = bisect_right(loads, loads[count - 1], hi=count, key=FLOOR_RANGE.__mul__)
        if offered_of[low] * ratio < FLOOR_LOW or not hit_of[low]:
            continue
        trials = usable[:count]
        if not goal.loss_ratio < ratio <= HIGHEST_FLOOR or hit_of[count] < FLOOR_TRIALS:
            continue
        if not _share_one_ratio(trials, ratio):
            continue
        lower, upper = _poisson_interval(lost)
        trial_s = min(one.duration_s for one in trials)
        return LossFloor(
            ratio=ratio,
            lower=lower / offered,
            upper=upper / offered,
            trials=count,
            trial_s=trial_s,
            up_to_frames_per_s=trials[-1].sent_frames_per_s,
        )
    return None


def _share_one_ratio(trials: Sequence[Sample], ratio: float) -> bool:
    """Returns whether losses differ from one share of the frames by chance alone, and do not grow with the load."""
    expected = [ratio * one.counts.offered for one in trials]
    lost = [one.counts.failed for one in trials]
    distance = sum((seen - mean) ** 2 / mean for seen, mean in zip(lost, expected, strict=True))
    freedom = len(trials) - 1
    # Wilson and Hilferty: the cube root of chi-squared is nearly normal.
    normal = ((distance / freedom) ** (1.0 / 3.0) - (1.0 - 2.0 / (9.0 * freedom))) / math.sqrt(2.0 / (9.0 * freedom))
    if 0.5 * math.erfc(normal / math.sqrt(2.0)) < UNLIKELY:
        return False
    # Growth with the load: the mean load of a lost frame against that of a sent one, in deviations.
    loads = [one.sent_frames_per_s for one in trials]
    total, weight = sum(lost), sum(expected)
    mean = sum(load * each for load, each in zip(loads, expected, strict=True)) / weight
    variance = sum((load - mean) ** 2 * each for load, each in zip(loads, expected, strict=True)) / weight
    seen = sum(load * each for load, each in zip(loads, lost, strict=True)) / total
    return variance <= 0.0 or (seen - mean) / math.sqrt(variance / total) < 3.0


def _poisson_interval(count: int) -> tuple[float, float]:
    """Returns the 95 % interval of a Poisson mean (Byar's approximation; Breslow and Day 1987, section 2.3)."""
    below, above = count, count + 1
    lower = below * (1.0 - 1.0 / (9.0 * below) - _DEVIATIONS / (3.0 * math.sqrt(below))) ** 3 if count else 0.0
    upper = above * (1.0 - 1.0 / (9.0 * above) + _DEVIATIONS / (3.0 * math.sqrt(above))) ** 3
    return lower, upper


def half_of_floor(floor: LossFloor, ratio: float) -> float:
    """Returns the load at which half of the trials lose nothing, by a floor of this ratio."""
    return math.log(2.0) / (ratio * floor.trial_s)


# The answer.


def outcomes_of(
    samples: Sequence[Sample], goals: Iterable[Goal], limits: Limits, ended: Ended = Ended.SETTLED
) -> dict[str, Outcome]:
    """Returns what these samples show for each goal; ``ended`` says why no more of them were made."""
    return {goal.name: outcome_of(samples, goal, limits, ended) for goal in goals}


def outcome_of(samples: Sequence[Sample], goal: Goal, limits: Limits, ended: Ended = Ended.SETTLED) -> Outcome:
    """Returns what these samples show for one goal."""
    zones, disturbed = read(samples, goal, limits), False
    if zones.none is None and not passes_all(zones, limits):
        lenient = read(samples, goal, limits, open_fails=True)
        if lenient.none is not None:
            zones, disturbed = lenient, True
    floor = find_floor(samples, goal)
    if floor is not None and (goal.loss_ratio > 0.0 or _explains(floor, zones)):
        return _outcome_of_floor(samples, goal, floor, zones, ended)
    validated = is_validated(zones, limits)
    rate = Bounded(
        value=zones.lower,
        lower=zones.lower,
        upper=zones.upper,
        limited_by=None if disturbed else _find_limit(zones, limits),
        n=len(samples),
        reason_null=_explain_none(samples, zones, goal, limits) if zones.every is None else None,
        passes_nothing=zones.every is None and brings_nothing_back(samples),
        some=_find_some(zones),
        half=find_half(zones) if zones.every else None,
        shared_core=_is_core_shared(zones),
        queue=find_queue(samples, goal, limits),
    )
    return Outcome(
        goal=goal.name,
        rate=rate,
        is_settled=ended is Ended.SETTLED and validated and not open_gaps(zones, limits),
        ended=ended,
        passed_for_s=_passed_for_s(zones),
        trials=len(samples),
        disturbed=disturbed,
        wanted_validation_s=None if validated else limits.longest_trial_s,
        misleading_frames_per_s=zones.misleading_frames_per_s,
    )


def passes_all(zones: Zones, limits: Limits) -> bool:
    """Returns whether the highest load that can be offered passed."""
    passed = zones.highest_pass
    if passed is None or zones.lowest_fail is not None:
        return False
    enough = reachable_frames_per_s([vote.sample for vote in zones.votes], limits) * (1.0 - limits.precision)
    return passed.load_frames_per_s >= enough


def reachable_frames_per_s(samples: Sequence[Sample], limits: Limits) -> float:
    """Returns the highest load that can be offered: the maximum, or what the tester sent when it was asked for more.

    It is known from two trials that fell short by more than their pauses explain, and sent nearly as much as any.
    """
    most = max((one.sent_frames_per_s for one in samples), default=0.0)
    short = [one for one in samples if 1.0 - one.sent_share - one.held_up_share > limits.precision / 2.0]
    alike = [one for one in short if one.sent_frames_per_s >= most * (1.0 - CEILING_AGREEMENT)]
    return min(limits.maximum_load_frames_per_s, most) if len(alike) > 1 else limits.maximum_load_frames_per_s


def open_gaps(zones: Zones, limits: Limits) -> list[tuple[float | None, float | None]]:
    """Returns the ranges of load in which an end of the zones still lies, in frames per second, the lowest first;
    ``None`` is an end that no trial has shown.
    """
    every, some, none, fail = zones.every, zones.some, zones.none, zones.lowest_fail
    lowest, step = limits.minimum_load_frames_per_s, zones.step(limits) * (1.0 + CLOSE) if zones.votes else 0.0
    gaps: list[tuple[float | None, float | None]] = []
    if every is None and not (fail is not None and fail.load_frames_per_s <= lowest * (1.0 + CLOSE)):
        gaps.append((None, fail.load_frames_per_s if fail else None))
    if zones.is_slight and not zones.goal.loss_ratio and fail is not None:
        step = max(step, SOFT * fail.load_frames_per_s)
    known = zones.told if zones.disagree else ()
    if every is not None and fail is not None and not known and fail.load_frames_per_s - every.load_frames_per_s > step:
        gaps.append((every.load_frames_per_s, fail.load_frames_per_s))
    top = max([some.load_frames_per_s if some else math.inf, *(rate for _, rate in known)])
    if some is not None and none is not None and none.load_frames_per_s - top > step:
        gaps.append((some.load_frames_per_s, none.load_frames_per_s))
    if none is None and zones.highest_pass is not None and not passes_all(zones, limits):
        top = limits.maximum_load_frames_per_s
        if zones.highest_pass.load_frames_per_s < top * (1.0 - limits.precision):
            gaps.append((zones.highest_pass.load_frames_per_s, None))
    return gaps


def is_validated(zones: Zones, limits: Limits) -> bool:
    """Returns whether the lower end passed a validation trial, or needs none."""
    every = zones.every
    if limits.validation_duration_s is None or every is None:
        return True
    near = every.load_frames_per_s - zones.step(limits)
    return any(
        vote.decision is Decision.PASS and is_long(vote.sample, limits) and vote.load_frames_per_s >= near
        for vote in zones.votes
        if vote.load_frames_per_s <= every.load_frames_per_s * (1.0 + CLOSE)
    )


def find_queue(samples: Iterable[Sample], goal: Goal, limits: Limits) -> Queue | None:
    """Returns the queue that let loads pass which are not sustained; None where no trial met one."""
    held = [one for one in samples if not is_sustained(one, goal, limits)]
    passed = [one for one in held if goal.passed_by(one) and one.duration_s >= limits.trial_duration_s * (1.0 - CLOSE)]
    if not passed:
        return None
    best = max(passed, key=lambda one: one.sent_frames_per_s)
    return Queue(
        frames=max((one.queued_s or 0.0) * one.forwarded_frames_per_s for one in held),
        burst_frames_per_s=best.sent_frames_per_s,
        trial_s=best.duration_s,
    )


def bounds_so_far(samples: Iterable[Sample], goal: Goal, limits: Limits) -> tuple[float | None, float | None]:
    """Returns the highest load up to which every trial passed and the lowest from which on none did, in frames per
    second; None where none is known.
    """
    zones = read(samples, goal, limits)
    return zones.lower, zones.upper


def _explains(floor: LossFloor, zones: Zones) -> bool:
    """Returns whether the floor, and no overload, ends the rate without loss."""
    knee = [vote for vote in zones.votes if vote.sample.counts.loss_ratio <= 3.0 * floor.upper]
    return bool(knee) and half_of_floor(floor, floor.ratio) < max(one.load_frames_per_s for one in knee)


def _outcome_of_floor(samples: Sequence[Sample], goal: Goal, floor: LossFloor, zones: Zones, ended: Ended) -> Outcome:
    """Returns the load at which half of the trials lose nothing; none where the goal tolerates less than the floor."""
    value, lower, upper = (half_of_floor(floor, ratio) for ratio in (floor.ratio, floor.upper, floor.lower))
    rate = Bounded(value=value, lower=lower, upper=upper, n=len(samples), loss_floor=floor)
    if goal.loss_ratio:
        reason = f"the loss exceeded {goal.loss_ratio * 100:g} % at any load"
        rate = Bounded(value=None, n=len(samples), reason_null=reason, loss_floor=floor)
    return Outcome(
        goal=goal.name,
        rate=rate,
        is_settled=ended is Ended.SETTLED,
        ended=ended,
        passed_for_s=_passed_for_s(zones) if rate.value else None,
        trials=len(samples),
    )


def _passed_for_s(zones: Zones) -> float | None:
    """Returns the duration of the longest trial that the lower end passed."""
    every = zones.every
    if every is None:
        return None
    return max(
        vote.sample.duration_s
        for vote in zones.votes
        if vote.decision is Decision.PASS
        and abs(vote.load_frames_per_s - every.load_frames_per_s) <= SAME_LOAD * every.load_frames_per_s
    )


def _is_core_shared(zones: Zones) -> bool:
    """Returns whether somebody used the DUT's core in the trials that disagree."""
    low, high = zones.lower, zones.upper
    if not zones.disagree or low is None or high is None:
        return False
    return any(vote.sample.core_shared for vote in zones.votes if low <= vote.load_frames_per_s <= high)


def _find_limit(zones: Zones, limits: Limits) -> LimitedBy | None:
    if zones.none is not None:
        return LimitedBy.DUT
    if zones.highest_pass is None or not passes_all(zones, limits):
        return None
    top = limits.maximum_load_frames_per_s
    near = zones.highest_pass.load_frames_per_s >= top * (1.0 - limits.precision)
    return limits.maximum_limited_by if near else LimitedBy.TESTER


def brings_nothing_back(samples: Sequence[Sample]) -> bool:
    """Whether trials were made and no frame came back in any of them."""
    return bool(samples) and all(one.counts.received == 0 for one in samples)


def _explain_none(samples: Sequence[Sample], zones: Zones, goal: Goal, limits: Limits) -> str:
    """Returns the reason why every load has a failed trial."""
    if not samples:
        return "no trial was made"
    lowest = min(one.sent_frames_per_s for one in samples)
    tried = f"at {lowest:.0f} frames/s, the lowest load tried"
    if brings_nothing_back(samples):
        return f"{PASSES_NOTHING}: no frame came back {tried}"
    if zones.lowest_fail is None:
        return "no trial decides: the tester was disturbed in each of them"
    what = f"the loss exceeded {goal.loss_ratio * 100:g} %" if goal.loss_ratio else "frames were lost"
    return f"{what} {tried}"
