"""What the method of a test of frames is given: its trials and searches, the tester's ceilings, earlier results.

A search is synchronous and asks for one measurement after the other: it runs in a thread, and its trials on the event
loop (``searching``). Results are completed with what no method knows: rates over all ports, each port by itself, the
tester's own limits.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from nicbench.core.events import BoundsNarrowed, CeilingFound, GoalBounds
from nicbench.core.frame_size import IMIX, Size, mean_bytes, size_label, words_of
from nicbench.core.frozen import frozen
from nicbench.core.judging import REPEATS_OF_TRIALS, Reason, RepeatPolicy
from nicbench.core.pattern import Ways
from nicbench.core.result import LimitedBy, Result
from nicbench.core.traffic import Traffic
from nicbench.core.trial import Latency, Reading, Trial, TrialRequest
from nicbench.core.units import format_rate, line_rate_frames_per_s
from nicbench.measure.ceiling import Ceilings
from nicbench.measure.completing import (
    add_basis,
    add_broadcasts,
    add_near_limits,
    add_ports,
    add_share,
    drop_line_rate_shares,
)
from nicbench.measure.learning import add_unlearnt
from nicbench.measure.samples import LiveContext, RepeatRule, TestSetting
from nicbench.measure.trials import TrialMaker
from nicbench.methods.base import GiveWay, SearchResult
from nicbench.search import bounds_so_far, share_sent
from nicbench.search.base import Goal, Limits, Outcome, Sample, Search
from nicbench.stats.limits import Offer, find_constant_share

# Testers that fall short by a constant share: which share each frame size has, learnt from trials at two loads.
#
# One shortfall that comes twice looks like a ceiling. Only a trial at another load tells whether the tester sends the
# same rate there, or the same share; until then nobody is told of a ceiling.


class TesterShares:
    """What the tester offered at each frame size, and the share that it is known to send."""

    def __init__(self) -> None:
        self._offers: dict[str, list[Offer]] = {}
        self._shares: dict[str, float] = {}

    def share_of(self, size: Size) -> float:
        """The share of a load that the tester sends at this frame size; 1 as long as no other is known."""
        return self._shares.get(size_label(size), 1.0)

    def note_shortfall(self, request: TrialRequest, rate_frames_per_s: float) -> bool:
        """Whether the rate that was sent instead of a load shows, with earlier ones, that the share is constant."""
        size, load = size_label(request.size), request.load_frames_per_s
        if load is None or size in self._shares:
            return False
        offers = self._offers.setdefault(size, [])
        offers.append(Offer(load, rate_frames_per_s, load * request.duration_s))
        share = find_constant_share(offers)
        if share is not None:
            self._shares[size] = share
        return share is not None

    def note_trial(self, trial: Trial) -> None:
        """Notes a valid trial: a load that was sent in full contradicts a share."""
        load, counts = trial.request.load_frames_per_s, trial.reading.counts
        if (
            load is None
            or not trial.verdict.valid
            or trial.request.phases
            or trial.request.streams
            or not counts.intended
        ):
            return
        sent = load * (counts.offered) / counts.intended
        self._offers.setdefault(size_label(trial.request.size), []).append(Offer(load, sent, counts.intended))


# A search under way: it runs in a thread while its trials are made on the event loop, and says how far it has come.


def bounds_event(
    test: str, point: dict[str, Any], samples: Sequence[Sample], goals: Sequence[Goal], limits: Limits
) -> BoundsNarrowed:
    """The event that tells between which loads each goal's rate lies, by all samples of a search so far."""
    found = ((goal.name, *bounds_so_far(samples, goal, limits)) for goal in goals)
    return BoundsNarrowed(
        test=test,
        parameters=point,
        bounds=tuple(
            GoalBounds(goal=name, passing_frames_per_s=passing, failing_frames_per_s=failing)
            for name, passing, failing in found
        ),
        trials=len(samples),
        maximum_trials=limits.maximum_trials,
    )


class _TrialOrder(NamedTuple):
    """A trial that the search's thread is waiting for."""

    load_frames_per_s: float
    duration_s: float
    answer: concurrent.futures.Future[Sample]


class _SearchAbandonedError(Exception):
    """Thrown into the search's thread, so that it ends when its run does."""


async def run_search(
    search: Search, measure: Callable[[float, float], Awaitable[Sample]], goals: Sequence[Goal], limits: Limits
) -> dict[str, Outcome]:
    """Runs the search to its end. Trials run in the caller's task: cancelling it cancels the trial under way."""
    loop = asyncio.get_running_loop()
    wanted: asyncio.Queue[_TrialOrder | None] = asyncio.Queue()

    def measure_from_thread(load_frames_per_s: float, duration_s: float) -> Sample:
        one = _TrialOrder(load_frames_per_s, duration_s, concurrent.futures.Future())
        loop.call_soon_threadsafe(wanted.put_nowait, one)
        return one.answer.result()

    thread = concurrent.futures.ThreadPoolExecutor(1)  # its own: searches that take turns wait for each other in theirs
    finished = loop.run_in_executor(thread, search.run, measure_from_thread, goals, limits)
    finished.add_done_callback(lambda _: wanted.put_nowait(None))
    one: _TrialOrder | None = None
    try:
        while (one := await wanted.get()) is not None:
            one.answer.set_result(await measure(one.load_frames_per_s, one.duration_s))
        return finished.result()
    except BaseException:
        # The thread waits for an answer, or will: it must not outlive the run.
        while not finished.done():
            if one is not None and not one.answer.done():
                one.answer.set_exception(_SearchAbandonedError())
            one = await wanted.get()
        finished.exception()
        raise
    finally:
        thread.shutdown(wait=False)


# A load just below a ceiling, so that the tester's rate, which wavers, reaches it.
CEILING_ROOM = 0.01


class CeilingReached(Exception):  # noqa: N818 - a finding, no error
    """The tester repeatedly could not send what was asked; ``rate_frames_per_s`` is what it sent."""

    def __init__(self, rate_frames_per_s: float) -> None:
        super().__init__(f"the tester sends no more than {rate_frames_per_s:.0f} frames/s")
        self.rate_frames_per_s = rate_frames_per_s


class TrialRepeats(RepeatRule[Trial]):
    """Of invalid trials the least disturbed is used; a shortfall of the tester that comes twice is its ceiling."""

    policy = REPEATS_OF_TRIALS

    def cost_s(self, sample: Trial) -> float:
        request = sample.request
        return request.duration_s + request.drain_s + request.settle_s

    def disturbance(self, sample: Trial) -> tuple[float, ...]:
        """How many times a limit the worst finding is, then the pauses."""
        worst = max((finding.times_its_limit for finding in sample.verdict.findings), default=0.0)
        health = sample.reading.health
        if health.total_gap_ns is None:
            return worst, abs(health.overtime_ns or 0), health.queue_full or 0
        return worst, health.total_gap_ns, health.longest_gap_ns or 0

    def useless(self, sample: Trial) -> str | None:
        """Why its losses are not the DUT's: a link, a broken or changed path, or too short a drain took frames."""
        never_told = (Reason.LINK_CHANGED, Reason.LATE, Reason.PEER_FAILED, Reason.CHANGED)
        told = (one.text for one in sample.verdict.findings if one.reason in never_told)
        return next(told, None)

    def compare(self, before: Trial, last: Trial, policy: RepeatPolicy) -> None:
        """Raises CeilingReached where the tester twice in a row sent the same rate, less than it was asked for."""
        one, two = shortfall_rate_frames_per_s(before), shortfall_rate_frames_per_s(last)
        if one is not None and two is not None and abs(one - two) <= policy.ceiling_agreement * max(one, two):
            raise CeilingReached(min(one, two))


@frozen
class OfferedTraffic:
    """The traffic of a run as methods see it: on which ways, and between ports of which speed."""

    traffic: Traffic
    ways: Ways
    link_bits_per_s: float
    link_is_nominal: bool = False
    """Whether that is what a virtual link claims, and not what it can carry."""


class LiveFrameContext(LiveContext[Trial, TrialRequest]):
    """The context of one test of frames; see ``methods.base.Context``."""

    def __init__(
        self,
        test: TestSetting,
        maker: TrialMaker,
        ceilings: Ceilings,
        offered: OfferedTraffic,
    ) -> None:
        super().__init__(test, maker, TrialRepeats())
        self.bidirectional = offered.ways.bidirectional
        self.ports = maker.ports
        self.pattern = offered.traffic.pattern
        self.ip: int = offered.traffic.ip
        self.streams = tuple(stream.name for stream in offered.traffic.port_streams())
        self.sending_ports = offered.ways.sending_ports
        self.most_line_rates = offered.ways.most_line_rates
        self.power = maker.power
        self.dut_links = maker.dut_links
        self._offered = offered
        self._maker = maker
        self._ceilings = ceilings
        self._shares = TesterShares()
        self._trials: dict[str, Trial] = {}
        self._searched_s = 0.0
        self._cancelled: asyncio.CancelledError | None = None

    def sizes(self, written: Iterable[int | str]) -> tuple[Size, ...]:
        """The frame sizes of a test, with mixes in place of their names, which the bench file's checks made sure of."""
        return tuple(size if isinstance(size, int) else self._offered.traffic.mix(size) or IMIX for size in written)

    def line_rate_frames_per_s(self, size: Size) -> float:
        """The line rate of one port at this frame size."""
        return line_rate_frames_per_s(self._offered.link_bits_per_s, mean_bytes(size))

    def known_rate_frames_per_s(self, trial_s: float) -> float | None:
        """That of a DUT whose rate is known, for trials of so long."""
        return self._maker.dut.known_rate_frames_per_s(trial_s)

    async def ceiling_frames_per_s(self, size: Size) -> float | None:
        """The tester's ceiling per port at this frame size, without a DUT."""
        return await self._ceilings.ceiling_frames_per_s(size)

    async def tester_latency(self, size: Size) -> Latency | None:
        """The tester's own latency at this frame size, without a DUT."""
        return await self._ceilings.latency(size)

    async def measure(self, point: dict[str, Any], request: TrialRequest) -> tuple[Trial, bool]:
        """One judged trial, repeated where invalid; True where the least disturbed of all had to be used.

        Where the tester cannot send the load, it is measured at what the tester can send; where it always sends a share
        of what it is asked for, it is asked for more, up to the line rate.
        """
        load, ceilings = request.load_frames_per_s, list[float]()
        while True:
            asked = self._raise_to_send(request, load)
            try:
                trial, disturbed = await self.sample(point, asked)
            except CeilingReached as reached:
                if self._shares.note_shortfall(asked, reached.rate_frames_per_s):
                    load, ceilings = request.load_frames_per_s, []  # again, with the share of the load that is sent
                else:
                    ceilings.append(reached.rate_frames_per_s)
                    load = reached.rate_frames_per_s * (1.0 - CEILING_ROOM)
                continue
            for rate in ceilings:
                self._publish_ceiling(request.size, rate)
            self._note(trial)
            return trial, disturbed

    def _note(self, trial: Trial) -> None:
        self._shares.note_trial(trial)
        self._trials[trial.id] = trial

    def _raise_to_send(self, request: TrialRequest, load: float | None) -> TrialRequest:
        """Returns a request that the tester sends ``load`` of, as far as the line carries what is then asked for."""
        share = self._shares.share_of(request.size)
        if share != 1.0 and load is not None and request.frames is None and not _has_loads(request):
            most = self.line_rate_frames_per_s(request.size) * self.most_line_rates
            load = min(load / share, max(load, most))
        return request.replace(load_frames_per_s=load, bidirectional=self.bidirectional, sent_share=share)

    async def search(
        self,
        search: Search,
        point: dict[str, Any],
        request: TrialRequest,
        goals: tuple[Goal, ...],
        limits: Limits,
        give_way: GiveWay | None = None,
    ) -> SearchResult:
        """Every load of the search is one trial: an invalid one guides it too, and is repeated only where it tells
        nothing. Where the run is interrupted the outcomes are those of the trials so far, and ``publish`` ends the run.
        """
        samples = []
        traffic_ns = 0
        since_s = self._searched_s if give_way is None else 0.0  # searches that take turns share the time of the test

        async def measure(load_frames_per_s: float, duration_s: float) -> Sample:
            nonlocal traffic_ns, since_s
            asked = request.replace(
                load_frames_per_s=load_frames_per_s,
                duration_s=duration_s,
                bidirectional=self.bidirectional,
                adjusts=True,
            )
            trial, _ = await self.sample(point, asked, repeats=False)
            self._note(trial)
            traffic_ns += trial.reading.transmit_ns
            sample = sample_of(trial)
            self._searched_s += sample.took_s or 0.0
            samples.append(sample.replace(took_s=self._searched_s - since_s))
            since_s = self._searched_s
            if trial.key not in self._maker.log.journaled:
                self._maker.log.bus.publish(bounds_event(self._test.name, point, samples, goals, limits))
            if give_way is not None:
                await give_way()
            return samples[-1]

        try:
            outcomes = await run_search(search, measure, goals, limits)
        except asyncio.CancelledError as cancelled:
            if not samples:
                raise
            self._cancelled = cancelled
            outcomes = search.conclude(samples, goals, limits)
        most = max((one.sent_frames_per_s for one in samples), default=0.0)
        if any(outcome.rate.limited_by is LimitedBy.TESTER for outcome in outcomes.values()):
            self._publish_ceiling(request.size, most)
        return SearchResult(
            outcomes=outcomes,
            trial_ids=tuple(name for one in samples for name in one.trial_ids),
            traffic_s=traffic_ns / 1e9,
            took_s=sum(one.took_s or one.duration_s for one in samples),
            most_sent_frames_per_s=most,
            sent_share=share_sent(samples),
        )

    def publish(self, result: Result) -> None:
        super().publish(result)
        if self._cancelled is not None:
            raise self._cancelled

    def complete(self, result: Result) -> Result:
        """Also with the basis of its rates, its ports, and how near it is to the tester's own limits."""
        behind = [self._trials[name] for name in result.trials if name in self._trials]
        ways = self._offered.ways
        completed = add_near_limits(add_ports(add_basis(super().complete(result), ways), ways, behind))
        completed = add_unlearnt(add_share(completed, behind), behind, self._maker.port_names)
        completed = add_broadcasts(completed, behind)
        return drop_line_rate_shares(completed) if self._offered.link_is_nominal else completed

    def _publish_ceiling(self, size: Size, rate_frames_per_s: float) -> None:
        self._maker.log.bus.publish(
            CeilingFound(
                configuration=self._maker.log.turn.configuration,
                run=self._maker.log.turn.run,
                frame_bytes=mean_bytes(size),
                mix=None if isinstance(size, int) else size.name,
                ceiling_frames_per_s=rate_frames_per_s,
                calibrated=False,
                text=f"the tester fell short of its load twice at {words_of(size)}: the bound comes down to "
                f"{format_rate(rate_frames_per_s)}",
            )
        )


def shortfall_rate_frames_per_s(trial: Trial) -> float | None:
    """The rate sent per port, where it fell short of the load by more than the tester's pauses explain; else ``None``.

    A pause costs frames too (only a little is caught up), so a shortfall no greater than the pauses is a disturbance.
    """
    load = trial.request.load_frames_per_s
    unsent = next((finding for finding in trial.verdict.findings if finding.reason is Reason.UNSENT), None)
    if load is None or unsent is None or _has_loads(trial.request):
        return None  # where there are several loads the counts do not say which of them was too high
    reading = trial.reading
    paused_share = (reading.health.mean_total_gap_ns or 0) / reading.transmit_ns if reading.transmit_ns else 1.0
    if unsent.value - paused_share <= unsent.limit:
        return None
    counts = reading.counts
    return load * (counts.offered) / counts.intended


def _has_loads(request: TrialRequest) -> bool:
    """Whether a trial has several loads: phases, or those of single streams or ways."""
    return bool(request.phases or request.streams or request.ways)


OVERTIME: Final = 1.001
"""Frames that were offered for a longer part of the time asked for are counted over the time that it took."""
_PACE: Final = frozenset({Reason.DISTURBED, Reason.UNSENT})
"""The tester paused or fell short: what it sent counts at the rate at which it was sent."""
_LOSSES: Final = frozenset({Reason.RECEIVE_OVERRUN, Reason.TRANSMIT_REFUSED, Reason.HARDWARE, Reason.UNLEARNT})
"""Frames may be missing that the DUT did not lose: a trial without loss counts all the same."""


def sample_of(trial: Trial) -> Sample:
    """Returns a trial as a search sees it: what it may decide follows from its verdict.

    Where somebody else used the DUT's core the trial counts: it shows what the DUT passes under the conditions of the
    run. Any other finding leaves its load or its counts in doubt.
    """
    request, reading = trial.request, trial.reading
    found = set(trial.verdict.reasons) - {Reason.DUT_DISTURBED}
    health, transmit_ns = reading.health, max(1, reading.transmit_ns)
    overtime = max(1.0, trial.offering_ns / 1e9 / request.duration_s)
    overtime = overtime if overtime > OVERTIME else 1.0
    return Sample(
        load_frames_per_s=request.load_frames_per_s or 0.0,
        duration_s=request.duration_s * overtime,
        overtime=overtime,
        counts=reading.counts,
        may_pass=found <= _PACE | _LOSSES,
        may_fail=found <= _PACE,
        is_even=not found,
        held_up_share=min(1.0, (health.worst_total_gap_ns or health.held_up_ns) / transmit_ns),
        longest_pause_share=health.held_up_ns / transmit_ns,
        queued_s=queued_s(reading),
        core_shared=Reason.DUT_DISTURBED in trial.verdict.reasons,
        took_s=trial.took_s or request.duration_s + request.drain_s + 2 * request.settle_s,
        trial_ids=(trial.id,),
    )


def queued_s(reading: Reading) -> float | None:
    """Returns how much longer than they were sent the DUT needed for the frames that it took; None where that is
    unknown.

    Frames that come back from a growing queue do so longer than they were sent, and take longer and longer: their mean
    latency exceeds the least by half of that time. A pause of the DUT at the end delays the last frames, and one in the
    middle all that follow, so that the smaller of both times counts.
    """
    came = [stream for stream in reading.streams if stream.counts.received]
    timed = [(one.arrivals, one.latency) for one in came if one.arrivals is not None and one.latency is not None]
    if not timed or len(timed) < len(came):
        return None
    return max(
        0.0,
        *(
            min(
                arrivals.last_ns - reading.offering_ns - latency.minimum_ns,
                2.0 * (latency.mean_ns - latency.minimum_ns),
            )
            / 1e9
            for arrivals, latency in timed
        ),
    )
