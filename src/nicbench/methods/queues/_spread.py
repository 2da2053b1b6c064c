"""What one port's queues got, judged against chance and against its own table; and what each stream lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.core.machine import PortQueues, QueueReading, QueueSide
from nicbench.core.pattern import way_of_stream
from nicbench.core.trial import Reading, StreamReading
from nicbench.methods._results import Values
from nicbench.stats.frames import fairness
from nicbench.stats.queues import Flows, most_to_mean, spread_by_chance

OWN_COUNT: Final = "the DUT's own count"
EXPLAINED: Final = "chance explains it"
AS_COMPUTED: Final = "every frame where its table says"
# Frames of one trial that may be elsewhere: those that were under way when the counters were read.
_STRAY_SHARE: Final = 0.001


@dataclass(frozen=True, slots=True)
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
    """Returns the figures of one port; ``worst_probability``: below it chance is no explanation."""
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
