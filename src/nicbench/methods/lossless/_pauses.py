"""What tests of pause frames share: their options, the link's pause time, and what is read of both directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSize, Size, mean_bytes
from nicbench.core.headers import MOST_QUANTA, PRIORITIES, Pausing, pause_seconds
from nicbench.core.pattern import Pattern
from nicbench.core.quantity import BitsPerSecond, FramesPerSecond
from nicbench.core.traffic import Ability
from nicbench.core.trial import Purpose, StreamReading, Trial, TrialRequest
from nicbench.core.units import l1_bits_per_s
from nicbench.methods._results import Values
from nicbench.methods._trial_times import BurstPauses
from nicbench.methods.base import Context, Misfit, Objection

ABILITIES: Final = frozenset({Ability.FILE, Ability.ARRIVALS, Ability.STREAM_BURSTS})
LEAD_S: Final = 0.3
"""So long the load is sent before the first pause frame."""
NANOSECONDS: Final = 1e9
_SENT, _HEARD, _ENDED = "pauses", "hears pause", "hears end"


class PauseOptions(Frozen):
    """Options of every test of pause frames."""

    frame_bytes: tuple[FrameSize, ...] = Field(default=(512,), min_length=1)
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


@dataclass(frozen=True, slots=True)
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
        """Frames, pause frames among them, that never left the tester: the trial is no statement."""
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
    """Returns how long so many quanta pause the link."""
    own = options.link_rate or l1_bits_per_s(context.line_rate_frames_per_s(size), mean_bytes(size))
    return pause_seconds(quanta, own)


def pause_request(size: Size, options: PauseOptions, duration_s: float, pausing: Pausing) -> TrialRequest:
    """Returns the request of a trial in which the load lasts so long, beside pause frames."""
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
    """Returns what the tester did not send, as a disturbance: of such trials nothing is said of the DUT."""
    unsent = sum(one.unsent for one in seen)
    return (f"{unsent} frames were not sent",) if unsent else ()


def judged(faults: Iterable[str], well: str, unsent: Sequence[str] = ()) -> Values:
    """Returns what is said of the DUT's handling: the faults, or ``well``; a fault is not accepted.

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
