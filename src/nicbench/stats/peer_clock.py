"""Two clocks, compared again and again: the line of their offset over time, and a bound of its error. Pure.

A comparison is an exchange both ways. Half of the difference of the fastest frame (or question) there and back is the
offset, and half of their sum bounds its error, however unequal both ways are (RFC 5905 section 8 calls it half the
delay). The asymmetry that the ways always have moves all offsets alike, so that the drift does not suffer from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from nicbench.core.clocks import ClockMapping
from nicbench.core.frozen import frozen

LONGEST_MEMORY_S: Final = 120.0
"""Older comparisons are left out: the drift of a crystal changes with its temperature."""
FEWEST_KEPT: Final = 4
NEAR_S: Final = 2.0
"""The time before and after a trial in which comparisons apply to its ends."""
CRYSTAL_DRIFT: Final = 1e-4
"""What is taken for the drift of a clock that was not watched for long enough: 0, give or take 100 millionths."""
LEAST_NOISE_NS: Final = 100.0
NOISE_SHARE: Final = 0.05
"""The least uncertainty of a comparison, and the share of its bound that is added, even where it was as fast as any
other.
"""


@frozen
class Comparison:
    """The second clock minus the first at ``at_ns`` of the first; the truth is within ``half_ns`` on either side."""

    by: str
    at_ns: float
    offset_ns: float
    half_ns: float


@frozen
class ClockLine:
    """The second clock minus the first: ``offset_ns`` at ``at_ns`` of the first, from where it grows by ``drift``."""

    at_ns: float
    offset_ns: float
    drift: float
    comparisons: int

    def offset_at(self, at_ns: float) -> float:
        """The offset in nanoseconds at a time of the first clock."""
        return self.offset_ns + self.drift * (at_ns - self.at_ns)


def compare_both_ways(by: str, at_ns: float, there_ns: float, back_ns: float) -> Comparison:
    """The comparison by the least times of both ways, each taken as the arrival by one clock minus the sending by the
    other: from the first clock to the second, and back.
    """
    return Comparison(by, at_ns, (there_ns - back_ns) / 2, max(0.0, (there_ns + back_ns) / 2))


def compare_questions(by: str, first: tuple[float, float, float], second: tuple[float, float, float]) -> Comparison:
    """The comparison of two clocks that were both asked for their time by a third one.

    Of each: when it was asked, what it said, and when the answer came, asked and answered by the third clock.
    """
    (asked, said, answered), (asked_too, said_too, answered_too) = first, second
    apart_ns = (asked_too + answered_too) / 2 - (asked + answered) / 2
    return Comparison(by, said, said_too - said - apart_ns, (answered - asked) / 2 + (answered_too - asked_too) / 2)


def lay_line(comparisons: Sequence[Comparison]) -> ClockLine:
    """The line through comparisons of one kind, the fastest ones weighing most; ValueError without comparisons.

    What a comparison took longer than the fastest one was spent waiting on one of its ways, and its offset may be wrong
    by as much: weights follow from that.
    """
    kept = recent(comparisons)
    if not kept:
        raise ValueError("no comparison of the clocks")
    least = min(one.half_ns for one in kept)
    noise = LEAST_NOISE_NS + NOISE_SHARE * least
    weights = [(one.half_ns - least + noise) ** -2.0 for one in kept]
    whole = math.fsum(weights)
    begin = kept[0].at_ns  # offsets and times are large, their differences small
    times = [one.at_ns - begin for one in kept]
    offsets = [one.offset_ns - kept[0].offset_ns for one in kept]
    time = _dot(weights, times) / whole
    offset = _dot(weights, offsets) / whole
    spread = math.fsum(weight * (at - time) ** 2 for weight, at in zip(weights, times, strict=True))
    slope = math.fsum(
        weight * (at - time) * (value - offset) for weight, at, value in zip(weights, times, offsets, strict=True)
    )
    drift = slope / (spread + CRYSTAL_DRIFT**-2.0)
    return ClockLine(begin + time, kept[0].offset_ns + offset, drift, len(kept))


def recent(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Those of the last two minutes, and the last four in any case."""
    ordered = sorted(comparisons, key=lambda one: one.at_ns)
    if not ordered:
        return ()
    oldest = ordered[-1].at_ns - LONGEST_MEMORY_S * 1e9
    return tuple(
        one for number, one in enumerate(ordered, FEWEST_KEPT - len(ordered)) if one.at_ns >= oldest or number >= 0
    )


def choose_kind(comparisons: Iterable[Comparison]) -> str | None:
    """The kind of comparison that bounds the offset best; None without comparisons."""
    best = min(comparisons, key=lambda one: one.half_ns, default=None)
    return None if best is None else best.by


def map_trial(
    line: ClockLine, comparisons: Sequence[Comparison], begin_ns: float, end_ns: float
) -> ClockMapping | None:
    """How well ``line`` held from ``begin_ns`` to ``end_ns`` of the first clock.

    Of each kind of comparison the best one right before and the best one right after the trial bound the error at its
    ends, and so in between while the drift is even; the kind with the smaller bound counts. None where no kind has
    both.
    """
    found = []
    for kind in dict.fromkeys(one.by for one in comparisons):
        own = [one for one in comparisons if one.by == kind]
        before = _nearest([one for one in own if one.at_ns <= begin_ns], begin_ns)
        after = _nearest([one for one in own if one.at_ns >= end_ns], end_ns)
        if before and after:
            found.append(_mapping(kind, line, (before, after), begin_ns))
    best = min(found, key=lambda one: one.uncertainty_ns, default=None)
    if best is None:
        return None
    # What one kind proves wrong another with a wider bound cannot excuse.
    return best.replace(step_ns=max(one.step_ns for one in found))


def _nearest(comparisons: Sequence[Comparison], at_ns: float) -> list[Comparison]:
    """Those within two seconds of a time, or the nearest one: on a busy machine a single one may be a bad one."""
    near = [one for one in comparisons if abs(one.at_ns - at_ns) <= NEAR_S * 1e9]
    return near or sorted(comparisons, key=lambda one: abs(one.at_ns - at_ns))[:1]


def _mapping(
    kind: str, line: ClockLine, ends: tuple[Sequence[Comparison], Sequence[Comparison]], begin_ns: float
) -> ClockMapping:
    def missed(one: Comparison) -> float:
        return abs(line.offset_at(one.at_ns) - one.offset_ns)

    best = [min(end, key=lambda one: missed(one) + one.half_ns) for end in ends]
    return ClockMapping(
        by=kind,
        offset_ns=round(line.offset_at(begin_ns)),
        drift_ppm=line.drift * 1e6,
        asymmetry_bound_ns=max(one.half_ns for one in best),
        fit_error_ns=max(missed(one) for one in best),
        step_ns=max(0.0, *(missed(one) - one.half_ns for end in ends for one in end)),
        comparisons=line.comparisons,
    )


def _dot(weights: Sequence[float], values: Sequence[float]) -> float:
    return math.fsum(weight * value for weight, value in zip(weights, values, strict=True))
