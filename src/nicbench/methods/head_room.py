"""Head room (IEEE 802.1Q annex N): how much a lossless queue takes after it has paused its neighbour, without loss.

Steps, for each frame size: the port that receives pauses the DUT, so that nothing leaves it; an exact number of frames
of the priority is sent, whatever the DUT says; then the pause is ended, and every frame that was kept comes out. A
binary search for the most frames of which none is lost, and one for the fewest after which the DUT sends a pause frame.
What lies between is the head room, known to the size of a frame. A frame's bytes are counted with FCS; a DUT that keeps
frames in cells takes more. The pause must be shorter than its watchdog's time. Verified: every frame by its signature
and its payload; pause frames of the DUT are counted by their bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import Field

from nicbench.core.frame_size import Size, mean_bytes, size_parameters
from nicbench.core.headers import MOST_QUANTA, PauseTrain, Pausing
from nicbench.core.quantity import Bytes, LossVerification
from nicbench.core.result import Bounded, LimitedBy, Result
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import TrialRequest
from nicbench.methods._results import SeveralTrials, bounded_unless, bounds_between, result_at
from nicbench.methods.base import FRAME, TRIALS, Context, FrameMethod, Misfit, Objection, Values
from nicbench.methods.connection_capacity import Fill, most_held
from nicbench.methods.pauses import (
    ABILITIES,
    Observed,
    PauseOptions,
    judged,
    observe,
    one_way_objection,
    pause_request,
    pause_time_s,
    stream_misfits,
    unsent_words,
)

_OF_A_PAUSE: Final = 3.0
_LEAD_S: Final = 0.05
_TAIL_S: Final = 0.1
_ROOM: Final = 1.25
_ROOM_S: Final = 0.02
_HEAD_ROOM = Column("head_room_bytes", unit="bytes", head="Head room", form="whole", is_main=True, better="higher")
_XOFF = Column("pauses_from_bytes", unit="bytes", head="Pauses from", form="whole")
_TAKES = Column("taken_bytes", unit="bytes", head="Takes without loss", form="whole")


class HeadRoom(FrameMethod):
    """What is taken after a pause."""

    kind = "head-room"
    question = "How much does {subject} take without loss after it has paused its neighbour?"

    class Options(PauseOptions):
        """Options of the bench file."""

        most: int = Field(default=1024, ge=2, le=10_000_000)
        """The most frames that are tried."""
        loss_verification: LossVerification = 1
        """The repetitions of a burst with loss before it counts."""
        needs: Bytes | None = None
        """The least head room; the report says where the DUT has less. It is what the link's delay and the neighbour's
        largest frame take.
        """

    options: Options

    def abilities(self) -> frozenset[Ability]:
        return ABILITIES | {Ability.FRAME_COUNT}

    def estimate_s(self) -> float:
        own = self.options
        each = _LEAD_S + own.most / own.rate + _TAIL_S + own.trial.drain + 2 * own.trial.settle
        return self.points() * (2 + own.loss_verification) * own.most.bit_length() * each

    def objection(self, context: Any) -> Objection | None:
        return one_way_objection(context)

    def find_stream_misfits(self, streams: Sequence[str]) -> Iterator[Misfit]:
        return stream_misfits(self.options, streams)

    async def measure_size(self, context: Context, size: Size) -> Result:
        own = self.options
        seen: dict[int, Observed] = {}
        sound: set[int] = set()  # where an undisturbed trial lost frames
        trials = SeveralTrials(context)

        async def send(frames: int, attempt: int = 1) -> Observed:
            point = {**size_parameters(size), "frames": frames, "attempt": attempt}
            request = self._request(size, frames, pause_time_s(context, own, size))
            trial, disturbed = await trials.measure(point, request)
            seen[frames] = observe(trial, own.stream)
            if not disturbed and seen[frames].lost_of_paused and not seen[frames].unsent:
                sound.add(frames)
            return seen[frames]

        async def is_kept(frames: int) -> Fill:
            for attempt in range(1, 2 + own.loss_verification):
                observed = await send(frames, attempt)
                if not observed.lost_of_paused and not observed.unsent:
                    return Fill(frames, True)
            return Fill(frames, False)

        async def is_unpaused(frames: int) -> Fill:
            observed = seen[frames] if frames in seen else await send(frames)
            return Fill(frames, not observed.pauses_heard)

        # Frames of other streams pass by.
        ends = await most_held(is_kept, own.most, 0.0)
        is_doubtful = ends[1] is not None and ends[1] not in sound
        kept, lost = _of_stream(ends, seen)
        unpaused, paused = _of_stream(await most_held(is_unpaused, own.most, 0.0), seen)
        frame_bytes = mean_bytes(size)
        values: Values = {
            _HEAD_ROOM.value: bounded_unless(is_doubtful, _head_room(kept, lost, paused, frame_bytes)),
            _TAKES.value: bounded_unless(
                is_doubtful,
                bounds_between(kept * frame_bytes, None if lost is None else lost * frame_bytes, "every frame is lost"),
            ),
            _XOFF.value: _pauses_from(unpaused, paused, frame_bytes),
            "kept_frames": kept,
            "paused_by_frames": paused,
            "trials": len(trials.ids),
        }
        unsent = unsent_words(seen.values())
        trials.disturbances.extend(unsent)
        drops_early = paused is not None and kept < paused and not is_doubtful
        faults = list(self._faults(values, paused, list(seen.values()), drops_early=drops_early))
        doubts = unsent or (("every trial that lost frames was disturbed",) if is_doubtful and not faults else ())
        return result_at(
            self,
            size,
            {**values, **judged(faults, "pauses before it drops", doubts)},
            trials.verdict,
            trials=trials.ids,
            disturbances=trials.disturbances,
            parameters={"paused": "link" if own.priority is None else f"priority {own.priority}"},
            scope="at the receiving port",
        )

    def _request(self, size: Size, frames: int, pause_s: float) -> TrialRequest:
        """Returns the request for a number of frames while the DUT may send none of them."""
        own = self.options
        rate = _OF_A_PAUSE / pause_s
        lasting_s = _LEAD_S + frames / own.rate + _TAIL_S
        pauses = max(1, math.ceil(lasting_s * rate))
        holds = PauseTrain(priority=own.priority, quanta=MOST_QUANTA, frames=pauses, frames_per_s=rate, begins_s=0.0)
        ends_s = holds.ends_s + 1.0 / rate
        ends = PauseTrain(priority=own.priority, quanta=0, frames=1, frames_per_s=1000.0, begins_s=ends_s)
        pausing = Pausing(trains=(holds, ends), load_begins_s=_LEAD_S, priority=own.priority)
        request = pause_request(size, own, _ROOM * frames / own.rate + _ROOM_S, pausing)
        return request.replace(frames=frames)

    def _faults(
        self, values: Values, paused: int | None, seen: Sequence[Observed], *, drops_early: bool
    ) -> Iterator[str]:
        room = values[_HEAD_ROOM.value]
        if paused is None:
            yield "never pauses its neighbour"
        elif drops_early:
            yield "drops before it pauses"
        needs = self.options.needs
        if needs is not None and isinstance(room, Bounded) and room.upper is not None and room.upper < needs:
            yield f"has less head room than {needs} bytes"
        if forwarded := sum(one.pauses_forwarded for one in seen):
            yield f"forwards {forwarded} pause frames"

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Head room",
            caption=(
                "While the DUT's output was paused: the bytes in its queue from which it paused the sending port, the "
                "most that it took without loss, and what lies between. Each is known to a frame."
            ),
            columns=(
                FRAME,
                Column("paused", "Paused", form="text"),
                _HEAD_ROOM,
                _HEAD_ROOM.replace(head="Interval", aspect="interval", is_main=False),
                _XOFF,
                _XOFF.replace(head="Interval", aspect="interval"),
                _TAKES,
                _TAKES.replace(head="Interval", aspect="interval"),
                Column("paused_by_frames", "Pauses with", unit="frames", form="whole"),
                Column("kept_frames", "Keeps", unit="frames", form="whole"),
                TRIALS,
                Column("handling", "Handled", form="text"),
            ),
            sentences=("takes {head_room_bytes} bytes without loss after it has paused its neighbour",),
            has_basis=False,
        )


def _of_stream(found: tuple[int, int | None], seen: Mapping[int, Observed]) -> tuple[int, int | None]:
    """Returns how many frames of the paused stream were among those of a trial, of both ends of a search."""

    def own(frames: int) -> int:
        return sum(stream.counts.intended for stream in seen[frames].paused) if frames in seen else frames

    passed, failed = found
    return own(passed), None if failed is None else own(failed)


def _pauses_from(unpaused: int, paused: int | None, frame_bytes: float) -> Bounded:
    if paused is None:
        return Bounded(value=None, lower=unpaused * frame_bytes, reason_null="it sent no pause frame")
    return Bounded(value=paused * frame_bytes, lower=unpaused * frame_bytes, upper=paused * frame_bytes)


def _head_room(kept: int, lost: int | None, paused: int | None, frame_bytes: float) -> Bounded:
    """Returns the bytes between the threshold, which the frame `paused` passed, and the end of the queue."""
    if paused is None:
        return Bounded(value=None, reason_null="it sent no pause frame")
    if kept < paused:
        return Bounded(value=None, upper=frame_bytes, reason_null="frames were lost before it sent a pause frame")
    lower = (kept - paused) * frame_bytes
    if lost is None:
        return Bounded(value=lower, lower=lower, limited_by=LimitedBy.MAXIMUM_LOAD)
    upper = (lost - paused + 1) * frame_bytes
    return Bounded(value=lower, lower=lower, upper=upper, limited_by=LimitedBy.DUT)
