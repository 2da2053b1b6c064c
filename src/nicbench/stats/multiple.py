"""Many tests at once: which are worth making, and p-values corrected so that chance rarely shows any. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """In the order given: the k-th smallest of m times (m - k + 1), never below the one before it, at most 1.

    Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979.
    Rejecting those at most 5 % shows anything false in at most 5 % of such families, however the tests depend on one
    another.
    """
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = least
    return tuple(corrected)


def worth_making(smallest_p: Sequence[float], level_ratio: float) -> tuple[bool, ...]:
    """Of tests with so small a p at best: those that could still show something among the others that could.

    There are at most k of them, each with a smallest p of at most level / k; the others, corrected, could show nothing
    in any outcome, and left out they cost the rest nothing. Smallest p-values hang on the values alone, not on their
    order. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46, 1990.
    """
    k = 1
    while sum(p <= level_ratio / k for p in smallest_p) > k:
        k += 1
    return tuple(p <= level_ratio / k for p in smallest_p)
