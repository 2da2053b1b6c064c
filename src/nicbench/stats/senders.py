"""The reaction of a sender over time: whether and when its rate settles, and what it makes of marks."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Final

from nicbench.core.round import SenderLook, SenderTrace

STEP_S: Final = 0.5
"""The time over which a rate is averaged before it is compared with the settled one."""
_WITHIN: Final = 0.1
_GROWN: Final = 1.5
"""Data in flight of the last quarter over that of the first: a sender that obeys marks does not let it grow so far."""
_OBEYS: Final = 0.1
"""The window of a sender that obeys falls in this share of the times between two looks that saw marks, or more."""
_LEAST_LOOKS: Final = 4
_P95: Final = 0.95


class Reaction(Enum):
    """What a sender made of marks, in words."""

    REACTS = "reacts to marks"
    UNSETTLED = "reacts to marks, its rate does not settle"
    NOT_TOLD = "was not told: ECN not negotiated"
    NOT_MARKED = "was not marked"
    UNKNOWN = "has marks that its kernel does not tell"
    IGNORES = "was marked and did not slow down"


@dataclass(frozen=True, slots=True)
class Settling:
    """What a sender did in a period. Everything but ``settles_after_s`` is of the time after it settled.

    Where it did not settle (``settles_after_s`` is None), it is of the last half of the period.
    """

    settles_after_s: float | None
    """Seconds from the beginning of the period."""
    rate_bits_per_s: float
    """Payload that was acknowledged."""
    marked_share: float | None
    """Of the segments delivered."""
    resent: int
    """Segments sent again."""
    round_trip_median_ns: float | None
    round_trip_p95_ns: float | None
    reaction: Reaction


@dataclass(frozen=True, slots=True)
class Step:
    """The mean of one step of time, which ends ``at_s``."""

    at_s: float
    rate_bits_per_s: float
    marked_share: float | None
    round_trip_ns: float | None


def steps_of(looks: Sequence[SenderLook], step_s: float) -> list[Step]:
    """Splits looks at the multiples of ``step_s``, the same for all senders; a rest is left out."""
    found, first = list[Step](), 0
    ended = math.floor(looks[0].at_s / step_s + 1e-9) if looks else 0
    for number, look in enumerate(looks):
        now = math.floor(look.at_s / step_s + 1e-9)
        if now > ended:
            part = looks[first : number + 1]
            trips = [one.round_trip_ns for one in part[1:] if one.round_trip_ns is not None]
            found.append(
                Step(
                    at_s=now * step_s,
                    rate_bits_per_s=_rate(part),
                    marked_share=_marked_share(part),
                    round_trip_ns=statistics.median(trips) if trips else None,
                )
            )
            first, ended = number, now
    return found


def settling_of(trace: SenderTrace, from_s: float, until_s: float) -> Settling | None:
    """Judges the period; None where there are too few looks in it.

    The rate is compared with its mean over the last half of the period: it settles at the first time after which each
    mean over half a second stays within 10 % of that, and does not settle where one in the last half is farther away.
    """
    looks = [look for look in trace.looks if from_s <= look.at_s <= until_s]
    late = [look for look in looks if look.at_s >= (from_s + until_s) / 2]
    if len(late) < _LEAST_LOOKS or late[-1].at_s <= late[0].at_s:
        return None
    reference = _rate(late)
    settled_at_s: float | None = looks[0].at_s
    for step in steps_of(looks, STEP_S):
        if abs(step.rate_bits_per_s - reference) > _WITHIN * reference:
            settled_at_s = step.at_s
    if settled_at_s is not None and settled_at_s > late[0].at_s:
        settled_at_s = None
    settled = late if settled_at_s is None else [look for look in looks if look.at_s >= settled_at_s]
    trips = sorted(look.round_trip_ns for look in settled if look.round_trip_ns is not None)
    share = _marked_share(settled)
    return Settling(
        settles_after_s=None if settled_at_s is None else max(0.0, settled_at_s - from_s),
        rate_bits_per_s=_rate(settled),
        marked_share=share,
        resent=settled[-1].resent - settled[0].resent,
        round_trip_median_ns=statistics.median(trips) if trips else None,
        round_trip_p95_ns=trips[min(len(trips) - 1, int(_P95 * len(trips)))] if trips else None,
        reaction=_reaction(trace.ecn, settled, share, is_settled=settled_at_s is not None),
    )


def _reaction(ecn: bool | None, looks: Sequence[SenderLook], share: float | None, *, is_settled: bool) -> Reaction:
    if ecn is False:
        return Reaction.NOT_TOLD
    if ecn is None or share is None:
        return Reaction.UNKNOWN
    if share == 0:
        return Reaction.NOT_MARKED
    # A stream may overshoot as it begins: what counts is the last half.
    if (looks[-1].resent > looks[len(looks) // 2].resent or _grows(looks)) and not _obeys(looks):
        return Reaction.IGNORES
    return Reaction.REACTS if is_settled else Reaction.UNSETTLED


def _obeys(looks: Sequence[SenderLook]) -> bool:
    """Whether the congestion window fell in a tenth or more of the times that saw marks and no loss."""
    fell = [
        later.window < earlier.window
        for earlier, later in pairwise(looks)
        if earlier.window is not None
        and later.window is not None
        and later.resent == earlier.resent
        and (later.delivered_marked or 0) > (earlier.delivered_marked or 0)
    ]
    return bool(fell) and statistics.fmean(fell) >= _OBEYS


def _grows(looks: Sequence[SenderLook]) -> bool:
    """Whether rate times round trip, which is the data in flight, is much more at the end than at the beginning."""
    flights = [
        (later.acked_bytes - earlier.acked_bytes) / (later.at_s - earlier.at_s) * later.round_trip_ns
        for earlier, later in pairwise(looks)
        if later.round_trip_ns is not None and later.at_s > earlier.at_s
    ]
    quarter = len(flights) // 4
    if quarter == 0:
        return False
    return statistics.fmean(flights[-quarter:]) > _GROWN * statistics.fmean(flights[:quarter])


def _rate(looks: Sequence[SenderLook]) -> float:
    return 8.0 * (looks[-1].acked_bytes - looks[0].acked_bytes) / (looks[-1].at_s - looks[0].at_s)


def _marked_share(looks: Sequence[SenderLook]) -> float | None:
    """Of the segments delivered between the first look and the last; None where that is not known."""
    first, last = looks[0], looks[-1]
    if None in (first.delivered, last.delivered, first.delivered_marked, last.delivered_marked):
        return None
    delivered = (last.delivered or 0) - (first.delivered or 0)
    return ((last.delivered_marked or 0) - (first.delivered_marked or 0)) / delivered if delivered > 0 else None
