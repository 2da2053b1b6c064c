"""Whether values moved while a run went on: a trend over all of its runs, and the first third against the last. Pure.

Of many values some seem to drift by chance: all tests are corrected together (Holm), and how many were made is said.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from nicbench.stats.multiple import holm, worth_making
from nicbench.stats.rank_tests import mann_whitney
from nicbench.stats.ranks import RankTest
from nicbench.stats.sample import known
from nicbench.stats.series import Series
from nicbench.stats.trend import Slope, mann_kendall, sens_slope


@dataclass(frozen=True, slots=True)
class Tested:
    """A test and its p, corrected for all tests of all series."""

    test: RankTest
    p_corrected: float


@dataclass(frozen=True, slots=True)
class Drift:
    """Of one series. Changes are in percent of its median, None where that is 0 or nothing is known.

    ``over_run_percent`` is Sen's slope times the time from the first to the last value, with the ends of its interval;
    ``thirds_percent`` is the median of the last third less that of the first. A test that could not show anything, with
    so few or so equal values beside so many other tests, is not made (``None``), so that it costs the others nothing;
    ``note`` then says why.
    """

    name: str
    n: int
    slope: Slope | None
    over_run_percent: float | None
    over_run_lower_percent: float | None
    over_run_upper_percent: float | None
    trend: Tested | None
    third: int
    thirds_percent: float | None
    thirds: Tested | None
    note: str | None
    level_ratio: float

    @property
    def trend_is_shown(self) -> bool:
        """After the correction."""
        return self.trend is not None and self.trend.p_corrected <= self.level_ratio

    @property
    def thirds_differ(self) -> bool:
        """After the correction."""
        return self.thirds is not None and self.thirds.p_corrected <= self.level_ratio

    @property
    def is_shown(self) -> bool:
        """By either test."""
        return self.trend_is_shown or self.thirds_differ


@dataclass(frozen=True, slots=True)
class Drifts:
    """Of all series, in their order; ``tests`` is how many tests were made and corrected together."""

    all: tuple[Drift, ...]
    tests: int
    confidence_ratio: float

    @property
    def shown(self) -> tuple[Drift, ...]:
        """Those that drift."""
        return tuple(drift for drift in self.all if drift.is_shown)


def drifts(series: Iterable[Series], confidence_ratio: float = 0.95) -> Drifts:
    """Each series is one value of one configuration over its runs. ValueError where times do not rise."""
    level = round(1.0 - confidence_ratio, 12)
    many = [_Known(one) for one in series]
    tests = [one.trend for one in many] + [one.thirds for one in many]
    smallest = [1.0 if test is None else test.smallest_p or 0.0 for test in tests]
    made = [test if worth else None for test, worth in zip(tests, worth_making(smallest, level), strict=True)]
    corrected = iter(holm([test.p for test in made if test is not None]))
    tested = [None if test is None else Tested(test, next(corrected)) for test in made]
    found = [
        one.drift(tested[place], tested[len(many) + place], confidence_ratio, level) for place, one in enumerate(many)
    ]
    return Drifts(tuple(found), sum(test is not None for test in made), confidence_ratio)


class _Known:
    """What is known of a series, each value with its time."""

    def __init__(self, series: Series) -> None:
        times = range(len(series.values)) if series.times is None else series.times
        pairs = [
            (time, value)
            for time, value in zip(times, series.values, strict=True)
            if value is not None and known((value,))
        ]
        self.name = series.name
        self.times = [float(time) for time, _ in pairs]
        self.values = [float(value) for _, value in pairs]
        self.third = len(pairs) // 3
        self.first, self.last = self.values[: self.third], self.values[len(pairs) - self.third :]
        self.trend = mann_kendall(self.values) if self.values else None
        self.thirds = mann_whitney(self.last, self.first) if self.third else None

    def drift(self, trend: Tested | None, thirds: Tested | None, confidence: float, level: float) -> Drift:
        slope = sens_slope(self.times, self.values, confidence)
        change = statistics.median(self.last) - statistics.median(self.first) if self.third else None
        return Drift(
            name=self.name,
            n=len(self.values),
            slope=slope,
            over_run_percent=self._over_run(slope.estimate if slope else None),
            over_run_lower_percent=self._over_run(slope.lower if slope else None),
            over_run_upper_percent=self._over_run(slope.upper if slope else None),
            trend=trend,
            third=self.third,
            thirds_percent=self._percent(change),
            thirds=thirds,
            note=self._note(trend, thirds, level),
            level_ratio=level,
        )

    def _over_run(self, slope: float | None) -> float | None:
        return None if slope is None else self._percent(slope * (self.times[-1] - self.times[0]))

    def _percent(self, change: float | None) -> float | None:
        middle = abs(statistics.median(self.values)) if self.values else 0.0
        return None if change is None or middle == 0.0 else 100.0 * change / middle

    def _note(self, trend: Tested | None, thirds: Tested | None, level: float) -> str | None:
        if len(self.values) > 1 and min(self.values) == max(self.values):
            return "all values are the same"
        alone: list[str] = []
        beside: list[str] = []
        for name, made, test in (
            ("a trend", trend, self.trend),
            ("a difference between thirds", thirds, self.thirds),
        ):
            if made is None:
                (beside if test is not None and test.can_show(level) else alone).append(name)
        few = f"{len(self.values)} value{'' if len(self.values) == 1 else 's'}"
        told = [f"{' and '.join(alone)} could not be shown by {few}, whatever their order: not tested"] if alone else []
        if beside:
            told.append(f"{' and '.join(beside)} could not be shown by {few} beside so many other tests: not tested")
        return "; ".join(told) or None
