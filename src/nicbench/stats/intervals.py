"""Confidence interval of a mean of few independent values, by Student's t, as netperf's ``-I`` has it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from nicbench.model.spread import MeanInterval


def mean_interval(values: Sequence[float], confidence_ratio: float, asked_ratio: float) -> MeanInterval:
    """The mean of ``values`` ± t * s / sqrt(n): t of n - 1 degrees of freedom, s with n - 1 in the divisor.

    It holds the true mean with this confidence where the values are independent and normally distributed (Student,
    "The probable error of a mean", Biometrika 6, 1908); of fewer than two there is none.
    """
    mean = statistics.fmean(values)
    if len(values) < 2:
        return MeanInterval(mean=mean, confidence_ratio=confidence_ratio, asked_ratio=asked_ratio)
    from scipy.special import stdtrit  # here: a run of a fixed number needs none of it

    deviation = statistics.stdev(values)
    half = 0.0
    if deviation > 0.0:
        quantile = float(stdtrit(len(values) - 1, (1.0 + confidence_ratio) / 2.0))
        half = quantile * deviation / math.sqrt(len(values))
    width_ratio = 0.0 if half == 0.0 else 2.0 * half / abs(mean) if mean != 0.0 else None
    return MeanInterval(
        mean=mean,
        lower=mean - half,
        upper=mean + half,
        width_ratio=width_ratio,
        confidence_ratio=confidence_ratio,
        asked_ratio=asked_ratio,
        reached=width_ratio is not None and width_ratio <= asked_ratio,
    )
