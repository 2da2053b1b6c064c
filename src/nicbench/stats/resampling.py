"""The draws of a bootstrap: which values of a sample each resample has; the same for the same seed. Pure.

Values are sorted before they are drawn from, so that their order does not matter, and equal sizes share their draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
RESAMPLES: Final = 10_000
"""Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, take 1000 to 2000 for the ends of an interval."""
_MOST_AT_ONCE: Final = 4_000_000
"""Of draws: what bounds the memory of samples of many values (32 MB)."""


def places(n: int, resamples: int, seed: int) -> Iterator[Places]:
    """Blocks of rows; each row is one resample: ``n`` places (0..n - 1) drawn with replacement.

    The second half of the rows is the first seen in a mirror (the least value for the greatest): an antithetic
    bootstrap (Hall, "Antithetic resampling for the bootstrap", Biometrika 76, 1989), in which an interval of values
    with their signs turned round is exactly the interval turned round.
    """
    for block in _drawn(n, resamples // 2, seed):
        yield block
    for block in _drawn(n, resamples // 2, seed):
        yield n - 1 - block


@lru_cache(maxsize=64)
def middle_places(n: int, resamples: int, seed: int, *, mirrored: bool) -> tuple[Places, Places]:
    """Of each resample of ``n`` sorted values, the places of its two middle ones (the same one where n is odd)."""
    middles = ((n - 1) // 2, n // 2)
    blocks = places(n, resamples, seed) if mirrored else _drawn(n, resamples, seed)
    found = [np.partition(block, middles, axis=1)[:, middles] for block in blocks]
    both = np.concatenate(found)
    lower, upper = both[:, 0].copy(), both[:, 1].copy()
    lower.flags.writeable = upper.flags.writeable = False
    return lower, upper


def _drawn(n: int, rows: int, seed: int) -> Iterator[Places]:
    # RandomState: its draws never change (NumPy's NEP 19), those of a Generator may from version to version.
    state = np.random.RandomState([seed % 2**32, (seed >> 32) % 2**32, n])
    at_once = max(1, _MOST_AT_ONCE // n)
    for begin in range(0, rows, at_once):
        yield np.floor(state.random_sample((min(at_once, rows - begin), n)) * n).astype(np.int64)
