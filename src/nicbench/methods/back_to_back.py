"""Back-to-back frames (RFC 2544 section 26.4 as updated by RFC 9004): the longest burst of which nothing is lost.

Steps, for each frame size: bursts of frames in the closest spacing, each after a pause in which the DUT's buffers
empty; a binary search for the longest that comes back whole; the search repeated, each time from the beginning; the
average is the back-to-back value. From it and the throughput follow how long the DUT's buffer lasts and how many frames
it holds (RFC 9004 section 6.4). A trial of throughput fills the buffer as well: what that adds to the rate, the buffer
over the trial's duration, is taken off. Verified: every frame by its signature; what a lossless port refused of a burst
counts as lost.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import MAXIMUM, MINIMUM, FrameSizes, Size, size_parameters
from nicbench.core.frame_size import words_of as words_of_size
from nicbench.core.quantity import LossVerification
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict, number_of
from nicbench.core.table import Column, ImportTable, Plot, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Purpose, Trial
from nicbench.core.units import count_of, format_rate
from nicbench.methods._imports import BACK_TO_BACK_IMPORTS
from nicbench.methods._loads import (
    HIGHEST,
    LINE_RATE,
    NDR,
    RFC_2544_FRAME_BYTES,
    BurstPauses,
    Duration,
    FullLoad,
    FullRate,
    TrialTimes,
    earlier_rate,
    earlier_value,
    explain_other_rate,
    full_rate,
    full_rate_words,
    missing_sizes,
)
from nicbench.methods._results import bounded_unless, result_at, without_tester
from nicbench.methods.base import FRAME, Context, FrameMethod, Values

REPETITIONS = 50
LONGEST_BURST_S = 2.0
# For an estimate before the rate is known: 64-byte frames at 100 Gb/s.
_VALUE = Column(
    "back_to_back_frames", "Back-to-back value", unit="frames", form="trimmed", is_main=True, better="higher"
)
_FASTEST_FRAMES_PER_S = 148_809_524.0
_MOST_RESTARTS = 3  # of searches, as bursts came at a lower rate than they were to


class BackToBack(FrameMethod):
    """The longest burst of each frame size that the DUT forwards without loss."""

    kind = "back-to-back"
    question = "How long a burst of frames does {subject} forward without losing one, by frame size?"

    class Options(Frozen):
        """Options of the bench file. ``at`` names the throughput test, ``of`` which of its rates is the throughput.

        ``rate`` is the spacing of a burst's frames, ``longest_burst`` the duration of the longest one, ``step_frames``
        the resolution of a search. A burst of which frames were lost is sent up to ``loss_verification`` times more,
        and counts as lost if none of them came back whole (ETSI GS NFV-TST 009 clause 12.3).
        """

        at: str
        """The name of an earlier throughput test."""
        of: str = NDR
        """Which of its rates is the throughput."""
        frame_bytes: FrameSizes = RFC_2544_FRAME_BYTES
        """Frame sizes, measured by the earlier test."""
        rate: FullRate = LINE_RATE
        """The spacing of a burst's frames: that of the line rate, of `highest`, or of a frame rate of each port, `800
        kpps`.
        """
        repetitions: int = Field(default=REPETITIONS, ge=1, le=10_000)
        """Searches, each from the beginning. Their average is the value."""
        longest_burst: Duration = LONGEST_BURST_S
        """Duration of the longest burst that is tried."""
        step_frames: int = Field(default=1, ge=1, le=10**9)
        """Resolution of a search, in frames."""
        loss_verification: LossVerification = 0
        """The repetitions of a burst with loss before it counts as lost (ETSI GS NFV-TST 009)."""
        trial: BurstPauses = BurstPauses()
        """Pauses of a burst."""

    options: Options

    def needs(self) -> str | None:
        return self.options.at

    def abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.BURSTS, Ability.FRAME_COUNT})

    def estimate_s(self) -> float:
        options = self.options
        fastest = options.rate if isinstance(options.rate, float) else _FASTEST_FRAMES_PER_S
        halvings = math.ceil(math.log2(max(2.0, options.longest_burst * fastest / options.step_frames)))
        pauses = TrialTimes(drain=options.trial.drain, settle=options.trial.settle, duration=0.001)
        # The bursts of a search are at most twice the longest: each is about half of the one before it.
        each = pauses.estimate_s(1 + halvings) + 2.0 * options.longest_burst
        return self.points() * options.repetitions * each

    def deviations(self) -> tuple[str, ...]:
        options = self.options
        said = (
            (
                options.repetitions < REPETITIONS,
                f"{options.repetitions} repetitions, RFC 2544 section 26.4 asks for {REPETITIONS}",
            ),
            (
                options.longest_burst < LONGEST_BURST_S,
                f"bursts of at most {options.longest_burst:g} s, RFC 2544 section 26.4 asks for trials of 2 s at least",
            ),
            (
                options.trial.drain < BurstPauses().drain,
                f"{options.trial.drain:g} s after a burst, RFC 9004 section 6.2 asks for 2 s",
            ),
            (
                options.longest_burst > max(LONGEST_BURST_S, options.trial.drain),
                (
                    f"{options.trial.drain:g} s after bursts of up to {options.longest_burst:g} s, RFC 9004 section "
                    "6.2 asks for longer after bursts of more than 2 s"
                ),
            ),
            (
                options.trial.settle < BurstPauses().settle,
                f"settle time {options.trial.settle:g} s, RFC 2544 section 23 asks for 5 s",
            ),
            (
                options.rate != LINE_RATE,
                (
                    f"frames of a burst come at {full_rate_words(options.rate)}, RFC 2544 section 26.4 asks for the "
                    "line rate"
                ),
            ),
            (
                any(isinstance(size, str) and size not in (MINIMUM, MAXIMUM) for size in options.frame_bytes),
                "bursts of mixed sizes, which RFC 9004 section 3 rules out",
            ),
        )
        return (
            *(text for falls_short, text in said if falls_short),
            *explain_other_rate(options.of, "RFC 9004 section 5"),
            *missing_sizes(options.frame_bytes),
        )

    async def measure_size(self, context: Context, size: Size) -> Result:
        full = await full_rate(context, size, self.options.rate)
        if not full.carries(100.0):
            full = await full_rate(context, size, HIGHEST)
        throughput = earlier_rate(context, self.options.at, self.options.of, size)
        if full.is_sent_nothing:
            return without_tester(self, size, full, _VALUE.value)
        bursts = _Bursts(full, full.load_frames_per_s(100.0))
        if throughput.value is not None and throughput.value >= bursts.load_frames_per_s:
            return self._result(size, bursts, throughput, [])
        passed_for_s = earlier_value(context, self.options.at, f"{self.options.of.lower()}_passed_for_s", size)
        bursts.throughput_passed_for_s = number_of(passed_for_s)
        found, restarts = list[tuple[int, int | None]](), 0
        while len(found) < self.options.repetitions:
            parameters = {**size_parameters(size), "repetition": len(found) + 1}
            load = bursts.load_frames_per_s
            longest = max(1, math.floor(self.options.longest_burst * load))

            async def whole(frames: int, parameters: dict[str, Any] = parameters) -> bool:
                return await self._comes_back_whole(context, size, bursts, frames, parameters)

            found.append(await longest_burst(whole, longest, self.options.step_frames))
            if throughput.value is not None and throughput.value >= bursts.load_frames_per_s:
                return self._result(size, bursts, throughput, [])
            if bursts.load_frames_per_s < load and (restarts := restarts + 1) <= _MOST_RESTARTS:
                found.clear()  # bursts at different rates have no mean
        return self._result(size, bursts, throughput, found)

    async def _comes_back_whole(
        self, context: Context, size: Size, bursts: _Bursts, frames: int, parameters: dict[str, Any]
    ) -> bool:
        """Returns whether a burst of ``frames`` frames of each port loses nothing, in one of the allowed attempts."""
        for _ in range(1 + self.options.loss_verification):
            load = bursts.load_frames_per_s
            times = TrialTimes(duration=max(0.001, frames / load), **self.options.trial.model_dump())
            request = times.request(size, load, Purpose.BURST)
            trial, disturbed = await context.measure(parameters, request.replace(frames=frames))
            bursts.add(trial, disturbed)
            if trial.reading.counts.failed == 0:
                return True
        return False

    def _result(self, size: Size, bursts: _Bursts, throughput: Bounded, found: list[tuple[int, int | None]]) -> Result:
        full, load = bursts.full, bursts.load_frames_per_s
        not_measured = Bounded(value=None, reason_null=_explain_not_measured(full, throughput, load))
        all_found = _average(found) if found else not_measured
        value = bounded_unless(bursts.disturbances, all_found)
        is_slower = load < full.line_rate_frames_per_s
        short = f"at {words_of_size(size)} {_explain_slower(full, load)}" if is_slower else None
        if bursts.disturbances:
            verdict = ResultVerdict.DISTURBED
        elif not found and is_slower:
            # The DUT forwards all that could be sent, and that is less than it may get.
            verdict = ResultVerdict.INCOMPLETE
        else:
            verdict = ResultVerdict.VALID
        return result_at(
            self,
            size,
            {
                "back_to_back_frames": value,
                **_spread_values([passed for passed, _ in found]),
                "repetitions": len(found),
                "step_frames": self.options.step_frames,
                "longest_burst_frames": max(1, math.floor(self.options.longest_burst * load)),
                "burst_frames_per_s": load,
                "sent_frames_per_s": bursts.sent_frames_per_s,
                "line_rate_frames_per_s": full.line_rate_frames_per_s,
                "percent_of_line_rate": 100.0 * load / full.line_rate_frames_per_s,
                "throughput_frames_per_s": throughput.value,
                **buffer_values(value.value, throughput.value, load, bursts.throughput_passed_for_s),
                "spacing": short,
                "search": self._search_words(size, bursts) if found else None,
                "limit": _limit_words(all_found, throughput),
            },
            verdict,
            trials=bursts.trial_ids,
            disturbances=bursts.disturbances or _incomplete_reasons(verdict, value),
            parameters={"throughput_of": self.options.of},
        )

    def _search_words(self, size: Size, bursts: _Bursts) -> str:
        """Describes search, step, longest burst (RFC 9004 sections 6.2 and 7) and whether the tester kept up."""
        longest = max(1, math.floor(self.options.longest_burst * bursts.load_frames_per_s))
        step = self.options.step_frames
        sent = bursts.sent_frames_per_s
        kept_up = "" if sent is None else f"; the longest that was sent came at {format_rate(sent)}"
        again = self.options.loss_verification
        verified = f" with loss verification, up to {again} times" if again else ""
        return (
            f"at {words_of_size(size)} binary{verified}, in steps of {count_of(step, 'frame')}, "
            f"with bursts of up to {longest} frames{kept_up}"
        )

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Back-to-back frames",
            caption=(
                "RFC 2544 section 26.4, updated by RFC 9004: the longest burst of which nothing was lost, the average "
                "of independent binary searches. The buffer time implied by it is the burst's own; corrected, without "
                "the frames that the DUT forwarded meanwhile at its throughput (RFC 9004 section 6.4), of which the "
                "share of the buffer in the throughput's own trials was taken off."
            ),
            columns=(
                FRAME,
                _VALUE,
                Column("minimum_frames", "Minimum", unit="frames", form="whole"),
                Column("maximum_frames", "Maximum", unit="frames", form="whole"),
                Column("standard_deviation_frames", "Std. deviation", unit="frames", form="number"),
                Column("repetitions", "N", form="whole"),
                Column("burst_frames_per_s", "Rate in a burst"),
                Column("percent_of_line_rate", "% of line rate", form="trimmed"),
                Column("throughput_frames_per_s", "Throughput"),
                Column("implied_buffer_time_us", "Implied buffer time", unit="µs", form="number"),
                Column("corrected_buffer_time_us", "Corrected buffer time", unit="µs", form="number"),
                Column("corrected_buffer_frames", "Corrected buffer", unit="frames", form="trimmed"),
            ),
            sentences=(
                "takes bursts of up to {back_to_back_frames} without loss ({size} frames at {burst_frames_per_s})",
            ),
            plots=(
                Plot(
                    x=FRAME,
                    y=(_VALUE,),
                    lower="minimum_frames",
                    upper="maximum_frames",
                    caption="The back-to-back value; the bar behind it reaches from the shortest to the longest found.",
                ),
            ),
            notes=(("spacing", "Spacing of frames"), ("search", "Search"), ("limit", "Limit")),
        )

    @classmethod
    def imports(cls) -> ImportTable:
        return BACK_TO_BACK_IMPORTS


@dataclass
class _Bursts:
    """The outcome of the bursts of one frame size; the load is lowered where the tester could not send it."""

    full: FullLoad
    load_frames_per_s: float
    trial_ids: list[str] = field(default_factory=list)
    disturbances: list[str] = field(default_factory=list)
    sent_frames_per_s: float | None = None
    """The rate of one port over the longest burst that was sent."""
    throughput_passed_for_s: float | None = None
    """How long a trial at the throughput lasted; None where that is not known."""
    _longest_frames: int = 0

    def add(self, trial: Trial, disturbed: bool) -> None:
        """Takes a trial into account."""
        self.full = self.full.lower_to_sent(self.load_frames_per_s, trial)
        self.load_frames_per_s = trial.request.load_frames_per_s or self.load_frames_per_s
        self.trial_ids.append(trial.id)
        if disturbed:
            self.disturbances += trial.verdict.texts
        reading, frames = trial.reading, trial.request.frames or 0
        if frames > self._longest_frames and reading.offering_ns:
            self._longest_frames = frames
            ports = max(1, round(reading.counts.intended / frames))
            # Between the first frame and the last there is one gap less than there are frames.
            gaps = reading.counts.sent / ports - 1
            self.sent_frames_per_s = 1e9 * gaps / reading.offering_ns if gaps > 0 else None


async def longest_burst(whole: Callable[[int], Awaitable[bool]], longest: int, step: int) -> tuple[int, int | None]:
    """Finds the longest burst that came back whole (0: none), and the shortest that did not (None: none).

    A binary search; the two are at most ``step`` frames apart, where there are two.
    """
    if await whole(longest):
        return longest, None
    passed, failed = 0, longest
    while failed - passed > step:
        middle = (passed + failed) // 2
        if await whole(middle):
            passed = middle
        else:
            failed = middle
    return passed, failed


def buffer_values(
    back_to_back_frames: float | None,
    throughput_frames_per_s: float | None,
    burst_frames_per_s: float,
    throughput_passed_for_s: float | None = None,
) -> Values:
    """Returns the values of RFC 9004 section 6.4, with the bursts' actual frame rate in place of the line rate.

    A trial of a known duration passes at the DUT's own rate and a buffer more: ``buffer / throughput_passed_for_s`` of
    the throughput is the buffer's.
    """
    if back_to_back_frames is None:
        return {}
    implied_s = back_to_back_frames / burst_frames_per_s
    if throughput_frames_per_s is None:
        return {"implied_buffer_time_us": 1e6 * implied_s}
    corrected_s = implied_s - implied_s * throughput_frames_per_s / burst_frames_per_s
    if throughput_passed_for_s is not None and throughput_passed_for_s > implied_s:
        corrected_s /= 1.0 - implied_s / throughput_passed_for_s
    return {
        "implied_buffer_time_us": 1e6 * implied_s,
        "corrected_buffer_time_us": 1e6 * corrected_s,
        "corrected_buffer_frames": corrected_s * burst_frames_per_s,
    }


def _average(found: list[tuple[int, int | None]]) -> Bounded:
    """Returns the average over the repetitions, as a lower bound where one of them passed the longest burst."""
    passed = [float(longest) for longest, _ in found]
    failed = [shortest for _, shortest in found if shortest is not None]
    average = statistics.fmean(passed)
    if average == 0.0:
        reason = f"not even a burst of {count_of(min(failed), 'frame')} came back whole"
        return Bounded(value=None, upper=float(min(failed)), limited_by=LimitedBy.DUT, n=len(found), reason_null=reason)
    upper = statistics.fmean(failed) if len(failed) == len(found) else None
    return Bounded(
        value=average, lower=average, upper=upper, limited_by=None if upper is None else LimitedBy.DUT, n=len(found)
    )


def _spread_values(passed: list[int]) -> Values:
    """Returns the spread over the repetitions (RFC 9004 section 7), with the standard deviation of a sample."""
    if not passed:
        return {}
    return {
        "minimum_frames": min(passed),
        "maximum_frames": max(passed),
        "standard_deviation_frames": statistics.stdev(passed) if len(passed) > 1 else None,
    }


def _explain_not_measured(full: FullLoad, throughput: Bounded, load_frames_per_s: float) -> str:
    if load_frames_per_s >= full.line_rate_frames_per_s:
        return "the throughput is the line rate: no burst fills a buffer (RFC 9004 section 6.1)"
    return "the throughput is not below the rate of the bursts: none of them would fill a buffer"


def _explain_slower(full: FullLoad, load_frames_per_s: float) -> str:
    """Explains why the frames of a burst are further apart than the line allows."""
    ceiling = full.ceiling_frames_per_s
    if ceiling is not None and load_frames_per_s >= 0.97 * ceiling:
        return f"{full.why_not_more}; the bursts come at {format_rate(load_frames_per_s)}"
    return f"the bursts come at {format_rate(load_frames_per_s)}, as asked for"


def _limit_words(value: Bounded, throughput: Bounded) -> str | None:
    """Describes what restricts a figure; see RFC 9004 section 6.2 on values near the longest burst."""
    if value.at_least:
        return "a search passed the longest burst: the buffer is larger than reported; raise `longest_burst`"
    return value.reason_null or throughput.reason_null


def _incomplete_reasons(verdict: ResultVerdict, value: Bounded) -> tuple[str, ...]:
    return (value.reason_null,) if verdict is ResultVerdict.INCOMPLETE and value.reason_null else ()
