"""Frames that others composed: captures that are replayed, and transmissions of clients of “nicbench serve”."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.quantity import Seconds
from nicbench.core.reading import Times, sum_of_known
from nicbench.core.result import Bounded, Result
from nicbench.core.table import Column, ResultTable
from nicbench.core.traffic import Ability, Replay, ReplayedCapture
from nicbench.core.trial import Latency, Purpose, Reading, StreamReading, TrialRequest
from nicbench.methods._results import verdict_of
from nicbench.methods.base import Context, FrameMethod, Values
from nicbench.stats.latency import percentiles_ns

_FRAME_BYTES: Final = 512  # of the frames that prove before the trial that the way passes frames
_PERCENTILES: Final = ("50", "99")
_MOST_CAPTURES: Final = 16


class CaptureOptions(Frozen):
    """A capture, and the numbers of the ports that send it and receive it."""

    file: str = Field(min_length=1)
    """The capture (pcap or pcapng, Ethernet, with time stamps) on the tester's host."""
    from_port: int = Field(default=0, ge=0, le=63)
    """The number of the port that sends it."""
    to_port: int = Field(default=1, ge=0, le=63)
    """The number of the port that receives it."""


def _count(value: str, head: str, *, better: bool = True) -> Column:
    if not better:
        return Column(value, head, unit="frames", form="whole")
    return Column(value, head, unit="frames", form="whole", is_main=True, better="lower")


class CaptureReplay(FrameMethod):
    """Captures with their own timing, in step, and what of them came back."""

    gives_points = False
    kind = "replay"
    question = "What becomes of recorded frames that {subject} is sent with their own timing?"
    steps = """
    Replay of captures: frames that were recorded are sent with their own timing, and what comes back is compared.
    Steps: every capture is read before the trial. All begin at one moment, and each frame is sent when it was
    recorded, counted from the first frame of all captures (or of its own), divided by the speed; none is given up,
    however late it is. Of each frame is kept how late the port had taken it, and by how much the time since the
    frame before it differs from what was recorded: that is the uncertainty of the timing. Frames are sent as they
    were recorded, but for the MAC addresses of the link; what comes back is recognised by all its bytes but those
    that a router changes (MAC addresses, hop limit, checksum of IPv4), or, where that is asked for, by a signature
    in place of the last bytes of the payload. Missing frames did not come; changed ones came between addresses and
    ports of the capture with other bytes; extra ones came twice, or are not in the capture; reordered ones came
    after a later one of the file (RFC 4737).
    """
    times_one_way = True

    class Options(Frozen):
        """Options of the bench file."""

        captures: tuple[CaptureOptions, ...] = Field(min_length=1, max_length=_MOST_CAPTURES)
        """The captures, which begin at one moment."""
        speed: float = Field(default=1.0, ge=1e-3, le=1e3)
        """1 is the timing that was recorded, 2 twice as fast, 0.5 half as fast."""
        together: bool = True
        """Times count from the first frame of all captures, by their time stamps. `false`: each begins with its first
        frame at once.
        """
        signed: bool = False
        """The last 16 bytes of each payload become a signature: frames are then recognised in every order and however
        they were rewritten, and timed from their sending. A frame with less payload is refused.
        """
        keep_macs: bool = False
        """Frames keep the MAC addresses that were recorded; without it they get those of the link."""
        longest: Annotated[Seconds, Field(gt=0.0, le=86_400.0)] = 60.0
        """The most that the transmission may take; frames that are due later are not sent."""
        drain: Annotated[Seconds, Field(ge=0.0, le=3600.0)] = 2.0
        """How long frames may arrive after the last was sent."""
        settle: Annotated[Seconds, Field(ge=0.0, le=3600.0)] = 1.0
        """Pause before and after the transmission."""

    options: Options

    def points(self) -> int:
        return 1

    def frame_sizes(self) -> tuple[int | str, ...]:
        return ()  # those of the captures

    def estimate_s(self) -> float:
        return self.options.longest + self.options.drain + 2 * self.options.settle

    def abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.FILE})

    async def results(self, context: Context) -> AsyncIterator[Result]:
        options = self.options
        captures = tuple(ReplayedCapture(**one.model_dump()) for one in options.captures)
        replay = Replay(
            captures=captures,
            speed=options.speed,
            together=options.together,
            signed=options.signed,
            keeps_macs=options.keep_macs,
        )
        request = TrialRequest(
            frame_bytes=_FRAME_BYTES,
            load_frames_per_s=None,
            duration_s=options.longest,
            drain_s=options.drain,
            settle_s=options.settle,
            purpose=Purpose.BURST,
            bidirectional=context.bidirectional,
            replay=replay,
        )
        trial, disturbed = await context.measure({"speed": options.speed}, request)
        for number, (capture, stream) in enumerate(zip(captures, trial.reading.streams, strict=True), start=1):
            result = Result(
                id=f"{self.name}/{number}",
                method=self.kind,
                scope=f"the capture sent at port {capture.from_port}, received at port {capture.to_port}",
                parameters={"capture": number, "file": capture.file, "speed": options.speed},
                values=values_of(stream, trial.reading, capture.to_port),
                verdict=verdict_of(trial, disturbed),
                disturbances=trial.verdict.texts if disturbed else (),
                trials=(trial.id,),
            )
            yield result

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Replay",
            caption=(
                "Recorded frames sent with their own timing. Late: from when a frame was due until the port had taken "
                "it. Gap error: the time since the frame before it against the time recorded. Extra frames came twice, "
                "or are none of the captures at that port."
            ),
            columns=(
                Column("capture", "Capture", form="whole"),
                Column("file", "File", form="text"),
                Column("recorded_frames", "Recorded", form="whole"),
                Column("sent_frames", "Sent", form="whole"),
                Column("returned_frames", "As recorded", form="whole"),
                _count("missing_frames", "Missing"),
                _count("changed_frames", "Changed"),
                _count("extra_frames", "Extra"),
                _count("reordered_frames", "Reordered"),
                Column("late_p50_ns", "Late, median"),
                Column("late_p99_ns", "Late, p99"),
                Column("late_maximum_ns", "Late, most"),
                Column("gap_error_p50_ns", "Gap error, median"),
                Column("gap_error_p99_ns", "Gap error, p99"),
                Column("latency_p50_ns", "Median delay"),
                Column("latency_p99_ns", "Delay, p99"),
            ),
            sentences=(
                (
                    "gives back {returned_frames} of {sent_frames} recorded frames as they were: {missing_frames} are "
                    "missing, {changed_frames} changed, {reordered_frames} reordered"
                ),
                "gives back {returned_frames} of {sent_frames} recorded frames",
            ),
            has_basis=False,
        )


def values_of(stream: StreamReading, reading: Reading, to_port: int) -> Values:
    """Returns what became of the frames of one capture, and how well their timing was kept."""
    counts = stream.counts
    gaps, port = stream.transmit_gaps, reading.ports[to_port]
    misdirected = () if port.misdirected is None else (port.misdirected,)  # else they are among the foreign ones
    return {
        "recorded_frames": counts.intended,
        "sent_frames": counts.sent,
        "returned_frames": counts.received,
        "missing_frames": counts.lost,  # those that came back changed are not among them
        "changed_frames": sum_of_known((counts.corrupted, counts.unattributed)),
        "extra_frames": sum_of_known((counts.duplicated, port.foreign, *misdirected)),
        "duplicated_frames": counts.duplicated,
        "foreign_frames": port.foreign,
        "reordered_frames": counts.reordered,
        **_times("late", gaps.lateness if gaps else None),
        **_times("gap_error", gaps.errors if gaps else None),
        **_delays(stream.latency),
    }


def _times(name: str, times: Times | None) -> Values:
    if times is None:
        return {f"{name}_p50_ns": Bounded(value=None, reason_null="no frame was sent with a time of its own")}
    found = percentiles_ns(times.histogram, maximum_ns=times.maximum_ns)
    return {
        **{f"{name}_p{percent}_ns": found.get(percent) for percent in _PERCENTILES},
        f"{name}_mean_ns": times.mean_ns,
        f"{name}_maximum_ns": times.maximum_ns,
    }


def _delays(latency: Latency | None) -> Values:
    if latency is None:
        return {"latency_p50_ns": Bounded(value=None, reason_null="no frame came back")}
    return {
        **{f"latency_p{percent}_ns": latency.percentiles_ns.get(percent) for percent in _PERCENTILES},
        "latency_source": latency.source,
    }


class Transmission(FrameMethod):
    """What became of the frames that clients of `nicbench serve` had sent, by transmission and flow."""

    gives_points = False
    kind = "transmission"
    question = "What becomes of the frames that clients send through {subject}?"
    steps = """
    Transmissions of an open traffic generator: what clients had sent by “nicbench serve”, and what became of it.
    A transmission begins when a client starts the first flow, and ends when all flows have stopped and a drain has
    passed. Frames with room for it bear a signature: each of them is checked for loss, duplication, order and
    corruption, and timed. The frames of other flows are counted by their headers.
    """
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
                Column("transmission", "Transmission", form="whole"),
                Column("flow", "Flow", form="text"),
                Column("sent_frames", "Sent", form="whole"),
                Column("received_frames", "Received", form="whole"),
                Column("lost_frames", "Lost", form="whole"),
                Column("loss_percent", "Loss", unit="%", form="of_frames", is_main=True, better="lower"),
                Column("duplicated_frames", "Duplicated", form="whole"),
                Column("reordered_frames", "Reordered", form="whole"),
                Column("corrupted_frames", "Corrupted", form="whole"),
                Column("sent_frames_per_s", "Rate sent"),
                Column("latency_minimum_ns", "Minimum", group="Latency"),
                Column("latency_mean_ns", "Mean", group="Latency"),
                Column("latency_p99_ns", "99 %", group="Latency"),
                Column("latency_maximum_ns", "Maximum", group="Latency"),
            ),
            row_name="transmission {transmission}",
        )
