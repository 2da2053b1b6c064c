"""The identities of a trial's counts (docs/verdicts.md, "Counts"), held wherever counts come in.

Engines, other testers, journals and tables of others are all held against these: a count is not right because somebody
wrote it down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nicbench.core.pattern import way_of_stream
from nicbench.core.reading import Counts, sum_of_known
from nicbench.core.trial import PortReading, Reading, StreamReading

MOST_FRAMES: Final = 2**63 - 1
"""More than any tester sends; a table holds no greater number."""
_FATES: Final = ("received", "lost", "late", "corrupted", "unattributed")
"""What becomes of a frame that was sent: each has one of these."""
_MOST_OF: Final = {"_frames": MOST_FRAMES, "loss_percent": 100, "loss_ratio": 1}
"""The greatest value that each of these can have, by the end of its name."""
_OF_PORTS: Final = ("corrupted_unattributed", "foreign", "misdirected", "stale")
"""Counts of ports, of which a stream has none."""


def contradiction_in(counts: Mapping[str, int | None], *, into_sink: bool = False, is_load: bool = True) -> str | None:
    """Says in which way the counts of one stream, or of a whole trial, contradict themselves; None where they add up.

    A count that is unknown (None) contradicts nothing: such frames are among the others. Frames that go ``into_sink``
    come to nothing that is counted: to early versions none of them was lost. Frames that are not load (pause frames)
    are counted by what they hold, and two streams of them may be taken for one.
    """
    known = {name: count for name, count in counts.items() if count is not None}
    for name, count in known.items():
        if not 0 <= count <= MOST_FRAMES:
            return f"{name} is {count}: " + ("less than none" if count < 0 else "more than can be counted")
    intended = known["sent"] + known["unsent_tester"] + known["unsent_backpressure"]
    if known["intended"] != intended and is_load:
        return f"{known['intended']} frames were intended, and {intended} are sent and unsent together"
    came_to = sum(known.get(name, 0) for name in _FATES)
    if known["sent"] != came_to and not (into_sink and not came_to):
        told = ", ".join(f"{known[name]} {name}" for name in _FATES if known.get(name))
        return f"{known['sent']} frames were sent, and {came_to} are accounted for ({told or 'none'})"
    if known.get("reordered", 0) > known["received"]:
        return f"{known['reordered']} frames are reordered, of {known['received']} received"
    copied = known.get("duplicated", 0) + known.get("corrupted_copies", 0)
    if copied and not known["received"] + known.get("corrupted", 0) + known.get("late", 0):
        return f"{copied} frames came again, and none came first"
    return None


def contradiction_in_values(values: Mapping[str, object]) -> str | None:
    """Says which value of a result cannot be: a number of frames, or a share of them that is lost; None: each can."""
    for name, value in values.items():
        if not isinstance(value, int | float):
            continue
        most = next((most for end, most in _MOST_OF.items() if name.endswith(end)), None)
        if most is not None and not 0 <= value <= most:
            return f"{name} is {value}: " + ("less than none" if value < 0 else f"more than {most}")
    sent, lost = values.get("sent_frames"), values.get("lost_frames")
    if isinstance(sent, int) and isinstance(lost, int) and lost > sent:
        return f"{lost} frames are lost, of {sent} sent"
    return None


def require_identities(reading: Reading, *, into_sink: bool = False) -> None:
    """Raises ValueError for a reading whose counts contradict themselves: in all, of a stream, or at a port."""
    for where, why in _contradictions(reading, into_sink):
        raise ValueError(f"{where}{why}")


def _contradictions(reading: Reading, into_sink: bool) -> Iterator[tuple[str, str]]:
    for streams, is_load in ((reading.streams, True), (reading.beside, False)):
        for stream in streams:
            if (why := contradiction_in(dict(stream.counts), into_sink=into_sink, is_load=is_load)) is not None:
                yield f"stream {stream.name}: ", why
    if (why := contradiction_in(dict(reading.counts), into_sink=into_sink)) is not None:
        yield "", why
    if reading.streams:
        yield from _sums(reading)
    for number, port in enumerate(reading.ports):
        yield from _at_port(number, port, (*reading.streams, *reading.beside))


def _sums(reading: Reading) -> Iterator[tuple[str, str]]:
    total, of_streams = reading.counts, Counts.sum_of(stream.counts for stream in reading.streams)
    for name in Counts.model_fields:
        whole, parts = getattr(total, name), getattr(of_streams, name)
        if name not in _OF_PORTS and None not in (whole, parts) and whole != parts:
            yield "", f"{name} is {whole}, and {parts} of all streams together"


def _at_port(number: int, port: PortReading, streams: Sequence[StreamReading]) -> Iterator[tuple[str, str]]:
    own = {name: getattr(port, name) for name in ("arrived", *_OF_PORTS, "receive_overrun")}
    for name, count in own.items():
        if count is not None and not 0 <= count <= MOST_FRAMES:
            yield f"port {port.name}: ", f"{name} is {count}, which cannot be"
    ways = {stream.name: way_of_stream(stream.name) for stream in streams}
    here = [stream.counts for stream in streams if (way := ways[stream.name]) is not None and way[1] == number]
    names = ("received", "duplicated", "corrupted", "corrupted_copies")
    of_streams = (getattr(counts, name) for counts in here for name in names)
    came = None if None in ways.values() else sum_of_known([*of_streams, *(own[name] for name in _OF_PORTS)])
    if None not in (came, own["arrived"]) and came != own["arrived"]:
        yield f"port {port.name}: ", f"{own['arrived']} frames arrived, and {came} are accounted for"
