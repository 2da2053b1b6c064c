"""What every search does around its choice of loads: it keeps samples, counts trials and time, and confirms its answer.

A load is what the tester is to *send*: where it sends a constant share of what it is asked for, it is asked for more.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from nicbench.core.lists import without_none
from nicbench.core.result import LossFloor
from nicbench.search._knee import guess_knee, of_the_dut
from nicbench.search._zones import (
    CERTAINLY,
    FLOOR_LOW,
    Decision,
    Zones,
    find_floor,
    forwarded_rate,
    is_validated,
    open_gaps,
    outcomes_of,
    read,
)
from nicbench.search.base import CLOSE, Ended, Goal, Limits, Measure, Outcome, Sample, Search
from nicbench.stats.limits import Offer, find_constant_share

FRAMES_WANTED = 1.0
"""A trial offers this many frames over the precision, where a longer one can: fewer do not resolve it."""
LONGEST_S = 10.0
LONGEST_SHARE = 1.0 / 12.0
"""No trial is made longer than this, or than this share of a search's time, for the sake of its frames."""
FLOOR_ENOUGH = 0.4
"""The ratio of a floor is known where its interval is at most this part of it wide,"""
FLOOR_TRIALS = 16
"""or after this number of trials."""
ENOUGH_TRIALS, ENOUGH_OF_SHARP = 9, 12
NEARBY, FAR = 0.05, 0.3
"""The trials between the ends, or as near to them as this part of the load, that are enough whatever they show: the
second number where losses begin slowly, or no trial contradicts another and a gap is open,"""
WIDEST, WIDEST_OF_ONE = 1.6, 1.03
"""while the ends are at most this factor apart, where trials disagree and where they do not."""
LAST_STEP = 1.2
"""The last trial that there is time for lies no less than this factor above a pass, so that an end is known there."""
AGREEING = 3
CHANCE = 0.04
"""A sign test leaves this much to chance."""


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
        """Returns whether trials of these durations end in time, by what the last one took in addition to its own."""
        if self.limits.time_s is None:
            return True
        last = self.samples[-1] if self.samples else None
        beside_s = (last.took_s or last.duration_s) - last.duration_s if last else 0.0
        return self.spent_s + sum(durations_s) + beside_s * len(durations_s) <= self.limits.time_s

    def measure(self, load_frames_per_s: float, duration_s: float) -> Sample:
        """Makes a trial in which this load is sent, as far as the tester can, and one frame at least; raises Spent."""
        duration_s = max(duration_s, (1.0 + CLOSE) / load_frames_per_s)
        if self.trials_left <= 0:
            raise Spent(Ended.TRIALS)
        if len(self.samples) > 1 and not self.has_time_for(duration_s):
            raise Spent(Ended.TIME)
        asked = min(load_frames_per_s / share_sent(self.samples), self.limits.maximum_load_frames_per_s)
        sample = self._measure(max(asked, load_frames_per_s), duration_s)
        self.samples.append(sample)
        return sample


def share_sent(samples: Sequence[Sample]) -> float:
    """Returns the share that the tester sends of any load."""
    offers = [Offer(one.load_frames_per_s, one.sent_frames_per_s, one.counts.intended) for one in samples]
    known = (find_constant_share(offers[:count]) for count in range(len(offers), 0, -1))
    return next((one for one in known if one is not None), 1.0)


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
        unsettled = [zones for zones in settled if not has_enough(zones, limits)]
        for zones in unsettled:
            for gap in open_gaps(zones, limits):
                load = self.choose(zones, gap, samples, limits)
                load = max(limits.minimum_load_frames_per_s, min(load, limits.maximum_load_frames_per_s))
                duration_s, at_last = duration_at(load, limits), LAST_STEP * (gap[0] or 0.0)
                if load < at_last < (gap[1] or 0.0) and not recorder.has_time_for(duration_s, duration_s):
                    load = at_last
                return TrialRequest(load, duration_s)
        for floor in floors.values():
            telling = None if floor is None else choose_for_floor(floor, samples, limits)
            if telling is not None:
                return TrialRequest(telling, duration_at(telling, limits))
        wanted = [find_unconfirmed(zones, self.options.trials_per_bound, limits) for zones in unsettled]
        unsure = without_none(wanted)
        if unsure:  # a trial above the ends of several goals tells of each
            load = max(one for one in unsure if one <= unsure[0] * (1.0 + 2.0 * limits.precision))
            duration_s = duration_at(load, limits)
            if not recorder.has_time_for(duration_s, duration_s):
                raise Spent(Ended.TIME)  # a trial that contradicts an end wants another to find it anew
            return TrialRequest(load, duration_s)
        if unvalidated:
            return TrialRequest(unvalidated[0].load_frames_per_s, limits.longest_trial_s)
        return _witness(settled, recorder)

    def _must_validate(self, recorder: Recorder, wanted: int) -> bool:
        """Returns whether there is only time, or trials, left for the validations that are wanted."""
        long_s = [recorder.limits.longest_trial_s] * wanted
        return recorder.trials_left <= wanted or not recorder.has_time_for(recorder.limits.trial_duration_s, *long_s)


def _witness(readings: Sequence[Zones], recorder: Recorder) -> TrialRequest | None:
    """Returns a further trial just outside the zone in which trials disagree, below and above it by turns, as long as
    there is time for it.
    """
    limits = recorder.limits
    zones = next((one for one in readings if one.disagree and one.every and one.none), None)
    if zones is None or not limits.spends_time or recorder.trials_left <= 0:
        return None
    known = [rate for _, rate in zones.told] + [vote.load_frames_per_s for vote in zones.votes if vote is zones.some]
    lower, upper = zones.lower or 0.0, zones.upper or math.inf
    if len(recorder.samples) % 2:
        load = max(lower, min(known, default=lower) * (1.0 - limits.precision))
    else:
        load = min(upper, max(known, default=upper) * (1.0 + limits.precision))
    load = max(limits.minimum_load_frames_per_s, load)  # a trial that forwarded nothing makes the lower end 0
    duration_s = duration_at(load, limits)
    return TrialRequest(load, duration_s) if recorder.has_time_for(duration_s, duration_s) else None


def duration_at(load_frames_per_s: float, limits: Limits) -> float:
    """Returns how long a trial lasts at this load: as asked for, or longer where it offers too few frames."""
    wanted_s = FRAMES_WANTED / limits.precision / load_frames_per_s
    return max(
        limits.trial_duration_s, min(wanted_s, LONGEST_S, LONGEST_SHARE * (limits.time_s or math.inf) / limits.searches)
    )


def has_enough(zones: Zones, limits: Limits) -> bool:
    """Returns whether enough trials lie near the ends: further ones would narrow the answer of a DUT whose trials
    differ by their square root only.
    """
    if zones.every is None or zones.none is None or zones.lower is None or zones.upper is None:
        return False
    near = sum(
        zones.lower * (1.0 - NEARBY) <= vote.load_frames_per_s <= zones.upper * (1.0 + NEARBY)
        and vote.sample.duration_s >= limits.trial_duration_s * (1.0 - CLOSE)
        for vote in zones.votes
    )
    widest = WIDEST if zones.disagree else WIDEST_OF_ONE
    low, high = zones.lower, zones.upper
    if zones.goal.loss_ratio and not zones.disagree:
        low, high = zones.every.load_frames_per_s, zones.none.load_frames_per_s
    if zones.is_slight and not zones.goal.loss_ratio:
        return near >= ENOUGH_OF_SHARP
    is_open = not zones.disagree and not zones.is_slight and open_gaps(zones, limits)
    return near >= (ENOUGH_OF_SHARP if is_open else ENOUGH_TRIALS) and high <= low * widest


def find_unconfirmed(zones: Zones, wanted: int, limits: Limits) -> float | None:
    """Returns a load at which an end of the zones wants a further trial; None where both ends are confirmed.

    Each trial tells what the DUT carried: no less than the load where it passed, less where it failed, and the rate
    itself where it was too much. An end is confirmed by ``wanted`` trials, and by a sign test over the trials at its
    load or above: that half of them carry the lower end, or fail at the upper one, is not due to chance (``CHANCE``).
    Known rates that agree, failures that repeat, and a longer trial that validates make that test superfluous.
    """
    if zones.every is None or zones.none is None or limits.validation_duration_s is not None:
        return None
    if zones.is_slight and not zones.goal.loss_ratio:
        load = zones.every.load_frames_per_s
        if zones.surely_lossy is None:
            return zones.none.load_frames_per_s
        if (zones.surely_kept or 0.0) >= load * (1.0 - NEARBY):
            return None
        knee = guess_knee(of_the_dut([vote.sample for vote in zones.votes]), zones.goal, limits)
        return load if knee is None or knee < (1.0 - FAR) * load else min(load, knee)
    told = {id(vote): rate for vote, rate in zones.told}
    full = [vote for vote in zones.votes if vote.sample.duration_s >= limits.trial_duration_s * (1.0 - CLOSE)]
    step = zones.step(limits)
    is_sharp = _agree(zones, limits) or _repeats(zones, limits)
    lower, upper = zones.lower or 0.0, zones.upper or math.inf
    if not is_sharp:
        load = zones.none.load_frames_per_s
        near = [vote for vote in full if load * (1.0 - CLOSE) <= vote.load_frames_per_s <= load + step]
        fails = sum(vote.decision is Decision.FAIL and told.get(id(vote), 0.0) <= upper for vote in near)
        passes = sum(vote.decision is Decision.PASS and load - step < vote.load_frames_per_s for vote in full)
        if _chance(fails, 0 if zones.told else passes // 2) > CHANCE:
            return min(limits.maximum_load_frames_per_s, load * (1.0 + limits.precision) if zones.disagree else load)
    load = zones.every.load_frames_per_s
    near = [vote for vote in full if vote.load_frames_per_s >= load - step]
    passes = sum(vote.decision is Decision.PASS for vote in near)
    if passes < (wanted if not zones.goal.loss_ratio and not zones.some else 1):
        return load
    bears = sum(
        (vote.decision is Decision.PASS and vote.load_frames_per_s >= lower * (1.0 - CLOSE)) or id(vote) in told
        for vote in full
    )
    fails = sum(vote.decision is Decision.FAIL and vote.load_frames_per_s < load + step for vote in full)
    if not is_sharp and _chance(bears, 0 if zones.told else fails // 2) > CHANCE:
        return load
    return None


def _agree(zones: Zones, limits: Limits) -> bool:
    """Returns whether most of the rates that were forwarded are one rate, between a load that passed and one that
    failed; a flood may have brought another to light.
    """
    if zones.disagree or zones.every is None or zones.none is None or not zones.told:
        return False
    low, high = zones.every.load_frames_per_s, zones.none.load_frames_per_s
    room = max(0.5 * limits.precision * high, 1.5 / zones.none.sample.duration_s)
    rates = [forwarded_rate(vote.sample, zones.goal, limits) for vote in zones.votes if vote.decision is Decision.FAIL]
    known = without_none(rates)
    agreeing = [rate for rate in known if low - room <= rate <= high + room]
    return len(agreeing) >= max(AGREEING, len(known) - 1) and max(agreeing) - min(agreeing) <= room


def _repeats(zones: Zones, limits: Limits) -> bool:
    """Returns whether trials at the upper end lost alike, and too much for one to pass by chance."""
    if zones.disagree or zones.none is None:
        return False
    load, near = zones.none.load_frames_per_s, 0.1 * limits.precision
    there = [one.sample.counts for one in zones.votes if abs(one.load_frames_per_s - load) <= near * load]
    ratios = [counts.loss_ratio for counts in there]
    frames = min(counts.offered for counts in there)
    lost = min(counts.failed - zones.goal.loss_ratio * counts.offered for counts in there)
    room = 0.25 * limits.precision + 3.0 * math.sqrt(2.0 * max(ratios) / frames)
    return len(there) > 1 and lost >= CERTAINLY and max(ratios) - min(ratios) <= room


def _chance(agreeing: int, contradicting: int) -> float:
    """Returns the probability that as many trials agree, or more, where half of them do."""
    trials = agreeing + contradicting
    return sum(math.comb(trials, count) for count in range(agreeing, trials + 1)) / 2.0**trials


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

    A load at which few frames should be lost shows whether it does, and half the lowest load so far, as long as some
    should be lost there; then the highest load of the floor loses most frames.
    """
    lowest = min(one.sent_frames_per_s for one in samples)
    few = max(2.0 * FLOOR_LOW / (floor.trial_s * floor.ratio), limits.minimum_load_frames_per_s)
    if few < 0.5 * lowest:
        return few
    if floor.upper - floor.lower <= FLOOR_ENOUGH * floor.ratio or len(samples) >= FLOOR_TRIALS:
        return None
    half = lowest / 2.0
    is_telling = half * floor.trial_s * floor.ratio >= FLOOR_LOW and half >= limits.minimum_load_frames_per_s
    return half if is_telling else floor.up_to_frames_per_s
