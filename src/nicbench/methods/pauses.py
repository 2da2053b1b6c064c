"""Pause frames: whether the DUT obeys them, and what it does in a storm of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSizes, Size, mean_bytes
from nicbench.core.frozen import frozen
from nicbench.core.headers import MOST_QUANTA, PRIORITIES, PauseTrain, Pausing, pause_seconds
from nicbench.core.lists import without_none
from nicbench.core.pattern import Pattern
from nicbench.core.quantity import BitsPerSecond, FramesPerSecond, Repetitions
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Purpose, StreamReading, Trial, TrialRequest
from nicbench.core.units import l1_bits_per_s
from nicbench.methods._loads import BurstPauses, Duration
from nicbench.methods._results import RepeatedTrials, repeat_trial, result_at
from nicbench.methods.base import FRAME, Context, FrameMethod, Misfit, Objection, Values

# What tests of pause frames share: their options, the link's pause time, and what is read of both directions.


ABILITIES: Final = frozenset({Ability.FILE, Ability.ARRIVALS, Ability.STREAM_BURSTS})
LEAD_S: Final = 0.3
"""The time that the load is sent before the first pause frame."""
NANOSECONDS: Final = 1e9
_SENT, _HEARD, _ENDED = "pauses", "hears pause", "hears end"


class PauseOptions(Frozen):
    """Options of every test of pause frames."""

    frame_bytes: FrameSizes = (512,)
    """Frame sizes, and mixes by name."""
    priority: int | None = Field(default=3, ge=0, lt=PRIORITIES)
    """The priority that is paused by PFC frames; `null` pauses the whole link by PAUSE frames."""
    stream: str | None = None
    """The stream of the traffic that has this priority in the DUT, where there are several; the others must go on."""
    rate: Annotated[FramesPerSecond, Field(gt=0.0, le=1e9)] = 1000.0
    """Rate of the frames, of all streams together; times are known to the interval of frames."""
    link_rate: Annotated[BitsPerSecond, Field(ge=1e6, le=1e12)] | None = None
    """The rate of the link that is paused, by which its pause quanta last; without it that of the tester's port."""
    trial: BurstPauses = BurstPauses()
    """Pauses of a trial."""


@frozen
class Observed:
    """What a trial read: the streams that should be paused and those that should not, and the DUT's own pauses."""

    paused: tuple[StreamReading, ...]
    others: tuple[StreamReading, ...]
    pauses_sent: int
    pauses_unsent: int
    pauses_forwarded: int
    heard: StreamReading | None
    ended: StreamReading | None

    @property
    def silence_ns(self) -> tuple[int, int] | None:
        """The longest time in which no frame of the paused stream came, from its last frame to the next.

        Of several streams it is that of the densest: between frames of a rare one there is silence without a pause.
        """
        heard = [one for one in self.paused if one.arrivals is not None and one.arrivals.silence is not None]
        most = max((one.counts.intended for one in heard), default=0)
        silences = [one.arrivals.silence for one in heard if one.arrivals and one.counts.intended == most]
        longest = max((each for each in silences if each), key=lambda silence: silence.length_ns, default=None)
        return None if longest is None else (longest.from_ns, longest.to_ns)

    @property
    def lost(self) -> int:
        """Frames lost, of all streams."""
        return sum(one.counts.failed for one in (*self.paused, *self.others))

    @property
    def lost_of_paused(self) -> int:
        """Frames lost, of what should be paused."""
        return sum(one.counts.failed for one in self.paused)

    @property
    def unsent(self) -> int:
        """Frames, pause frames among them, that never left the tester: the trial says nothing."""
        return self.pauses_unsent + sum(one.counts.unsent for one in (*self.paused, *self.others))

    @property
    def pauses_heard(self) -> int:
        """Frames of the DUT that paused the sending port."""
        return 0 if self.heard is None else self.heard.counts.received


def observe(trial: Trial, stream: str | None) -> Observed:
    """Returns what the trial read; ``stream`` is the one that should be paused, None: all."""
    beside = {one.name.rpartition(": ")[2]: one for one in trial.reading.beside}
    own = [one for name, one in beside.items() if name.startswith(_SENT)]
    every = trial.reading.streams
    paused = tuple(one for one in every if stream is None or one.name.partition(" ")[2] == stream)
    return Observed(
        paused=paused,
        others=tuple(one for one in every if one not in paused),
        pauses_sent=sum(one.counts.sent for one in own),
        pauses_unsent=sum(one.counts.unsent for one in own),
        pauses_forwarded=sum(one.counts.received for one in own),
        heard=beside.get(_HEARD),
        ended=beside.get(_ENDED),
    )


def pause_time_s(context: Context, options: PauseOptions, size: Size, quanta: int = MOST_QUANTA) -> float:
    """Returns the time that a number of quanta pauses the link."""
    own = options.link_rate or l1_bits_per_s(context.line_rate_frames_per_s(size), mean_bytes(size))
    return pause_seconds(quanta, own)


def pause_request(size: Size, options: PauseOptions, duration_s: float, pausing: Pausing) -> TrialRequest:
    """Returns the request of a trial in which the load lasts for a time, with pause frames."""
    return TrialRequest(
        frame_bytes=mean_bytes(size),
        mix=None if isinstance(size, int) else size,
        load_frames_per_s=options.rate,
        duration_s=duration_s,
        drain_s=options.trial.drain,
        settle_s=options.trial.settle,
        purpose=Purpose.PAUSE,
        pausing=pausing,
    )


def interval_ns(options: PauseOptions, observed: Observed) -> float:
    """Returns the time between two frames of what should be paused."""
    share = max((one.counts.intended for one in observed.paused), default=0) or 1
    every = sum(one.counts.intended for one in (*observed.paused, *observed.others)) or 1
    return NANOSECONDS / (options.rate * share / every)


def unsent_words(seen: Iterable[Observed]) -> tuple[str, ...]:
    """Returns what the tester did not send, as a disturbance: such trials say nothing about the DUT."""
    unsent = sum(one.unsent for one in seen)
    return (f"{unsent} frames were not sent",) if unsent else ()


def judged(faults: Iterable[str], well: str, unsent: Sequence[str] = ()) -> Values:
    """Returns how the DUT handled it: the faults, or ``well``; a fault is not accepted.

    Where frames were ``unsent``, in words, the tester broke the trial: neither is known.
    """
    if unsent:
        return {"handling": f"not known: {', '.join(unsent)}", "accepted": None, "answer": None}
    said = ", ".join(faults)
    return {"handling": said or well, "accepted": "no" if said else "yes", "answer": said or None}


def one_way_objection(context: Any) -> Objection | None:
    """Returns why ports or pattern do not suit."""
    if context.pattern is Pattern.ONE_TO_ONE and context.ports == 2 and not context.bidirectional:
        return None
    return Objection(
        message="one port sends frames, and the other pause frames: it needs two ports and traffic one way",
        next_step="leave `pattern` and `bidirectional` out under `traffic`, and give lab and DUT 2 `ports`",
    )


def stream_misfits(options: PauseOptions, streams: Sequence[str]) -> Iterator[Misfit]:
    """Yields what is wrong with the option that names a stream."""
    if options.stream is not None and options.stream not in streams:
        known = ", ".join(streams)
        yield Misfit(
            message=f"the traffic has no stream {options.stream}",
            next_step=f"its streams are {known}" if known else "declare `streams` under `traffic`",
            option=("stream",),
        )


_TAIL_S = 0.3
_PAUSED = Column("paused_ns", "Paused for", form="milliseconds", is_main=True, better="lower")
_Quanta = Annotated[int, Field(ge=1, le=MOST_QUANTA)]


class PauseReaction(FrameMethod):
    """How long a pause frame stops the DUT."""

    kind = "pause-reaction"
    question = "Does {subject} obey pause frames, and for how long?"
    steps = """
    Reaction to pause frames (IEEE 802.3 annex 31B, IEEE 802.1Q clause 36): whether the DUT stops, and for how long.
    Steps, for each frame size and number of quanta: frames of the paused priority at a steady rate; the port that
    receives them sends one pause frame; several trials. The pause is the longest time in which no frame of the
    priority arrives. It must last as long as its quanta of 512 bit times, by more than `tolerance` neither less nor
    more. Frames of other priorities must not stop, no frame may be lost, and no pause frame may come through.
    Verified: every frame by its signature and its payload; pause frames of the DUT are counted by their bytes.
    """

    class Options(PauseOptions):
        """Options of the bench file."""

        quanta: tuple[_Quanta, ...] = Field(default=(MOST_QUANTA,), min_length=1)
        """Quanta of a pause frame, each number by itself: 512 bit times of the link each."""
        repetitions: Repetitions = 5
        """Trials for each number of quanta."""
        tolerance: Duration = 0.02
        """The time by which a pause may be longer or shorter than its quanta, in addition to the interval of frames."""

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

    async def results(self, context: Context) -> AsyncIterator[Result]:
        for size in context.sizes(self.options.frame_bytes):
            for quanta in self.options.quanta:
                result = await self._measure(context, size, quanta)
                yield result

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
        known = without_none(silences)
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
                FRAME,
                Column("paused", "Paused", form="text"),
                Column("quanta", "Quanta", form="whole"),
                Column("expected_ns", "Expected", form="milliseconds"),
                _PAUSED,
                _PAUSED.replace(head="Interval", aspect="interval", is_main=False),
                Column("stopped_within_ns", "Stopped within", form="milliseconds"),
                Column("obeyed", "Obeyed", form="text"),
                Column("others_silent_ns", "Others silent", form="milliseconds", is_optional=True),
                Column("lost_frames", "Lost", unit="frames", form="whole"),
                Column("pauses_of_dut", "Pauses of the DUT", unit="frames", form="whole"),
                Column("handling", "Handled", form="text"),
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


_OF_A_PAUSE: Final = 3.0
"""The number of pause frames that are sent in the time that one of them pauses."""
_DROPS, _FORWARDS, _NONE = "drops", "forwards", "none"
_DETECTED = Column("detected_ns", "Watchdog after", form="milliseconds", is_main=True, better="lower")
_RESTORED = Column("restored_ns", "Forwards again after", form="milliseconds", better="lower")


@frozen
class Storm:
    """What one trial saw; times in ns between which the true one lies, from the storm's begin and from its end."""

    action: str
    detected: tuple[float, float] | None
    restored: tuple[float, float] | None
    observed: Observed


class PauseStorm(FrameMethod):
    """The times of a watchdog."""

    kind = "pause-storm"
    question = "How does {subject} stand a storm of pause frames, and how soon does its watchdog act?"
    steps = """
    A storm of pause frames: how soon a watchdog acts, what it does, and how soon the DUT forwards again afterwards.
    Steps, for each frame size: frames of the paused priority at a steady rate; the port that receives them sends
    pause frames without end, each before the pause of the last is over; after `storm` it is silent; several trials.
    A watchdog that sends frames in spite of the pauses is seen by the first frame that comes during the storm. One
    that drops them is seen where the DUT, whose queue had paused the sending port, lets it go on during the storm;
    so the load must fill that queue earlier. The DUT has restored the class with the first frame after the storm.
    Frames are lost by the dropping alone. Verified: every frame by its signature and its payload; pause frames of
    the DUT are counted by their bytes.
    """

    class Options(PauseOptions):
        """Options of the bench file."""

        storm: Duration = 2.0
        """How long pause frames are sent: longer than the watchdog needs."""
        after: Duration = 2.0
        """How long frames are sent after that: longer than the DUT needs to forward again."""
        quanta: int = Field(default=MOST_QUANTA, ge=1, le=MOST_QUANTA)
        """Quanta of each pause frame. The last one pauses for that time after the storm: on a slow link give few."""
        repetitions: Repetitions = 5
        """Trials."""
        detects_within: Duration | None = None
        """The most time that the watchdog may need; the report names a longer one. Without it, any time will do."""
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

    async def measure_size(self, context: Context, size: Size) -> Result:
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
                FRAME,
                Column("paused", "Paused", form="text"),
                _DETECTED,
                _DETECTED.replace(head="Interval", aspect="interval", is_main=False),
                Column("action", "Action", form="text"),
                _RESTORED,
                _RESTORED.replace(head="Interval", aspect="interval"),
                Column("lost_frames", "Lost", unit="frames", form="whole"),
                Column("pauses_of_dut", "Pauses of the DUT", unit="frames", form="whole"),
                Column("repetitions", "Trials", form="whole"),
                Column("handling", "Handled", form="text"),
            ),
            sentences=(
                "acts upon a storm of pause frames after {detected_ns} ({action})",
                "forwards again {restored_ns} after a storm of pause frames",
            ),
            has_basis=False,
        )


def _mean(times: Sequence[tuple[float, float] | None], why_not: str) -> Bounded:
    """Returns the mean of what is known by its upper bounds; a reason where it is not known of every trial."""
    known = without_none(times)
    if len(known) < len(times) or not known:
        where = f", in {len(times) - len(known)} of {len(times)} trials" if known else ""
        return Bounded(value=None, n=len(times), reason_null=f"{why_not}{where}")
    return Bounded(
        value=statistics.fmean(upper for _, upper in known),
        lower=min(lower for lower, _ in known),
        upper=max(upper for _, upper in known),
        n=len(known),
    )
