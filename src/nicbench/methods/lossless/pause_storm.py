"""A storm of pause frames: how soon a watchdog acts, what it does, and how soon the DUT forwards again afterwards.

Steps, for each frame size: frames of the paused priority at a steady rate; the port that receives them sends pause
frames without end, each before the pause of the last is over; after `storm` it is silent; several trials. A watchdog
that sends frames in spite of the pauses is seen by the first frame that comes during the storm. One that drops them is
seen where the DUT, whose queue had paused the sending port, lets it go on during the storm; so the load must fill that
queue earlier. The DUT has restored the class with the first frame after the storm. Frames are lost by the dropping
alone. Verified: every frame by its signature and its payload; pause frames of the DUT are counted by their bytes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from pydantic import Field

from nicbench.core.frame_size import Size
from nicbench.core.headers.pause import MOST_QUANTA, PauseTrain, Pausing
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Trial
from nicbench.methods._results import RepeatedTrials, Values, measure_sizes, repeat_trial, result_at
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

_OF_A_PAUSE: Final = 3.0
"""So many pause frames are sent in the time that one of them pauses."""
_DROPS, _FORWARDS, _NONE = "drops", "forwards", "none"
_DETECTED = Column(value="detected_ns", head="Watchdog after", form="milliseconds", is_main=True, better="lower")
_RESTORED = Column(value="restored_ns", head="Forwards again after", form="milliseconds", better="lower")


@dataclass(frozen=True, slots=True)
class Storm:
    """What one trial saw; times in ns between which the true one lies, from the storm's begin and from its end."""

    action: str
    detected: tuple[float, float] | None
    restored: tuple[float, float] | None
    observed: Observed


class PauseStorm(FrameMethod):
    """The times of a watchdog."""

    kind: ClassVar[str] = "pause-storm"
    question: ClassVar[str] = "How does {subject} stand a storm of pause frames, and how soon does its watchdog act?"

    class Options(PauseOptions):
        """Options of the bench file."""

        storm: Duration = 2.0
        """How long pause frames are sent: longer than the watchdog needs."""
        after: Duration = 2.0
        """How long frames are sent after that: longer than the DUT needs to forward again."""
        quanta: int = Field(default=MOST_QUANTA, ge=1, le=MOST_QUANTA)
        """Quanta of each pause frame. The last one pauses for so long after the storm: on a slow link give few."""
        repetitions: int = Field(default=5, ge=1, le=1000)
        """Trials."""
        detects_within: Duration | None = None
        """The most that the watchdog may need; a longer time is told. Without it, none is asked for."""
        restores_within: Duration | None = None
        """The most that may pass from the last pause frame until the DUT forwards again."""

    options: Options

    def abilities(self) -> frozenset[Ability]:
        return ABILITIES

    def estimate_s(self) -> float:
        own = self.options
        each = LEAD_S + own.storm + own.after + own.trial.drain + 2 * own.trial.settle
        return self.points() * own.repetitions * each

    def objection(self, context: Any) -> Objection | None:
        return one_way_objection(context)

    def find_stream_misfits(self, streams: Sequence[str]) -> Iterator[Misfit]:
        return stream_misfits(self.options, streams)

    async def run(self, context: Context) -> tuple[Result, ...]:
        return await measure_sizes(context, self.options.frame_bytes, self._measure_size)

    async def _measure_size(self, context: Context, size: Size) -> Result:
        own = self.options
        rate = _OF_A_PAUSE / pause_time_s(context, own, size, own.quanta)
        frames = max(1, math.ceil(own.storm * rate))
        train = PauseTrain(priority=own.priority, quanta=own.quanta, frames=frames, frames_per_s=rate, begins_s=LEAD_S)
        duration_s = train.ends_s + own.after
        request = pause_request(size, own, duration_s, Pausing(trains=(train,), priority=own.priority))
        made = await repeat_trial(context, size, request, own.repetitions)
        unsent = unsent_words(observe(trial, own.stream) for trial in made.trials)
        return result_at(
            self,
            size,
            {"storm_frames": frames, "repetitions": len(made.trials), **self._values(made, train)},
            ResultVerdict.DISTURBED if unsent else made.verdict,
            trials=made.trial_ids,
            disturbances=(*made.disturbances(None), *unsent),
            parameters={"paused": "link" if own.priority is None else f"priority {own.priority}"},
            scope="at the receiving port",
        )

    def _values(self, made: RepeatedTrials, train: PauseTrain) -> Values:
        seen = [self._storm(trial, train) for trial in made.trials]
        own, actions = self.options, sorted({one.action for one in seen})
        lost = [one.observed.lost for one in seen]
        values: Values = {
            _DETECTED.value: _mean([one.detected for one in seen], f"no watchdog acted within {own.storm:g} s"),
            _RESTORED.value: _mean([one.restored for one in seen], "it never stopped, or for good"),
            "action": " or ".join(actions),
            "lost_frames": sum(lost),
            "pauses_of_dut": sum(one.observed.pauses_heard for one in seen),
        }
        unsent = unsent_words(one.observed for one in seen)
        return {**values, **judged(self._faults(seen, values), "as asked", unsent)}

    def _storm(self, trial: Trial, train: PauseTrain) -> Storm:
        observed, begins_ns, ends_ns = observe(trial, self.options.stream), *(
            NANOSECONDS * when for when in (train.begins_s, train.ends_s)
        )  # fmt: skip
        silence, by = observed.silence_ns, interval_ns(self.options, observed) + trial.reading.health.held_up_ns
        if silence is None:
            return Storm(_NONE, None, None, observed)
        _, until_ns = silence
        if until_ns < ends_ns:
            detected = (max(0.0, until_ns - begins_ns - by), max(0.0, until_ns - begins_ns))
            return Storm(_FORWARDS, detected, None, observed)
        restored = (max(0.0, until_ns - ends_ns - by), until_ns - ends_ns)
        ended = observed.ended.arrivals if observed.ended is not None else None
        if ended is None or not begins_ns < ended.first_ns < ends_ns:
            return Storm(_NONE, None, restored, observed)
        held_up = trial.reading.health.held_up_ns
        return Storm(
            _DROPS, (max(0.0, ended.first_ns - begins_ns - held_up), ended.first_ns - begins_ns), restored, observed
        )

    def _faults(self, seen: Sequence[Storm], values: Values) -> Iterator[str]:
        own = self.options
        for name, limit, words in (
            (_DETECTED.value, own.detects_within, "its watchdog needs more than"),
            (_RESTORED.value, own.restores_within, "it needs to forward again more than"),
        ):
            time = values[name]
            if limit is None or not isinstance(time, Bounded):
                continue
            if time.value is None:
                yield f"{time.reason_null}" if name == _DETECTED.value else "it does not stop, or not forward again"
            elif (time.lower if time.lower is not None else time.value) > NANOSECONDS * limit:
                yield f"{words} {1e3 * limit:g} ms"
        if any(one.action != _DROPS and one.observed.lost for one in seen):
            yield f"loses {sum(one.observed.lost for one in seen)} frames although nothing is seen to drop them"
        if forwarded := sum(one.observed.pauses_forwarded for one in seen):
            yield f"forwards {forwarded} pause frames"

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="A storm of pause frames",
            caption=(
                "From the first pause frame until the watchdog acted, and from the last until frames came again: means "
                "over the trials, between the least and the most of any trial."
            ),
            columns=(
                Column(value="size", head="Frame", unit="bytes", form="text"),
                Column(value="paused", head="Paused", form="text"),
                _DETECTED,
                _DETECTED.replace(head="Interval", aspect="interval", is_main=False),
                Column(value="action", head="Action", form="text"),
                _RESTORED,
                _RESTORED.replace(head="Interval", aspect="interval"),
                Column(value="lost_frames", head="Lost", unit="frames", form="whole"),
                Column(value="pauses_of_dut", head="Pauses of the DUT", unit="frames", form="whole"),
                Column(value="repetitions", head="Trials", form="whole"),
                Column(value="handling", head="Handled", form="text"),
            ),
            sentences=(
                "acts upon a storm of pause frames after {detected_ns} ({action})",
                "forwards again {restored_ns} after a storm of pause frames",
            ),
            has_basis=False,
        )


def _mean(times: Sequence[tuple[float, float] | None], why_not: str) -> Bounded:
    """Returns the mean of what is known by its upper bounds; a reason where it is not known of every trial."""
    known = [time for time in times if time is not None]
    if len(known) < len(times) or not known:
        where = f", in {len(times) - len(known)} of {len(times)} trials" if known else ""
        return Bounded(value=None, n=len(times), reason_null=f"{why_not}{where}")
    return Bounded(
        value=statistics.fmean(upper for _, upper in known),
        lower=min(lower for lower, _ in known),
        upper=max(upper for _, upper in known),
        n=len(known),
    )
