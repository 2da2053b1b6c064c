"""Receive spread: what each receive queue and each core gets of a mix of flows, and whether chance explains it.

Steps, for each frame size: one trial at the load, with the counters of every receive queue (``ethtool -S``, or the
DUT's own count) and core (``/proc/net/softnet_stat``, ``/proc/softirqs``) read before and after. The spread is Jain's
index (DEC-TR-301) and the most loaded queue by the mean of all. Both are held against 20,000 random assignments of the
very same flows to as many queues, as an ideal hash makes them: few flows, or a flow with much of the load (an
elephant), spread unevenly by chance alone. Where the adapter shows its indirection table, and adapter or kernel its
key, the queue of each flow is computed as well (Toeplitz hash). Flows that lost frames are counted by stream, which
shows whom an overloaded queue costs frames. Verified: every frame by its signature; the counters of queues against the
frames sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSizes, Size, size_parameters
from nicbench.core.frozen import frozen
from nicbench.core.machine import PortQueues, QueueReading, QueueSide
from nicbench.core.pattern import way_of_stream
from nicbench.core.quantity import Ratio
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.table import Bars, Column, ResultTable
from nicbench.core.trial import Purpose, Reading, StreamReading, Trial
from nicbench.methods._loads import LINE_RATE, FullRate, TrialTimes, full_rate
from nicbench.methods._results import result_at, verdict_of
from nicbench.methods.base import FRAME, PORT, Context, FrameMethod, Values
from nicbench.stats.frames import fairness
from nicbench.stats.queues import Flows, most_to_mean, spread_by_chance

# What one port's queues got, judged against chance and against its own table; and what each stream lost.


OWN_COUNT: Final = "the DUT's own count"
EXPLAINED: Final = "chance explains it"
AS_COMPUTED: Final = "every frame where its table says"
# Frames of one trial that may be elsewhere: those that were under way when the counters were read.
_STRAY_SHARE: Final = 0.001


@frozen
class PortSpread:
    """The queues of one port, and the streams that came to it."""

    queues: PortQueues
    streams: tuple[StreamReading, ...]

    @property
    def sent(self) -> int:
        """Frames that were sent to the port."""
        return sum(stream.counts.sent for stream in self.streams)

    @property
    def misplaced(self) -> int | None:
        """Frames that came to another queue than the table says; None where that is not computed.

        No more than are missing at queues, as others were lost before, and no more than are too many at others, whose
        frames may be those of somebody else.
        """
        expected = self.queues.expected
        if expected is None:
            return None
        pairs = list(zip(expected, self.queues.frames, strict=True))
        return min(sum(max(0, due - got) for due, got in pairs), sum(max(0, got - due) for due, got in pairs))

    @property
    def unqueued(self) -> int:
        """Frames that were sent to the port and came to no queue."""
        return max(0, self.sent - sum(self.queues.frames))


def spreads_of(reading: Reading, side: QueueSide) -> tuple[PortSpread, ...]:
    """Returns the ports of one side whose queues were counted, by the machine or by the DUT itself."""
    of_host = reading.queues or QueueReading()
    ports = {each.port: each for each in of_host.ports if each.side == side}
    own = reading.dut_queues if side == "dut" else ()
    for port, frames in enumerate(own):
        if port not in ports and len(frames) > 1:
            ports[port] = PortQueues(
                side=side, port=port, device=f"port {port}", driver="", source=OWN_COUNT, frames=frames,
                why_not="the DUT shows no hash",
            )  # fmt: skip
    found = (PortSpread(queues, streams_at(reading, side, port)) for port, queues in sorted(ports.items()))
    return tuple(each for each in found if each.streams)


def streams_at(reading: Reading, side: QueueSide, port: int) -> tuple[StreamReading, ...]:
    """Returns the streams whose frames come to a port: of the DUT, by the port that sends to it."""
    end = 0 if side == "dut" else 1
    ways = ((stream, way_of_stream(stream.name)) for stream in reading.streams)
    return tuple(stream for stream, way in ways if way is not None and way[end] == port)


def spread_values(spread: PortSpread, seed: int, worst_probability: float) -> Values:
    """Returns the figures of one port; ``worst_probability``: below it chance does not explain the spread."""
    frames = spread.queues.frames
    flows = _flows_of(spread.streams)
    chance = None if flows is None else spread_by_chance(flows, frames, seed)
    busiest = max(range(len(frames)), key=lambda queue: frames[queue])
    idle = [str(queue) for queue, count in enumerate(frames) if count == 0]
    largest = max((each.frames for each in flows or () if each.count), default=None)
    return {
        "queues": len(frames),
        "flows": None if flows is None else sum(each.count for each in flows),
        "largest_flow_percent": None if largest is None or not spread.sent else 100.0 * largest / spread.sent,
        "sent_frames": spread.sent,
        "queue_frames": sum(frames),
        "jain_index": fairness(frames),
        "index_by_chance_lower": None if chance is None else chance.index_lower,
        "index_by_chance_upper": None if chance is None else chance.index_upper,
        "index_by_chance": None if chance is None else f"{chance.index_lower:.3f} to {chance.index_upper:.3f}",
        "most_to_mean": most_to_mean(frames),
        "most_by_chance_lower": None if chance is None else chance.most_to_mean_lower,
        "most_by_chance_upper": None if chance is None else chance.most_to_mean_upper,
        "most_by_chance": (
            None if chance is None else f"{chance.most_to_mean_lower:.2f} to {chance.most_to_mean_upper:.2f}"
        ),
        "probability": None if chance is None else chance.probability,
        "busiest_queue": str(busiest) if any(frames) else None,
        "idle_queues": len(idle),
        "misplaced_frames": spread.misplaced,
        "against_chance": _against_chance(None if chance is None else chance.probability, worst_probability, idle),
        "against_table": _against_table(spread),
        "hash": _hash_in_words(spread.queues),
        "why_not": f"{spread.queues.device}: {spread.queues.why_not}" if spread.queues.why_not else None,
    }


def _flows_of(streams: Sequence[StreamReading]) -> list[Flows] | None:
    """Returns the flows of the streams with the frames of each; None where a tester does not tell them apart."""
    found = []
    for stream in streams:
        if stream.flows is None or not stream.flows.flows:
            return None
        found.append(Flows(stream.flows.flows, stream.counts.sent / stream.flows.flows))
    return found


def _against_chance(probability: float | None, worst: float, idle: Sequence[str]) -> str:
    if probability is None:
        return "not known: no frames, or flows that are not told apart"
    if probability >= worst:
        return EXPLAINED
    without = f"; no frame on queue {', '.join(idle)}" if idle else ""
    return f"worse than chance{without}"


def _against_table(spread: PortSpread) -> str | None:
    queues, misplaced = spread.queues, spread.misplaced
    if misplaced is None:
        return None
    stray = _STRAY_SHARE * spread.sent
    if misplaced > stray:
        said = f"{misplaced} frames are not where its table says"
    elif left_out := _left_out(queues):
        said = f"{AS_COMPUTED}; it leaves out queue {left_out}"
    else:
        said = AS_COMPUTED
    if spread.unqueued <= stray:
        return said
    # Of frames that came to no queue the table says nothing.
    placed = said.replace(AS_COMPUTED, "every frame that came is where its table says")
    return f"{placed}; {spread.unqueued} frames came to no queue: lost before it"


def _left_out(queues: PortQueues) -> str:
    table = queues.hash.table if queues.hash is not None else ()
    return ", ".join(str(queue) for queue in range(len(queues.frames)) if queue not in table)


def _hash_in_words(queues: PortQueues) -> str | None:
    known = queues.hash
    if known is None:
        return None
    fields = {"sd": "addresses", "sdfn": "addresses and ports"}.get(
        known.fields or "", known.fields or "unknown fields"
    )
    key = f", key of {known.key_from}" if known.key_from else ""
    return f"{queues.device}: {known.function or 'Toeplitz'} of {fields}{key}, table of {len(known.table)} entries"


def stream_values(stream: StreamReading, sent: int) -> Values:
    """Returns what one stream lost; ``sent`` are the frames of all streams of its port."""
    counts, flows = stream.counts, stream.flows
    return {
        "flows": None if flows is None else flows.flows,
        "share_percent": 100.0 * counts.sent / sent if sent else None,
        "sent_frames": counts.sent,
        "lost_frames": counts.lost,
        "loss_percent": 100.0 * counts.lost / counts.sent if counts.sent else None,
        "flows_with_loss": None if flows is None else flows.with_loss,
        "most_lost_frames": None if flows is None or flows.most_lost is None else flows.most_lost[1],
    }


SPREAD, QUEUES, CORES, STREAMS = "spread", "queues", "cores", "streams"
_INDEX = Column("jain_index", "Jain's index", name="fairness of its queues (Jain)", is_main=True, better="higher")
_SHARE = Column("share_percent", "Share", unit="%", form="trimmed")
_QUEUE = Column("queue", "Queue", form="text")


class ReceiveSpread(FrameMethod):
    """What queues and cores get of the flows."""

    gives_points = False
    kind = "receive-spread"
    question = "How evenly does {subject} spread flows over its receive queues?"

    class Options(Frozen):
        """Options of the bench file. The flows are those of `traffic`."""

        frame_bytes: FrameSizes = (64,)
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

    def deviations(self) -> tuple[str, ...]:
        return self.options.trial.deviations()

    async def results(self, context: Context) -> AsyncIterator[Result]:
        for size in context.sizes(self.options.frame_bytes):
            for result in await self._measure_size(context, size):
                yield result

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
        self._disturbances = trial.verdict.texts if disturbed else ()

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
            *(FRAME, PORT),
            Column("queues", "Queues", form="whole"),
            Column("flows", "Flows", form="whole"),
            Column("largest_flow_percent", "Largest flow", unit="% of frames", form="trimmed"),
            _INDEX,
            Column("index_by_chance", "Index by chance", form="text"),
            Column("most_to_mean", "Most loaded by mean"),
            Column("most_by_chance", "Most by chance", form="text"),
            Column("probability", "Probability"),
            Column("against_chance", "Against chance", form="text"),
            Column("against_table", "Against its table", form="text", is_optional=True),
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
            *(FRAME, PORT, _QUEUE),
            Column("frames", "Frames", form="whole"),
            _SHARE,
            Column("to_mean", "By mean"),
            Column("expected_frames", "By key and table", form="whole", is_optional=True),
        ),
        notes=(("source", "Counted by"),),
        bars=Bars(x=_QUEUE, y=_SHARE, lines=(PORT, FRAME), caption="The share of each receive queue."),
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
            *(FRAME, Column("cpu", "CPU", form="text")),
            Column("frames", "Frames", form="whole"),
            _SHARE,
            Column("softirqs", "Softirqs", form="whole"),
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
            *(FRAME, PORT, Column("stream", "Stream", form="text")),
            Column("flows", "Flows", form="whole"),
            Column("share_percent", "Share of the load", unit="%", form="trimmed"),
            Column("sent_frames", "Sent", form="whole"),
            Column("lost_frames", "Lost", form="whole"),
            Column("loss_percent", "Loss", unit="%", form="of_frames"),
            Column("flows_with_loss", "Flows that lost frames", form="whole"),
            Column("most_lost_frames", "Most lost by a flow", form="whole"),
        ),
        has_basis=False,
    )
