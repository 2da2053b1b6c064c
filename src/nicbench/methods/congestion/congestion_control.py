"""Congestion control (RFC 2889 section 5.5): whether a congested port costs frames for another, and who is held back.

Steps, for each frame size: the first port sends half of its load to the third and half to the fourth, the second all of
its load to the fourth, which is sent one and a half times what a port carries. Frames lost on the way to the third, a
port that is free, are head-of-line blocking (RFC 8239 section 5 asks for the same). Without a lost frame on the way to
the fourth the senders were held back: back pressure. Verified: every frame by its signature and its payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSize, Size, size_parameters
from nicbench.core.pattern import WayLoad
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Purpose, Trial
from nicbench.methods._loads import LINE_RATE, FullRate, full_rate, full_rate_words
from nicbench.methods._results import Values, measure_sizes, result_at, verdict_of
from nicbench.methods._trial_times import RFC_2544_FRAME_BYTES, TrialTimes, missing_sizes
from nicbench.methods.base import Context, FrameMethod, Objection
from nicbench.methods.congestion._ways import ABILITIES, counts_to, mesh_objection, with_ways

PORTS = 4
_UNCONGESTED, _CONGESTED = 2, 3
_TESTERS_SHARE = 0.001
"""Of the frames: so many a tester may leave unsent in a valid trial (the threshold `unsent_share`)."""
_LOST = Column(
    value="uncongested_loss_percent", head="Lost to the free port", unit="%", form="of_frames", is_main=True,
    better="lower",
)  # fmt: skip
_CONGESTED_LOST = Column(value="congested_loss_percent", head="Lost to the congested port", unit="%", form="of_frames")


class CongestionControl(FrameMethod):
    """What a congested port costs another one."""

    kind: ClassVar[str] = "congestion-control"
    chooses_ways: ClassVar[bool] = True
    question: ClassVar[str] = "Does a congested port of {subject} cost frames for another port?"

    class Options(Frozen):
        """Options of the bench file."""

        frame_bytes: tuple[FrameSize, ...] = Field(default=RFC_2544_FRAME_BYTES, min_length=1)
        """Frame sizes, and mixes by name."""
        rate: FullRate = LINE_RATE
        """What each of the two sending ports sends: what a port of the DUT carries."""
        trial: TrialTimes = TrialTimes()
        """Times of a trial."""

    options: Options

    def abilities(self) -> frozenset[Ability]:
        return ABILITIES

    def estimate_s(self) -> float:
        return self.options.trial.estimate_s(self.points())

    def deviations(self) -> tuple[str, ...]:
        rate = self.options.rate
        other = f"ports send {full_rate_words(rate)}, RFC 2889 section 5.5 takes the line rate"
        said = () if rate == LINE_RATE else (other,)
        return (*self.options.trial.deviations(), *missing_sizes(self.options.frame_bytes), *said)

    def objection(self, context: Any) -> Objection | None:
        return mesh_objection(context, PORTS)

    async def run(self, context: Context) -> tuple[Result, ...]:
        return await measure_sizes(context, self.options.frame_bytes, self._measure_size)

    async def _measure_size(self, context: Context, size: Size) -> Result:
        full = await full_rate(context, size, self.options.rate)
        if not full.carries(100.0):
            return self._without_figure(size, full.why_not_more)
        load = full.rate_frames_per_s
        request = self.options.trial.request(size, load, Purpose.LOSS)
        ways = (
            WayLoad(transmit=0, receive=_UNCONGESTED, load_frames_per_s=load / 2.0),
            WayLoad(transmit=0, receive=_CONGESTED, load_frames_per_s=load / 2.0),
            WayLoad(transmit=1, receive=_CONGESTED, load_frames_per_s=load),
        )
        trial, disturbed = await context.measure(size_parameters(size), with_ways(request, ways))
        if is_uncongested(trial):
            why = "the port that was to be congested forwarded one and a half times `rate`: give a higher one"
            return self._without_figure(size, why, (trial.id,))
        return result_at(
            self,
            size,
            values_of(trial),
            verdict_of(trial, disturbed),
            trials=(trial.id,),
            disturbances=[finding.text for finding in trial.verdict.findings] if disturbed else [],
            scope="at each receiving port",
        )

    def _without_figure(self, size: Size, why: str, trials: Sequence[str] = ()) -> Result:
        values: Values = {_LOST.value: Bounded(value=None, reason_null=why), "why": why}
        return result_at(self, size, values, ResultVerdict.INCOMPLETE, trials=trials, disturbances=(why,))

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Congestion control",
            caption=(
                "RFC 2889 section 5.5: of four ports the first sends to the third and the fourth, the second to the "
                "fourth alone, which is offered one and a half times a sender's load. Frames lost to the third port, "
                "which is free, are head-of-line blocking."
            ),
            columns=(
                Column(value="size", head="Frame", unit="bytes", form="text"),
                Column(value="load_frames_per_s", head="Load of a sender"),
                _LOST,
                Column(value="uncongested_rate_frames_per_s", head="Forwarded to the free port"),
                _CONGESTED_LOST,
                Column(value="congested_rate_frames_per_s", head="Forwarded to the congested port"),
                Column(value="head_of_line_blocking", head="Head-of-line blocking", form="text"),
                Column(value="back_pressure", head="Back pressure", form="text"),
            ),
            sentences=(
                "loses {uncongested_loss_percent} of the frames to a port that is free when another is congested",
            ),
            notes=(("why", "Limit"),),
            has_basis=False,
        )


def is_uncongested(trial: Trial) -> bool:
    """Returns whether every frame to the port that was to be congested was sent and arrived.

    The few frames that a tester may fall short by without being held back are no back pressure.
    """
    counts = counts_to(trial, _CONGESTED)
    held_back = counts.unsent_backpressure or counts.unsent_tester > _TESTERS_SHARE * counts.intended
    return not counts.failed and not held_back


def values_of(trial: Trial) -> Values:
    """Returns what came of both ports, and what follows of it.

    Frames that a sender was held back from sending are not lost: they are how back pressure shows.
    """
    free, congested = counts_to(trial, _UNCONGESTED), counts_to(trial, _CONGESTED)
    seconds = trial.reading.offering_ns / 1e9
    return {
        "load_frames_per_s": trial.request.sent_frames_per_s,
        _LOST.value: _loss_percent(free),
        _CONGESTED_LOST.value: _loss_percent(congested),
        "uncongested_lost_frames": _lost(free),
        "congested_lost_frames": _lost(congested),
        "held_back_frames": free.unsent + congested.unsent,
        "uncongested_rate_frames_per_s": free.received / seconds,
        "congested_rate_frames_per_s": congested.received / seconds,
        "head_of_line_blocking": "yes" if _lost(free) else "no",
        "back_pressure": "no" if _lost(congested) else "yes",
    }


def _lost(counts: Counts) -> int:
    return counts.failed - counts.unsent_backpressure


def _loss_percent(counts: Counts) -> float:
    return 100.0 * _lost(counts) / counts.sent if counts.sent else 0.0
