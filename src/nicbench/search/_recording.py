"""What every search does around its choice of loads: it keeps samples, counts trials and time, and confirms its answer.

A load is what the tester is to *send*: where it sends a constant share of what it is asked for, it is asked for more.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from nicbench.core.result import LossFloor
from nicbench.search.base import CLOSE, Ended, Goal, Limits, Measure, Outcome, Sample, Search
from nicbench.search._zones import (
    FLOOR_LOW,
    Decision,
    Vote,
    Zones,
    find_floor,
    is_validated,
    open_gaps,
    outcomes_of,
    read,
)
from nicbench.stats.shortfalls import Offer, find_constant_share

FRAMES_WANTED = 1.0
"""A trial offers this many frames over the precision, where a longer one can: fewer do not resolve it."""
LONGEST_S = 10.0
"""No trial is made longer than this for the sake of its frames."""
FLOOR_ENOUGH = 0.4
"""The ratio of a floor is known where its interval is no wider than this part of it,"""
FLOOR_TRIALS = 16
"""or as well as so many trials tell."""
CERTAINLY = 8
"""A DUT that lost so many frames more than the goal allows did not fail by chance."""
FAR = 1.1
"""A trial at a load of so many times the upper end shows what a DUT does under overload, and not its limit."""
AGREEING = 3
CHANCE = 0.04
"""A sign test leaves this much to chance."""
TELLS_RATE = 0.25
"""A trial tells the rate that a DUT forwards where it lost, or held back, more than this part of the precision."""


class Spent(Exception):  # noqa: N818 - it ends a search, it is no error
    """The trials or the time of the search are used up; the outcome is computed from the samples so far."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended.value)
        self.ended = ended


class TrialRequest(NamedTuple):
    """The next trial to make."""

    load_frames_per_s: float
    duration_s: float


class Recorder:
    """Measures within the trials and the time of a search, and keeps the samples."""

    def __init__(self, measure: Measure, limits: Limits) -> None:
        self.samples: list[Sample] = []
        self.limits = limits
        self._measure = measure

    @property
    def spent_s(self) -> float:
        """The time of all trials so far."""
        return sum(sample.duration_s if sample.took_s is None else sample.took_s for sample in self.samples)

    @property
    def trials_left(self) -> int:
        """The number of trials that may still be made."""
        return self.limits.maximum_trials - len(self.samples)

    def has_time_for(self, *durations_s: float) -> bool:
        """Returns whether trials of these durations end in time, by what others took beside their duration."""
        if self.limits.time_s is None:
            return True
        beside_s = sum((one.took_s or one.duration_s) - one.duration_s for one in self.samples)
        mean_s = beside_s / len(self.samples) if self.samples else 0.0
        return self.spent_s + sum(durations_s) + mean_s * len(durations_s) <= self.limits.time_s

    def measure(self, load_frames_per_s: float, duration_s: float) -> Sample:
        """Makes a trial in which this load is sent, as far as the tester can; raises Spent."""
        if self.trials_left <= 0:
            raise Spent(Ended.TRIALS)
        if len(self.samples) > 1 and not self.has_time_for(duration_s):
            raise Spent(Ended.TIME)
        asked = min(load_frames_per_s / self._share(), self.limits.maximum_load_frames_per_s)
        sample = self._measure(max(asked, load_frames_per_s), duration_s)
        self.samples.append(sample)
        return sample

    def _share(self) -> float:
        """Returns the share of any load that the tester sends."""
        offers = [
            Offer(sample.load_frames_per_s, sample.sent_frames_per_s, sample.counts.intended) for sample in self.samples
        ]
        while offers:
            share = find_constant_share(offers)
            if share is not None:
                return share
            offers.pop()
        return 1.0


class DrivenSearch(Search):
    """A search that chooses loads; this base confirms, validates and concludes."""

    flood_s: float | None = None
    """The duration of the first trial, at the highest load; None: that of any trial."""

    @abstractmethod
    def choose(
        self, zones: Zones, gap: tuple[float | None, float | None], samples: Sequence[Sample], limits: Limits
    ) -> float:
        """Returns the load that tells most of the end of the zones that lies in this gap, in frames per second."""

    def drive(self, recorder: Recorder, goals: Sequence[Goal]) -> None:
        """Makes one trial after another until every goal is settled."""
        while (request := self.next_trial(recorder, goals)) is not None:
            recorder.measure(*request)

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        """Runs the search as the base says."""
        recorder, ended = Recorder(measure, limits), Ended.SETTLED
        try:
            self.drive(recorder, goals)
        except Spent as spent:
            ended = spent.ended
        return outcomes_of(recorder.samples, goals, limits, ended)

    def next_trial(self, recorder: Recorder, goals: Sequence[Goal]) -> TrialRequest | None:
        """Returns the next trial, or ``None`` when every goal is settled.

        The gaps of all goals are closed before any end is confirmed, so that a small budget is spent where it helps
        most; the strictest goal comes first. The time for validation is kept.
        """
        samples, limits = recorder.samples, recorder.limits
        if not samples:
            return TrialRequest(limits.maximum_load_frames_per_s, self.flood_s or limits.trial_duration_s)
        if _is_dead(samples, limits):
            return None
        readings = [read(samples, goal, limits) for goal in sorted(goals, key=lambda goal: goal.loss_ratio)]
        floors = {zones.goal.name: find_floor(samples, zones.goal) for zones in readings}
        settled = [zones for zones in readings if floors[zones.goal.name] is None]
        unvalidated = [zones.every for zones in settled if zones.every is not None and not is_validated(zones, limits)]
        if unvalidated and self._must_validate(recorder, len({one.load_frames_per_s for one in unvalidated})):
            return TrialRequest(unvalidated[0].load_frames_per_s, limits.longest_trial_s)
        for zones in settled:
            for gap in open_gaps(zones, limits):
                load = self.choose(zones, gap, samples, limits)
                load = max(limits.minimum_load_frames_per_s, min(load, limits.maximum_load_frames_per_s))
                return TrialRequest(load, duration_at(load, limits))
        for floor in floors.values():
            if floor is not None and (load := choose_for_floor(floor, samples, limits)) is not None:
                return TrialRequest(load, duration_at(load, limits))
        for zones in settled:
            unsure = find_unconfirmed(zones, self.options.trials_per_bound, limits)
            if unsure is not None:
                duration_s = max(unsure.sample.duration_s, duration_at(unsure.load_frames_per_s, limits))
                return TrialRequest(unsure.load_frames_per_s, duration_s)
        if unvalidated:
            return TrialRequest(unvalidated[0].load_frames_per_s, limits.longest_trial_s)
        return None

    def _must_validate(self, recorder: Recorder, wanted: int) -> bool:
        """Returns whether there is only time, or trials, left for the validations that are wanted."""
        long_s = [recorder.limits.longest_trial_s] * wanted
        return recorder.trials_left <= wanted or not recorder.has_time_for(recorder.limits.trial_duration_s, *long_s)


def duration_at(load_frames_per_s: float, limits: Limits) -> float:
    """Returns how long a trial lasts at this load: as asked for, or longer where it offers too few frames."""
    wanted_s = FRAMES_WANTED / limits.precision / load_frames_per_s
    return max(limits.trial_duration_s, min(wanted_s, LONGEST_S))


def find_unconfirmed(zones: Zones, wanted: int, limits: Limits) -> Vote | None:
    """Returns an end of the zones that too few trials confirm; the lower end comes first.

    Each trial tells of the highest load that it would have passed: no less than its load where it passed, less where it
    failed, and the rate itself where it was too much for the DUT. An end is confirmed by ``wanted`` trials at it, and by
    a sign test over all trials at its load or above: that half of the trials would pass the lower end, or fail the upper
    one, is no chance (``CHANCE``). Where the rates that were told agree, they do in place of that test.
    """
    step, room = zones.step(limits), 0.25 * limits.precision
    far = FAR * (zones.none or zones.votes[-1]).load_frames_per_s
    told = [_tell(vote, zones.goal, limits) for vote in zones.votes]
    if any(vote.decision is Decision.FAIL and rate is None for vote, rate in zip(zones.votes, told, strict=True)):
        told = [None] * len(told)  # losses begin below the rate that is forwarded, which then says nothing of the goal
    known = [
        (vote, rate)
        for vote, rate in zip(zones.votes, told, strict=True)
        if _is_full(vote, limits) and vote.load_frames_per_s <= far
    ]
    is_sharp = _agree(zones, [rate for rate in told if rate is not None], limits) or _repeats(zones, limits)
    for end, decision in ((zones.none, Decision.FAIL), (zones.every, Decision.PASS)):
        if end is None:
            continue
        load = end.load_frames_per_s
        at_or_above = [(vote, rate) for vote, rate in known if vote.load_frames_per_s >= load * (1.0 - CLOSE)]
        low, high = (load - step, load) if decision is Decision.PASS else (load, load + step)
        near = sum(
            vote.decision is decision and low * (1.0 - CLOSE) <= vote.load_frames_per_s <= high * (1.0 + CLOSE)
            for vote, _ in known
        )
        if near < (wanted if decision is Decision.PASS and not zones.goal.loss_ratio else 1):
            return end
        bears = sum(
            vote.decision is Decision.PASS or (rate or 0.0) >= load * (1.0 - room) for vote, rate in at_or_above
        )
        exceeds = sum(
            vote.decision is Decision.PASS or (rate or 0.0) > load * (1.0 + room) for vote, rate in at_or_above
        )
        lacks = sum(rate is not None and rate < load * (1.0 - room) for _, rate in at_or_above)
        fails = sum(
            vote.decision is Decision.FAIL
            and (rate <= load * (1.0 + room) if rate is not None else vote.load_frames_per_s <= load + step)
            for vote, rate in at_or_above
        )
        # Trials between the ends that tell no rate speak against either end, each by half.
        between = [
            vote.decision
            for vote, rate in known
            if rate is None and load - step < vote.load_frames_per_s < load + step and vote.load_frames_per_s != load
        ]
        if decision is Decision.PASS:
            chance = _chance(bears, lacks + between.count(Decision.FAIL) // 2)
        else:
            chance = _chance(fails, exceeds + between.count(Decision.PASS) // 2)
        if chance > CHANCE and not is_sharp:
            return end
    return None


def _agree(zones: Zones, told: Sequence[float], limits: Limits) -> bool:
    """Returns whether most of the rates that were forwarded are one rate, between a load that passed and one that
    failed; a flood may have brought another to light.
    """
    if zones.some is not None or zones.every is None or zones.none is None:
        return False
    low, high = zones.every.load_frames_per_s, zones.none.load_frames_per_s
    room = max(0.5 * limits.precision * high, 1.5 / zones.none.sample.duration_s)
    agreeing = [rate for rate in told if low - room <= rate <= high + room]
    return len(agreeing) >= max(AGREEING, len(told) - 1) and max(agreeing) - min(agreeing) <= room


def _repeats(zones: Zones, limits: Limits) -> bool:
    """Returns whether trials at the upper end lost alike, and so much that none passes by chance."""
    if zones.some is not None or zones.none is None:
        return False
    load, near = zones.none.load_frames_per_s, 0.1 * limits.precision
    there = [one.sample.counts for one in zones.votes if abs(one.load_frames_per_s - load) <= near * load]
    ratios = [counts.loss_ratio for counts in there]
    frames = min(counts.offered for counts in there)
    lost = min(counts.failed - zones.goal.loss_ratio * counts.offered for counts in there)
    room = 0.25 * limits.precision + 3.0 * math.sqrt(2.0 * max(ratios) / frames)
    return len(there) > 1 and lost >= CERTAINLY and max(ratios) - min(ratios) <= room


def _tell(vote: Vote, goal: Goal, limits: Limits) -> float | None:
    """Returns the rate that a failed trial forwarded; of one beyond twice the rate it is another matter (livelock)."""
    return None if vote.decision is not Decision.FAIL else forwarded_rate(vote.sample, goal, limits)


def _is_full(vote: Vote, limits: Limits) -> bool:
    return vote.sample.duration_s >= limits.trial_duration_s * (1.0 - CLOSE)


def _chance(agreeing: int, contradicting: int) -> float:
    """Returns the probability that as many trials agree, or more, where half of them do."""
    trials = agreeing + contradicting
    return sum(math.comb(trials, count) for count in range(agreeing, trials + 1)) / 2.0**trials


def forwarded_rate(sample: Sample, goal: Goal, limits: Limits) -> float | None:
    """Returns the load at which the goal would just be met if the DUT forwarded as much as it did in a trial that was
    too much for it; None of any other trial.
    """
    least = TELLS_RATE * limits.precision
    if not sample.counts.received or max(sample.counts.loss_ratio, sample.queued_share) < least:
        return None
    return sample.forwarded_frames_per_s / (1.0 - goal.loss_ratio)


def _is_dead(samples: Sequence[Sample], limits: Limits) -> bool:
    """Returns whether no frame came back at any load, of which one was low."""
    low = dead_probe(limits) * (1.0 + CLOSE)
    return all(not one.counts.received for one in samples) and any(one.load_frames_per_s <= low for one in samples)


def dead_probe(limits: Limits) -> float:
    """Returns a load that shows whether a DUT passes anything: so few frames that hardly any DUT is overloaded."""
    few = 20.0 / limits.trial_duration_s
    return min(max(limits.minimum_load_frames_per_s, few), limits.maximum_load_frames_per_s)


def choose_for_floor(floor: LossFloor, samples: Sequence[Sample], limits: Limits) -> float | None:
    """Returns a load that shows whether a loss comes at any load, and how large it is; None where both are known.

    Half the lowest load so far shows whether it does, as long as some frames should be lost there; then the highest
    load of the floor loses most frames.
    """
    if floor.upper - floor.lower <= FLOOR_ENOUGH * floor.ratio or len(samples) >= FLOOR_TRIALS:
        return None
    loads = [one.sent_frames_per_s for one in samples if one.counts.loss_ratio <= 1.5 * floor.upper]
    half = min(loads) / 2.0
    is_telling = half * floor.trial_s * floor.ratio >= FLOOR_LOW and half >= limits.minimum_load_frames_per_s
    return half if is_telling else max(loads)
