"""Reaction to pause frames (IEEE 802.3 annex 31B, IEEE 802.1Q clause 36): whether the DUT stops, and for how long.

Steps, for each frame size and number of quanta: frames of the paused priority at a steady rate; the port that receives
them sends one pause frame; several trials. The pause is the longest time in which no frame of the priority arrives. It
must last as long as its quanta of 512 bit times, by more than `tolerance` neither less nor more. Frames of other
priorities must not stop, no frame may be lost, and no pause frame may come through. Verified: every frame by its
signature and its payload; pause frames of the DUT are counted by their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from nicbench.core.frame_size import Size
from nicbench.core.headers.pause import MOST_QUANTA, PauseTrain, Pausing
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.methods._results import RepeatedTrials, Values, repeat_trial, result_at
from nicbench.methods._trial_times import Duration
from nicbench.methods.base import Context, FrameMethod, Misfit, Objection
from nicbench.methods.lossless._pauses import (
    ABILITIES,
    LEAD_S,
    NANOSECONDS,
    Observed,
    PauseOptions,
    interval_ns,
    judged,
    observe,
    one_way_objection,
    pause_request,
    pause_time_s,
    stream_misfits,
    unsent_words,
)

_TAIL_S = 0.3
_PAUSED = Column(value="paused_ns", head="Paused for", form="milliseconds", is_main=True, better="lower")
_Quanta = Annotated[int, Field(ge=1, le=MOST_QUANTA)]


class PauseReaction(FrameMethod):
    """How long a pause frame stops the DUT."""

    kind: ClassVar[str] = "pause-reaction"
    question: ClassVar[str] = "Does {subject} obey pause frames, and for how long?"

    class Options(PauseOptions):
        """Options of the bench file."""

        quanta: tuple[_Quanta, ...] = Field(default=(MOST_QUANTA,), min_length=1)
        """Quanta of a pause frame, each number by itself: 512 bit times of the link each."""
        repetitions: int = Field(default=5, ge=1, le=1000)
        """Trials for each number of quanta."""
        tolerance: Duration = 0.02
        """By how much a pause may be longer or shorter than its quanta, beside the interval of frames."""

    options: Options

    def points(self) -> int:
        return len(self.options.frame_bytes) * len(self.options.quanta)

    def abilities(self) -> frozenset[Ability]:
        return ABILITIES

    def estimate_s(self) -> float:
        own = self.options
        longest = LEAD_S + _TAIL_S + 1.0 + own.trial.drain + 2 * own.trial.settle
        return self.points() * own.repetitions * longest

    def objection(self, context: Any) -> Objection | None:
        return one_way_objection(context)

    def find_stream_misfits(self, streams: Sequence[str]) -> Iterator[Misfit]:
        return stream_misfits(self.options, streams)

    async def run(self, context: Context) -> tuple[Result, ...]:
        results = []
        for size in context.sizes(self.options.frame_bytes):
            for quanta in self.options.quanta:
                result = await self._measure(context, size, quanta)
                context.publish(result)
                results.append(result)
        return tuple(results)

    async def _measure(self, context: Context, size: Size, quanta: int) -> Result:
        own, lasting_s = self.options, pause_time_s(context, self.options, size, quanta)
        train = PauseTrain(priority=own.priority, quanta=quanta, frames=1, frames_per_s=1000.0, begins_s=LEAD_S)
        request = pause_request(
            size, own, LEAD_S + lasting_s + _TAIL_S, Pausing(trains=(train,), priority=own.priority)
        )
        made = await repeat_trial(context, size, request, own.repetitions)
        unsent = unsent_words(observe(trial, own.stream) for trial in made.trials)
        return result_at(
            self,
            size,
            {"expected_ns": NANOSECONDS * lasting_s, **self._values(made, lasting_s)},
            ResultVerdict.DISTURBED if unsent else made.verdict,
            trials=made.trial_ids,
            disturbances=(*made.disturbances(None), *unsent),
            parameters={"quanta": quanta, "paused": "link" if own.priority is None else f"priority {own.priority}"},
            point=str(quanta),
            scope="at the receiving port",
        )

    def _values(self, made: RepeatedTrials, lasting_s: float) -> Values:
        seen = [observe(trial, self.options.stream) for trial in made.trials]
        silences = [one.silence_ns for one in seen]
        known = [silence for silence in silences if silence is not None]
        if len(known) < len(silences) or not known:
            paused = Bounded(value=None, n=len(seen), reason_null="fewer than two frames of the paused priority came")
            return {_PAUSED.value: paused, "handling": "not known", "why": paused.reason_null}
        # The DUT stopped at some time after the last frame, and would have sent the next an interval later.
        shorter = [interval_ns(self.options, one) for one in seen]
        held = [_held_ns(begin, end) for begin, end in known]
        lower = min(max(0.0, end - begin - by) for (begin, end), by in zip(known, shorter, strict=True))
        allowed = [NANOSECONDS * self.options.tolerance + by for by in shorter]
        obeyed = [
            abs(time - NANOSECONDS * lasting_s) <= by for time, by in zip(held, allowed, strict=True)
        ]  # fmt: skip
        stopped = [max(0.0, begin - NANOSECONDS * LEAD_S) for begin, _ in known]
        return {
            _PAUSED.value: Bounded(value=sum(held) / len(held), lower=lower, upper=max(held), n=len(held)),
            "stopped_within_ns": max(stopped),
            "obeyed": f"{sum(obeyed)} of {len(obeyed)}",
            "others_silent_ns": _longest_of_others(seen),
            "lost_frames": sum(one.lost for one in seen),
            "pauses_of_dut": sum(one.pauses_heard for one in seen),
            **judged(_faults(seen, obeyed), "obeys", unsent_words(seen)),
        }

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Reaction to pause frames",
            caption=(
                "One pause frame in each trial. Paused for: the longest time without a frame of what was paused, the "
                "mean of all trials, and between the least that it can have been and the most."
            ),
            columns=(
                Column(value="size", head="Frame", unit="bytes", form="text"),
                Column(value="paused", head="Paused", form="text"),
                Column(value="quanta", head="Quanta", form="whole"),
                Column(value="expected_ns", head="Expected", form="milliseconds"),
                _PAUSED,
                _PAUSED.replace(head="Interval", aspect="interval", is_main=False),
                Column(value="stopped_within_ns", head="Stopped within", form="milliseconds"),
                Column(value="obeyed", head="Obeyed", form="text"),
                Column(value="others_silent_ns", head="Others silent", form="milliseconds", is_optional=True),
                Column(value="lost_frames", head="Lost", unit="frames", form="whole"),
                Column(value="pauses_of_dut", head="Pauses of the DUT", unit="frames", form="whole"),
                Column(value="handling", head="Handled", form="text"),
            ),
            sentences=("holds frames back for {paused_ns} upon a pause frame of {quanta} quanta ({handling})",),
            notes=(("why", "Limit"),),
            has_basis=False,
        )


def _held_ns(begin_ns: int, end_ns: int) -> float:
    """Returns for how long frames were held back at most: not before the pause frame was due, where they came later."""
    due_ns = NANOSECONDS * LEAD_S
    return end_ns - max(begin_ns, due_ns) if end_ns > due_ns else float(end_ns - begin_ns)


def _longest_of_others(seen: Sequence[Observed]) -> float | None:
    """Returns the longest time in which no frame of a stream came that was not to be paused."""
    arrivals = (stream.arrivals for one in seen for stream in one.others)
    silences = [one.silence.length_ns for one in arrivals if one is not None and one.silence is not None]
    return float(max(silences)) if silences else None


def _faults(seen: Sequence[Observed], obeyed: Sequence[bool]) -> Iterator[str]:
    if not all(obeyed):
        yield f"does not obey {len(obeyed) - sum(obeyed)} of {len(obeyed)} pauses"
    if lost := sum(one.lost for one in seen):
        yield f"loses {lost} frames"
    if forwarded := sum(one.pauses_forwarded for one in seen):
        yield f"forwards {forwarded} pause frames"
