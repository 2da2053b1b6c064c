"""What is wrong with a history that was played, whatever its world was, and whether its intervals hold the truth."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from tests.consistent._checks import contradictions
from tests.consistent._whole import Whole
from tests.simulated.histories import LIES, Ran
from tests.simulated.worlds import holds

from nicbench.core.errors import BusyError, EngineError
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.trial import Trial
from nicbench.search.base import NDR, PDR, Goal


def find_faults_together(every: Sequence[Ran]) -> Iterator[str]:
    """Yields what is wrong with runs that asked for one machine."""
    for ran in every:
        yield from (f"{ran.history.seed}: {fault}" for fault in find_faults(ran))
        if isinstance(ran.error, BusyError) and ran.trials:
            yield f"{ran.history.seed}: it measured, and then was refused the machine"
    stands = [ran.history.stand for ran in every if ran.history.stand is not None]
    times = sorted((stand.busy[0], stand.busy[-1]) for stand in stands if stand.busy)
    for (_, end), (begin, _) in itertools.pairwise(times):
        if begin < end:
            yield f"two runs had the machine at {begin:.3f} s"
    if all(isinstance(ran.error, BusyError) for ran in every):
        yield "every run was refused the machine"


def find_faults(ran: Ran) -> Iterator[str]:
    """Yields what is wrong with a run, whatever its world was like."""
    yield from _find_false_counts(ran)
    yield from _find_lost_results(ran)
    yield from _find_other_metrics(ran)
    yield from _find_trust_in_broken_trials(ran)
    yield from _find_trust_in_broken_rounds(ran)
    trials = {trial.id: trial for trial in ran.trials}
    for result in ran.summary.results if ran.summary else ():
        for name, rate in result.values.items():
            if isinstance(rate, Bounded) and name in ("ndr_frames_per_s", "pdr_frames_per_s"):
                goal = NDR if name.startswith("ndr") else PDR
                yield from _find_unseen(result, rate, goal, [trials[one] for one in result.trials], ran.history.trial_s)
    yield from _find_invented_rates(ran)
    is_read_whole = ran.history.seed % READ_WHOLE == 1 or ran.history.seed % (8 * READ_WHOLE) == 7
    if is_read_whole and ran.summary is not None and ran.error is None:
        yield from contradictions(Whole(ran.folder))


READ_WHOLE = 50
"""The number of histories of which one report is read whole, which takes longer than the run; of rounds, of eight times
as many.
"""


_OF_STREAMS = ("intended", "sent", "unsent", "received", "lost", "late", "corrupted", "unattributed", "duplicated")
"""The counts of which the total is the sum over streams; others are of ports, too."""


def _find_false_counts(ran: Ran) -> Iterator[str]:
    for trial in ran.trials:
        every = [trial.reading.counts, *(stream.counts for stream in trial.reading.streams)]
        for counts in every:
            known = {name: value for name, value in counts if value is not None}
            if any(value < 0 for value in known.values()):
                yield f"{trial.id}: a negative count"
            after = sum(known.get(one, 0) for one in ("received", "lost", "late", "corrupted", "unattributed"))
            if counts.sent != after or counts.intended != counts.sent + counts.unsent:
                yield f"{trial.id}: sent {counts.sent} of {counts.intended}, and {after} are accounted for"
        summed = Counts.sum_of(stream.counts for stream in trial.reading.streams)
        if any(getattr(summed, name) != getattr(trial.reading.counts, name) for name in _OF_STREAMS):
            yield f"{trial.id}: its streams do not add up to its counts"


def _find_lost_results(ran: Ran) -> Iterator[str]:
    kept = {result.id for result in ran.summary.results} if ran.summary else set()
    for result in ran.published:
        if result.id not in kept:
            yield f"{result.id} was published and is not in the summary"
    if ran.error is None and ran.summary is None:
        yield "the run ended without an error and without a summary"
    if ran.error is not None and not str(ran.error).strip():
        yield "the run ended with an error that says nothing"
    if isinstance(ran.error, EngineError) and ran.history.mishap not in LIES:
        yield f"the tester is blamed, and told the truth: {ran.error}"
    for result in ran.summary.results if ran.summary else ():
        reasons = [one.reason_null for one in result.values.values() if isinstance(one, Bounded) and one.value is None]
        if not all(reasons):
            yield f"{result.id}: a rate is unknown, and no reason is given"


def _find_other_metrics(ran: Ran) -> Iterator[str]:
    """Yields where a client was told other counts than the results say."""
    results = {(one.parameters.get("transmission"), one.parameters.get("flow")): one.values for one in ran.published}
    for number, flows in enumerate(ran.told, 1):
        for name, flow in flows.items():
            values = results.get((number, name), {})
            counted = (values.get("sent_frames"), values.get("received_frames"))
            read = (flow["frames_tx"], flow["frames_rx"])
            if counted != read:
                yield f"transmission {number}, {name}: sent and received {counted}, and a client read {read}"


def _find_trust_in_broken_trials(ran: Ran) -> Iterator[str]:
    if ran.history.stand is None:
        return
    broken = {Trial.id_of(number) for number in ran.history.stand.broken}
    for trial in ran.trials:
        if trial.id in broken and trial.verdict.valid and not _is_unharmed(trial):
            yield f"{trial.id}: valid, although {ran.history.mishap}"
    sound = {trial.id for trial in ran.trials if trial.verdict.valid}
    for result in ran.summary.results if ran.summary else ():
        used = broken & set(result.trials) - sound
        if used and result.verdict is ResultVerdict.VALID and "ndr_frames_per_s" not in result.values:
            yield f"{result.id}: valid, and made of {', '.join(sorted(used))}"


def _find_trust_in_broken_rounds(ran: Ran) -> Iterator[str]:
    for one in ran.rounds:
        failed = [outcome.failure for outcome in one.outcomes if outcome.failure is not None]
        began = [outcome.began_s for outcome in one.outcomes if outcome.began_s is not None]
        is_together = not began or max(began) - min(began) < 0.5 * one.request.duration_s
        is_stolen = any((cpu.steal or 0.0) >= 0.1 for cpu in one.cpu)
        if one.verdict.valid and (failed or is_stolen or not is_together):
            yield f"{one.id}: valid, although a tool failed or began late, or time was stolen"
    sound = {one.id for one in ran.rounds if one.verdict.valid}
    known = {one.id for one in ran.rounds}
    for result in ran.summary.results if ran.summary else ():
        used = known & set(result.trials) - sound
        if used and result.verdict is ResultVerdict.VALID:
            yield f"{result.id}: valid, and made of {', '.join(sorted(used))}"


def _is_unharmed(trial: Trial) -> bool:
    return not trial.reading.counts.failed


def _find_unseen(result: Result, rate: Bounded, goal: Goal, trials: Sequence[Trial], trial_s: float) -> Iterator[str]:
    """Yields where a rate says more than its trials showed."""
    full = [trial for trial in trials if trial.request.duration_s >= 0.999 * trial_s]
    if not full or rate.loss_floor is not None:
        return
    frame = 2.0 / trial_s  # the load of a trial is known to a frame at either end
    seen = [(trial.sent_frames_per_s or 0.0, trial.reading.counts.loss_ratio <= goal.loss_ratio) for trial in full]
    passed = [load for load, did in seen if did]
    if rate.lower is not None and not any(load >= rate.lower - frame for load in passed):
        yield f"{result.id}: {goal.name} {rate.lower:.0f}, and no trial passed it"
    if rate.upper is not None and rate.queue is None:
        above = [load for load in passed if load > rate.upper + frame]
        if above and goal is NDR and not _is_misled(result):
            yield f"{result.id}: {goal.name} none above {rate.upper:.0f}, and a trial passed {max(above):.0f}"
    ends = [end for end in (rate.lower, rate.half, rate.some, rate.upper) if end is not None]
    if ends != sorted(ends):
        yield f"{result.id}: its ends are out of order: {ends}"


def _is_misled(result: Result) -> bool:
    """Whether shorter trials passed what a longer one did not, as the result says."""
    return any("misl" in text or "validat" in text for text in result.disturbances)


_RATE = re.compile(r"(?<![\d.,])(\d[\d,]*(?:\.\d+)?)\s?([kMG]?)pps")


def rates_in(text: str) -> list[tuple[float, float]]:
    """Returns every rate that a text states, and by how much it was rounded, in frames per second."""
    found = []
    for number, prefix in _RATE.findall(text):
        scale = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}[prefix]
        whole, _, decimals = number.replace(",", "").partition(".")
        zeros = 0 if decimals else len(whole) - len(whole.rstrip("0"))  # they may be no digits of the rate
        found.append((float(f"{whole}.{decimals}") * scale, scale * 10.0 ** (zeros - len(decimals))))
    return found


def _numbers_of(value: Any) -> Iterator[float]:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield float(value)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _numbers_of(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _numbers_of(each)


def _find_invented_rates(ran: Ran) -> Iterator[str]:
    """Yields rates that are reported and stand neither in the results nor among the loads of trials."""
    if ran.summary is None:
        return
    known = sorted(_numbers_of(json.loads(ran.summary.model_dump_json())))
    for trial in ran.trials:
        known += [load for load in (trial.request.load_frames_per_s, trial.sent_frames_per_s) if load]
    known += [rate for rate, _ in rates_in(ran.history.bench)]
    values = np.array(sorted(known))
    for where, text in ran.said.items():
        sent = re.sub(r"(?<=pps, )not [\d.,]+ [kM]?pps", "", text)  # but for what a tester was asked for and did not
        for rate, rounded in rates_in(sent):
            room = max(1.01 * rounded, 0.006 * rate)
            at = int(np.searchsorted(values, rate))
            near = values[max(0, at - 1) : at + 1]
            if not any(abs(one - rate) <= room for one in near):
                yield f"{where}: {rate:g} frames/s stands in no result"


def find_held(ran: Ran) -> Iterator[bool]:
    """Yields, for each goal of the first search, whether its interval holds the rate that is true of the world."""
    if not ran.history.is_plain or ran.error is not None or not ran.searched:
        return
    for goal, name in ((NDR, "ndr_frames_per_s"), (PDR, "pdr_frames_per_s")):
        rate = ran.published[0].values.get(name)
        if isinstance(rate, Bounded):
            yield holds(ran.searched[0], goal, rate)
