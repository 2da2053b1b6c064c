"""Receive spread: what each receive queue and each core gets of a mix of flows, and whether chance explains it.

Steps, for each frame size: one trial at the load, with the counters of every receive queue (``ethtool -S``, or the
DUT's own count) and core (``/proc/net/softnet_stat``, ``/proc/softirqs``) read before and after. The spread is Jain's
index (DEC-TR-301) and the most loaded queue by the mean of all. Both are held against 20,000 random assignments of the
very same flows to as many queues, as an ideal hash makes them: few flows, or a flow with much of the load (an
elephant), spread unevenly by chance alone. Where the adapter shows its indirection table, and adapter or kernel its
key, the queue of each flow is computed as well (Toeplitz hash). Flows that lost frames are counted by stream, so that
it is seen whom an overloaded queue costs frames. Verified: every frame by its signature; the counters of queues against
the frames sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSize, Size, size_parameters
from nicbench.core.quantity import Ratio
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.table import Bars, Column, ResultTable
from nicbench.core.trial import Purpose, Trial
from nicbench.methods._loads import LINE_RATE, FullRate, full_rate
from nicbench.methods._results import Values, result_at, verdict_of
from nicbench.methods._trial_times import TrialTimes
from nicbench.methods.base import Context, FrameMethod
from nicbench.methods.queues._spread import PortSpread, spread_values, spreads_of, stream_values

SPREAD, QUEUES, CORES, STREAMS = "spread", "queues", "cores", "streams"
_SIZE = Column(value="size", head="Frame", unit="bytes", form="text")
_PORT = Column(value="port", head="Port", form="text")
_INDEX = Column(
    value="jain_index", head="Jain's index", name="fairness of its queues (Jain)", is_main=True, better="higher"
)
_SHARE = Column(value="share_percent", head="Share", unit="%", form="trimmed")
_QUEUE = Column(value="queue", head="Queue", form="text")


class ReceiveSpread(FrameMethod):
    """What queues and cores get of the flows."""

    gives_points = False
    kind: ClassVar[str] = "receive-spread"
    question: ClassVar[str] = "How evenly does {subject} spread flows over its receive queues?"

    class Options(Frozen):
        """Options of the bench file. The flows are those of `traffic`."""

        frame_bytes: tuple[FrameSize, ...] = Field(default=(64,), min_length=1)
        """Frame sizes, and mixes by name."""
        rate: FullRate = LINE_RATE
        """The load: the line rate, `highest`, or a frame rate of each port."""
        at: Literal["dut", "tester"] = "dut"
        """Whose receive queues are read."""
        unlikely: Annotated[Ratio, Field(gt=0.0, lt=0.5)] = 0.001
        """A spread that chance makes more seldom than this is called worse than chance."""
        trial: TrialTimes = TrialTimes()
        """Times of a trial."""

    options: Options

    def estimate_s(self) -> float:
        return self.options.trial.estimate_s(self.points())

    def deviations(self) -> tuple[str, ...]:
        return self.options.trial.deviations()

    async def run(self, context: Context) -> tuple[Result, ...]:
        results: list[Result] = []
        for size in context.sizes(self.options.frame_bytes):
            for result in await self._measure_size(context, size):
                context.publish(result)
                results.append(result)
        return tuple(results)

    async def _measure_size(self, context: Context, size: Size) -> tuple[Result, ...]:
        full = await full_rate(context, size, self.options.rate)
        if full.is_sent_nothing or not full.carries(100.0):
            return (self._without_figure(size, full.why_not_more),)
        request = self.options.trial.request(size, full.rate_frames_per_s, Purpose.SPREAD)
        trial, disturbed = await context.measure(size_parameters(size), request)
        spreads = spreads_of(trial.reading, self.options.at)
        if not spreads:
            return (self._without_figure(size, self._why_unread(trial), trial.id),)
        made = _Rows(self, size, trial, disturbed)
        return (
            *(
                made.row(SPREAD, spread_values(each, context.seed, self.options.unlikely), port=each.queues.device)
                for each in spreads
            ),
            *(row for each in spreads for row in _queue_rows(made, each)),
            *_core_rows(made, self.options.at),
            *(row for each in spreads for row in _stream_rows(made, each)),
        )

    def _why_unread(self, trial: Trial) -> str:
        queues = trial.reading.queues
        why = queues.unread if queues is not None else ()
        return "; ".join(why) or "no receive queue can be read: name the machine of these ports under `hosts`"

    def _without_figure(self, size: Size, why: str, *trials: str) -> Result:
        values: Values = {_INDEX.value: Bounded(value=None, reason_null=why), "why": why}
        parameters = {"part": SPREAD, "port": "all"}
        verdict = ResultVerdict.INCOMPLETE
        return result_at(
            self, size, values, verdict, trials=trials, disturbances=(why,), parameters=parameters, point=SPREAD
        )

    @classmethod
    def tables(cls) -> tuple[ResultTable, ...]:
        return (_spread_table(), _queue_table(), _core_table(), _stream_table())

    @classmethod
    def main_values(cls, result: Result) -> tuple[str, ...]:
        """Returns the fairness of the queues; the other rows are its parts."""
        return (_INDEX.value,) if result.parameters.get("part") == SPREAD else ()


class _Rows:
    """Makes the results of one trial."""

    def __init__(self, method: ReceiveSpread, size: Size, trial: Trial, disturbed: bool) -> None:
        self._method, self._size = method, size
        self.trial = trial
        self._verdict = verdict_of(trial, disturbed)
        self._disturbances = [finding.text for finding in trial.verdict.findings] if disturbed else []

    def row(self, part: str, values: Values, **parameters: Any) -> Result:
        return result_at(
            self._method,
            self._size,
            values,
            self._verdict,
            trials=(self.trial.id,),
            disturbances=self._disturbances,
            parameters={"part": part, **parameters},
            point="/".join((part, *map(str, parameters.values()))),
            scope="at each port",
        )


def _queue_rows(made: _Rows, spread: PortSpread) -> Iterator[Result]:
    frames, expected = spread.queues.frames, spread.queues.expected
    total = sum(frames)
    for queue, count in enumerate(frames):
        values: Values = {
            "frames": count,
            "share_percent": 100.0 * count / total if total else None,
            "to_mean": count * len(frames) / total if total else None,
            "expected_frames": None if expected is None else expected[queue],
        }
        source = f"{spread.queues.device}: {spread.queues.source}"
        yield made.row(QUEUES, {**values, "source": source}, port=spread.queues.device, queue=str(queue))


def _core_rows(made: _Rows, side: str) -> Iterator[Result]:
    queues = made.trial.reading.queues
    cores = [core for core in queues.cores if core.side == side and core.softirqs] if queues is not None else []
    total = sum(core.frames for core in cores)
    for core in cores:
        share = 100.0 * core.frames / total if total else None
        values: Values = {"frames": core.frames, "share_percent": share, "softirqs": core.softirqs}
        yield made.row(CORES, values, cpu=str(core.cpu))


def _stream_rows(made: _Rows, spread: PortSpread) -> Iterator[Result]:
    for stream in spread.streams:
        yield made.row(STREAMS, stream_values(stream, spread.sent), port=spread.queues.device, stream=stream.name)


def _spread_table() -> ResultTable:
    return ResultTable(
        part=SPREAD,
        title="Spread over receive queues",
        caption=(
            "Jain's index is 1 where all queues got the same and 1/n where one of n got all. By chance: the middle "
            "95 % of 20,000 random assignments of the same flows to as many queues."
        ),
        columns=(
            *(_SIZE, _PORT),
            Column(value="queues", head="Queues", form="whole"),
            Column(value="flows", head="Flows", form="whole"),
            Column(value="largest_flow_percent", head="Largest flow", unit="% of frames", form="trimmed"),
            _INDEX,
            Column(value="index_by_chance", head="Index by chance", form="text"),
            Column(value="most_to_mean", head="Most loaded by mean"),
            Column(value="most_by_chance", head="Most by chance", form="text"),
            Column(value="probability", head="Probability"),
            Column(value="against_chance", head="Against chance", form="text"),
            Column(value="against_table", head="Against its table", form="text", is_optional=True),
        ),
        sentences=(
            (
                "spreads {flows} flows over {queues} queues with Jain's index {jain_index}, the most loaded with "
                "{most_to_mean} times the mean: {against_chance}"
            ),
        ),
        notes=(("hash", "Hash"), ("why_not", "Not computed"), ("why", "Limit")),
        has_basis=False,
    )


def _queue_table() -> ResultTable:
    return ResultTable(
        part=QUEUES,
        title="Frames by receive queue",
        caption="What each queue got, and what the adapter's own hash sends there, where that can be computed.",
        columns=(
            *(_SIZE, _PORT, _QUEUE),
            Column(value="frames", head="Frames", form="whole"),
            _SHARE,
            Column(value="to_mean", head="By mean"),
            Column(value="expected_frames", head="By key and table", form="whole", is_optional=True),
        ),
        notes=(("source", "Counted by"),),
        bars=Bars(x=_QUEUE, y=_SHARE, lines=(_PORT, _SIZE), caption="The share of each receive queue."),
        has_basis=False,
    )


def _core_table() -> ResultTable:
    return ResultTable(
        part=CORES,
        title="Frames by core",
        caption=(
            "Frames that the kernel's stack handled on each core of the machine, whoever sent them, and its softirqs "
            "of received frames; cores without any are not listed. Frames that an XDP program returned or forwarded "
            "never come to the stack."
        ),
        columns=(
            *(_SIZE, Column(value="cpu", head="CPU", form="text")),
            Column(value="frames", head="Frames", form="whole"),
            _SHARE,
            Column(value="softirqs", head="Softirqs", form="whole"),
        ),
        has_basis=False,
    )


def _stream_table() -> ResultTable:
    return ResultTable(
        part=STREAMS,
        title="Loss by stream",
        caption=(
            "What each stream lost on its whole way. A stream of one flow and much of the load is an elephant: the "
            "flows beside it that lost frames are those on its queue, where the queue is the limit."
        ),
        columns=(
            *(_SIZE, _PORT, Column(value="stream", head="Stream", form="text")),
            Column(value="flows", head="Flows", form="whole"),
            Column(value="share_percent", head="Share of the load", unit="%", form="trimmed"),
            Column(value="sent_frames", head="Sent", form="whole"),
            Column(value="lost_frames", head="Lost", form="whole"),
            Column(value="loss_percent", head="Loss", unit="%", form="of_frames"),
            Column(value="flows_with_loss", head="Flows that lost frames", form="whole"),
            Column(value="most_lost_frames", head="Most lost by a flow", form="whole"),
        ),
        has_basis=False,
    )
