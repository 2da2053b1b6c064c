"""For how long TRex's ports sent, from readings of their counters. Pure.

TRex does not say when a transmission began or ended: the call that starts it takes milliseconds to tenths of a second,
the event of its end comes later still, and a server that is held up sends every frame all the same, only later. So the
counters of sent frames are read around both moments (``trex_process``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

_NEAR: Final = 5
"""So many readings say where an end lies: a server that is held up sends later than the earlier ones foretell."""

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

    ``readings`` are those of ``trex_process.Readings``. A port that has sent nothing took the time that it was
    given.
    """
    last, beginning = readings["last"], readings["beginning"]
    if last is None:
        return SendingTime(round(1e9 * asked_s), 0, 0)
    none = readings["none"] or beginning[0]
    begun = _beginning(none, beginning, last, frames_per_s)
    ended = _end(readings["ending"] or [none], last, frames_per_s)
    taken_s = max(0.0, ended.at_s - begun.at_s)
    return SendingTime(
        taken_ns=round(1e9 * taken_s),
        overtime_ns=round(1e9 * (taken_s - asked_s)),
        uncertainty_ns=round(1e9 * (begun.uncertainty_s + ended.uncertainty_s)),
    )


def _beginning(none: Counted, beginning: Sequence[Counted], last: Counted, frames_per_s: float) -> _Moment:
    """When the first frame left: of the readings with frames, those that the server answered soonest say it best.

    It is held up while it starts a transmission, so that the readings before and after may be far apart.
    """
    # A reading with all frames does not say when the last of them left, and so not when the first did.
    known = [one for one in beginning if one[2] < last[2]] or beginning[:1]
    earliest = max([none[0], *(one[0] - one[2] / frames_per_s for one in known[:_NEAR])])
    latest = min([beginning[0][1], *(one[1] - one[2] / frames_per_s for one in known)])
    if earliest <= latest:
        return _middle(earliest, latest)
    return _middle(none[0], beginning[0][1])  # frames came faster than at the rate, or were held up


def _end(ending: Sequence[Counted], last: Counted, frames_per_s: float) -> _Moment:
    """When the last frame left. After any reading a server that is held up may have sent the rest later."""
    left = [(one, (last[2] - one[2]) / frames_per_s) for one in ending]
    earliest = max(one[0] + rest_s for one, rest_s in left)
    latest = last[1]
    if earliest > latest:
        return _middle(ending[-1][0], latest)  # frames came faster than at the rate
    likely = min([latest, *(one[1] + rest_s for one, rest_s in left[-_NEAR:])])
    at_s = (earliest + max(earliest, likely)) / 2
    return _Moment(at_s, max(at_s - earliest, latest - at_s))


def _middle(earliest_s: float, latest_s: float) -> _Moment:
    return _Moment((earliest_s + latest_s) / 2, (latest_s - earliest_s) / 2)


def worst(times: Sequence[SendingTime]) -> SendingTime:
    """That of the port which missed its time most, with the uncertainty of the port whose time is known worst."""
    missed = max(times, key=lambda time: (abs(time.overtime_ns), time.uncertainty_ns))
    return replace(missed, uncertainty_ns=max(time.uncertainty_ns for time in times))
