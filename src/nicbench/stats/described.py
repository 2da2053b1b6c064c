"""One value over the runs of a configuration, described: the record of summary.json, from the numbers. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.model.statistics import FoundInterval, OutlierRun, RunStatistics
from nicbench.stats.bootstrap import Asked, Interval, of_mean, of_median
from nicbench.stats.outliers import outliers
from nicbench.stats.sample import Values, describe


def described(runs: Sequence[int], values: Values, asked: Asked) -> RunStatistics | None:
    """``runs`` are the numbers of the runs, in the order of their values; None where no value is known."""
    sample = describe(values)
    if sample.mean is None or sample.median is None or sample.minimum is None or sample.maximum is None:
        return None
    far = outliers(values)
    return RunStatistics(
        n=sample.n,
        mean=sample.mean,
        median=sample.median,
        minimum=sample.minimum,
        maximum=sample.maximum,
        sample_standard_deviation=sample.sample_standard_deviation,
        population_standard_deviation=sample.population_standard_deviation,
        coefficient_of_variation=sample.coefficient_of_variation,
        median_interval=_found(of_median(values, asked)),
        mean_interval=_found(of_mean(values, asked)),
        outliers=tuple(OutlierRun(run=runs[one.place], value=one.value) for one in far.found),
        outlier_rule=far.rule.value,
        outlier_note=far.note,
    )


def _found(interval: Interval) -> FoundInterval:
    return FoundInterval(
        lower=interval.lower,
        upper=interval.upper,
        confidence_ratio=interval.confidence_ratio,
        method=interval.method.value,
        resamples=interval.resamples,
        seed=interval.seed,
        notes=interval.notes,
    )
