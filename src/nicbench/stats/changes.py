"""Where the level of a series changes, by jumpavg: the grouping of the shortest description (FD.io CSIT uses it).

jumpavg takes each group of successive values for a Gaussian population and finds the groups that need the fewest bits
to write down (minimum message length, https://pypi.org/project/jumpavg). It proposes; whether a change may be claimed
is decided elsewhere (``compare/history/trends.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

MOST_GROUPED: Final = 150
"""jumpavg takes time by the square of its values: of a longer series it is given means of successive ones."""
_LEVEL: Final = 20.0
"""The lowest value, in ranges of the series.

How many bits a group needs depends on the level of its values; so every series is put at the level at which noise alone
is least often taken for a change, which makes what is found independent of unit, offset and direction.
"""


def split_at_changes(values: Sequence[float]) -> tuple[int, ...]:
    """Returns the places at which a new level begins, ascending; none of fewer than two different values."""
    if len(values) < 2 or max(values) == min(values):
        return ()
    from jumpavg import classify  # imported here: only trends need it

    lowest, span = min(values), max(values) - min(values)
    scaled = [_LEVEL + (value - lowest) / span for value in values]
    size = -(-len(scaled) // MOST_GROUPED)
    parts = [scaled[begin : begin + size] for begin in range(0, len(scaled), size)]
    found, at = [], 0
    for group in classify([sum(part) / len(part) for part in parts]):
        at += group.stats.size
        found.append(min(at * size, len(scaled)))
    return _settle(scaled, found[:-1], size) if size > 1 else tuple(found[:-1])


def _settle(values: Sequence[float], places: Sequence[int], reach: int) -> tuple[int, ...]:
    """Moves places that are known to ``reach`` values to where both sides lie nearest to their own means."""
    import numpy as np  # imported here, as above

    sums = np.concatenate(([0.0], np.cumsum(values)))
    settled = [0]
    for place, after in pairwise([*places, len(values)]):
        before = settled[-1]
        tried = np.arange(max(before + 1, place - reach), min(place + reach, after - 1) + 1)
        left, right = sums[tried] - sums[before], sums[after] - sums[tried]
        # The squares of all values are the same at every place: the least scatter is the most of these.
        explained = left**2 / (tried - before) + right**2 / (after - tried)
        settled.append(int(tried[int(np.argmax(explained))]))
    return tuple(settled[1:])
