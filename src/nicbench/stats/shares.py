"""The interval of a share of which so many draws are known: exact, of the binomial distribution."""

from __future__ import annotations


def share_interval(hits: int, draws: int, confidence: float = 0.95) -> tuple[float, float]:
    """Lower and upper bound, 0..1, of a probability by which ``hits`` of ``draws`` came about (Clopper, Pearson 1934).

    It holds the true one with at least this confidence where each draw is independent of the others. Nothing is known
    of no draws: 0 to 1.
    """
    if not 0 <= hits <= draws:
        raise ValueError(f"{hits} of {draws} is no share")
    if draws == 0:
        return 0.0, 1.0
    from scipy.special import betaincinv  # here: most commands need none of it

    tail = (1.0 - confidence) / 2.0
    lower = 0.0 if hits == 0 else float(betaincinv(hits, draws - hits + 1, tail))
    upper = 1.0 if hits == draws else float(betaincinv(hits + 1, draws - hits, 1.0 - tail))
    return lower, upper
