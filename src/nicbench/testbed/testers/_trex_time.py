"""For how long TRex's ports sent, from readings of their counters. Pure.

TRex does not say when a transmission began or ended: the call that starts it takes milliseconds to tenths of a second,
the event of its end comes later still, and a server that is held up sends every frame all the same, only later. So the
counters of sent frames are read around both moments (``trex_process.watch``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Counted = Sequence[float]
"""A reading of a counter: when it was asked for and when it was there, in seconds, and the frames sent by then."""


@dataclass(frozen=True, slots=True)
class SendingTime:
    """For how long a port sent, by how much that is more than it was asked for, and how exactly it is known."""

    taken_ns: int
    overtime_ns: int
    uncertainty_ns: int


@dataclass(frozen=True, slots=True)
class _Moment:
    at_s: float
    uncertainty_s: float


def sending_time(readings: Mapping[str, Any], frames_per_s: float, asked_s: float) -> SendingTime:
    """That of one port which was asked to send at this rate for so long.

    ``readings`` are those of ``trex_process.watch.Readings``. Frames leave at the rate: so each end is known from the
    reading near it that the server answered soonest, unless a burst or a pause puts it outside of the bounds. A port
    that has sent nothing took the time that it was given.
    """
    last, beginning = readings["last"], readings["beginning"]
    if last is None:
        return SendingTime(round(1e9 * asked_s), 0, 0)
    none = readings["none"] or beginning[0]
    ending = readings["ending"] or [none]
    # A reading with all frames does not say when the last of them left.
    first = min([one for one in beginning if one[2] < last[2]] or beginning[:1], key=_length_s)
    begun = _between(none[0], beginning[0][1], first, -first[2] / frames_per_s)
    near = min(ending, key=_length_s)
    ended = _between(ending[-1][0], last[1], near, (last[2] - near[2]) / frames_per_s)
    taken_s = max(0.0, ended.at_s - begun.at_s)
    return SendingTime(
        taken_ns=round(1e9 * taken_s),
        overtime_ns=round(1e9 * (taken_s - asked_s)),
        uncertainty_ns=round(1e9 * (begun.uncertainty_s + ended.uncertainty_s)),
    )


def worst(times: Sequence[SendingTime]) -> SendingTime:
    """That of the port which missed its time most."""
    return max(times, key=lambda time: (abs(time.overtime_ns), time.uncertainty_ns))


def _length_s(reading: Counted) -> float:
    """How long the server took to answer."""
    return reading[1] - reading[0]


def _between(earliest_s: float, latest_s: float, known: Counted, offset_s: float) -> _Moment:
    """The moment ``offset_s`` from a reading, within its bounds."""
    at_s = (known[0] + known[1]) / 2 + offset_s
    half_s = (known[1] - known[0]) / 2
    if earliest_s - half_s <= at_s <= latest_s + half_s:
        return _Moment(min(max(at_s, earliest_s), latest_s), half_s)
    return _Moment((earliest_s + latest_s) / 2, (latest_s - earliest_s) / 2)
