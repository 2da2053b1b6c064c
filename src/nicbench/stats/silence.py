"""How long connections stood still when a link failed, from looks at their bytes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

LEAST_BYTES: Final = 10_000
"""What moved less in a whole round only speaks about others (iperf3's control connection)."""


@dataclass(frozen=True, slots=True)
class Look:
    """Bytes of connections at one time, of both directions together, by what tells one connection from another."""

    at_s: float
    moved: Mapping[tuple[str, int, str, int], int]


@dataclass(frozen=True, slots=True)
class Silence:
    """Seconds: the longest without a byte while the link was down, and after it came back. None is unknown."""

    down_s: float | None
    back_s: float | None
    went_on: bool


def step_s(looks: Sequence[Look], from_s: float, until_s: float) -> float | None:
    """The most that two looks were apart in this time: no silence can be told from a shorter one than that."""
    times = [look.at_s for look in looks]
    steps = [later - earlier for earlier, later in pairwise(times) if later > from_s and earlier < until_s]
    return max(steps, default=None)


def silence_of(
    looks: Sequence[Look], key: tuple[str, int, str, int], down_s: float, up_s: float | None, until_s: float
) -> Silence | None:
    """Of one connection; None where it hardly moved before the link went down, or was not seen then.

    A silence begins at the last look at which bytes had come, at the earliest when the link went down, and ends at the
    first at which more had. ``until_s`` is when the round ended: nothing is asked of a connection after that.
    """
    seen = [(look.at_s, look.moved[key]) for look in looks if key in look.moved and look.at_s <= until_s]
    before = [moved for at_s, moved in seen if at_s <= down_s]
    if not before or max(before) < LEAST_BYTES:
        return None
    progress = [(earlier_s, at_s) for (earlier_s, earlier), (at_s, moved) in pairwise(seen) if moved > earlier]
    moments = [at_s for _, at_s in progress if at_s > down_s]
    back_s = until_s if up_s is None else min(up_s, until_s)
    ends = [at_s for at_s in moments if at_s <= back_s]
    later = [at_s for at_s in moments if at_s > back_s]
    # One that begins while the link is down lasts as long as it lasts, also beyond.
    first_later = later[:1] or [until_s]
    silent_down = _longest([down_s, *ends, *(first_later if not ends else [])])
    silent_back = (
        None if up_s is None or up_s >= until_s else _longest([back_s, *later, *([until_s] if not later else [])])
    )
    return Silence(down_s=silent_down, back_s=silent_back, went_on=bool(moments))


def _longest(times_s: Sequence[float]) -> float | None:
    gaps = [later - earlier for earlier, later in pairwise(times_s)]
    return max(gaps, default=None)
