"""Transmissions of an open traffic generator: what clients had sent by “nicbench serve”, and what became of it.

A transmission begins when a client starts the first flow, and ends when all flows have stopped and a drain has passed.
Frames with room for it bear a signature: each of them is checked for loss, duplication, order and corruption, and
timed. The frames of other flows are counted by their headers.
"""

from __future__ import annotations

from typing import ClassVar

from nicbench.core.base import Frozen
from nicbench.core.result import Result
from nicbench.core.table import Column, ResultTable
from nicbench.methods.base import Context, FrameMethod


class Transmission(FrameMethod):
    """What became of the frames that clients of `nicbench serve` had sent, by transmission and flow."""

    gives_points = False
    kind: ClassVar[str] = "transmission"
    question: ClassVar[str] = "What becomes of the frames that clients send through {subject}?"
    of_sessions = True
    times_one_way = True

    class Options(Frozen):
        """None: clients say what is sent."""

    options: Options

    def points(self) -> int:
        return 0

    def frame_sizes(self) -> tuple[int | str, ...]:
        return ()

    def estimate_s(self) -> float:
        return 0.0

    async def run(self, context: Context) -> tuple[Result, ...]:
        """Measures nothing: the results of a session are published as its transmissions end."""
        return ()

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Transmissions",
            caption=(
                "What clients had sent, and what came back by the end of the drain. Of a flow that nobody receives "
                "nothing is known but what was sent; latency is known of frames with a signature."
            ),
            columns=(
                Column(value="transmission", head="Transmission", form="whole"),
                Column(value="flow", head="Flow", form="text"),
                Column(value="sent_frames", head="Sent", form="whole"),
                Column(value="received_frames", head="Received", form="whole"),
                Column(value="lost_frames", head="Lost", form="whole"),
                Column(value="loss_percent", head="Loss", unit="%", form="of_frames", is_main=True, better="lower"),
                Column(value="duplicated_frames", head="Duplicated", form="whole"),
                Column(value="reordered_frames", head="Reordered", form="whole"),
                Column(value="corrupted_frames", head="Corrupted", form="whole"),
                Column(value="sent_frames_per_s", head="Rate sent"),
                Column(value="latency_minimum_ns", head="Minimum", group="Latency"),
                Column(value="latency_mean_ns", head="Mean", group="Latency"),
                Column(value="latency_p99_ns", head="99 %", group="Latency"),
                Column(value="latency_maximum_ns", head="Maximum", group="Latency"),
            ),
            row_name="transmission {transmission}",
        )
