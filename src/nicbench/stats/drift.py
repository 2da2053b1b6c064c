"""Tests whether values rise or fall during a run, and how fast: Mann-Kendall, Sen's slope, and thirds of a run.

Mann, "Nonparametric tests against trend", Econometrica 13, 1945; Kendall, "Rank Correlation Methods", 1975; Sen,
"Estimates of the regression coefficient based on Kendall's tau", JASA 63, 1968. Up to 50 values p and the slope's
interval are exact: the orders of the same values, equal ones included, are counted by their inversions (MacMahon,
"Combinatory Analysis", 1915). SciPy's ``kendalltau`` is exact only without ties and has no correction for continuity,
and the interval of its ``theilslopes`` is an approximation. The values must be independent apart from a trend: where
each depends on the one before, p comes out too small. All pairs are compared, which suits some hundreds of runs.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nicbench.core.frozen import frozen
from nicbench.core.units import count_of
from nicbench.stats.compare import Exactness, RankTest, correct_by_holm, mann_whitney, select_worthwhile
from nicbench.stats.sample import Series, known_numbers

MANN_KENDALL: Final = "Mann-Kendall"
_EXACT_UP_TO: Final = 50


@frozen
class Slope:
    """Sen's slope: the median slope between any two values, per unit of time; ends are ``None`` for too few values."""

    estimate: float
    lower: float | None
    upper: float | None


def mann_kendall(values: Sequence[float]) -> RankTest:
    """Tests for a trend. S is the number of rising pairs, in the order of time, less that of falling ones.

    Raises ValueError without values.
    """
    n = len(values)
    if not n:
        raise ValueError("a trend needs values")
    s = int(np.sign(_differences(values)).sum())
    tied = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)[1].tolist()
    if n <= _EXACT_UP_TO:
        counts = _inversions(tied)
        most = len(counts) - 1  # the most inversions, and so the greatest S
        total = sum(counts)
        extreme = sum(count for inversions, count in enumerate(counts) if abs(most - 2 * inversions) >= abs(s))
        return RankTest(MANN_KENDALL, s, extreme / total, Exactness.EXACT, 1.0 if most == 0 else 2 * counts[0] / total)
    variance = _variance(n, tied)
    if variance <= 0.0:
        return RankTest(MANN_KENDALL, s, 1.0, Exactness.APPROXIMATE, 1.0)
    p = math.erfc(max(0, abs(s) - 1) / math.sqrt(2.0 * variance))  # the continuity correction is 1
    return RankTest(MANN_KENDALL, s, p, Exactness.APPROXIMATE, None)


def sens_slope(times: Sequence[float], values: Sequence[float], confidence_ratio: float = 0.95) -> Slope | None:
    """Computes Sen's slope; None for fewer than two values. Raises ValueError where the times do not rise.

    The interval's ends are those ordered slopes between which the trend lies with at least this confidence (Hollander,
    Wolfe and Chicken 2014, section 9.3).
    """
    if len(times) != len(values) or any(later <= earlier for earlier, later in itertools.pairwise(times)):
        raise ValueError("a slope needs a time for each value, each later than the one before")
    n = len(values)
    if n < 2:
        return None
    slopes = np.sort(_differences(values) / _differences(times))
    left_out = _slopes_left_out(n, (1.0 - confidence_ratio) / 2.0)
    ends = (float(slopes[left_out - 1]), float(slopes[-left_out])) if left_out else (None, None)
    return Slope(float(np.median(slopes)), *ends)


def _differences(values: Sequence[float]) -> NDArray[np.float64]:
    """Returns every later value less every earlier one."""
    earlier, later = np.triu_indices(len(values), k=1)
    array = np.asarray(values, dtype=np.float64)
    return np.asarray(array[later] - array[earlier])


def _slopes_left_out(n: int, tail: float) -> int:
    """Counts the slopes outside the interval on each side, its end included: those no more probable than the tail."""
    if n > _EXACT_UP_TO:
        pairs = n * (n - 1) // 2
        reach = NormalDist().inv_cdf(1.0 - tail) * math.sqrt(_variance(n, []))
        return max(0, math.floor((pairs - reach) / 2.0))
    counts = _inversions([1] * n)
    bound = tail * math.factorial(n)
    return sum(summed <= bound for summed in itertools.accumulate(counts))


def _inversions(tied: Sequence[int]) -> list[int]:
    """Counts the orders of the values by their number of inversions; ``tied`` has the sizes of groups of equal values.

    Each value of a group of t that joins m others multiplies the generating function by (1 - q^(m+i)) / (1 - q^i), i =
    1..t.
    """
    counts, together = [1], 0
    for size in tied:
        degree = len(counts) - 1 + together * size
        counts = counts + [0] * (degree + 1 - len(counts))
        # Factors that cancel later may exceed the degree for a while; those higher terms never affect the lower ones.
        for added in range(1, size + 1):
            for power in range(degree, together + added - 1, -1):
                counts[power] -= counts[power - together - added]
            for power in range(added, degree + 1):
                counts[power] += counts[power - added]
        together += size
    return counts


def _variance(n: int, tied: Sequence[int]) -> float:
    """Returns the variance of S without a trend, corrected for ties (Kendall 1975)."""
    return (n * (n - 1) * (2 * n + 5) - sum(tie * (tie - 1) * (2 * tie + 5) for tie in tied)) / 18.0


@frozen
class CorrectedTest:
    """A test and its p, corrected for all tests of all series."""

    test: RankTest
    p_corrected: float


@frozen
class Drift:
    """The drift of one series. Changes are in percent of its median, None where that is 0 or unknown.

    ``over_run_percent`` is Sen's slope times the time from the first to the last value, with the ends of its interval;
    ``thirds_percent`` is the median of the last third less that of the first. A test that could not show anything, for
    lack of different values and the number of other tests, is not made (``None``), so that the correction of the
    others is less harsh; ``note`` then says why.
    """

    name: str
    n: int
    slope: Slope | None
    over_run_percent: float | None
    over_run_lower_percent: float | None
    over_run_upper_percent: float | None
    trend: CorrectedTest | None
    third: int
    thirds_percent: float | None
    thirds: CorrectedTest | None
    note: str | None
    level_ratio: float

    @property
    def trend_is_shown(self) -> bool:
        """Whether the trend is significant after the correction."""
        return self.trend is not None and self.trend.p_corrected <= self.level_ratio

    @property
    def thirds_differ(self) -> bool:
        """Whether the thirds differ significantly after the correction."""
        return self.thirds is not None and self.thirds.p_corrected <= self.level_ratio

    @property
    def is_shown(self) -> bool:
        """Whether either test shows a drift."""
        return self.trend_is_shown or self.thirds_differ


@frozen
class Drifts:
    """The drifts of all series, in their order; ``tests`` is how many tests were made and corrected together."""

    all: tuple[Drift, ...]
    tests: int
    confidence_ratio: float

    @property
    def shown(self) -> tuple[Drift, ...]:
        """The drifts that are shown."""
        return tuple(drift for drift in self.all if drift.is_shown)


def find_drifts(series: Iterable[Series], confidence_ratio: float = 0.95) -> Drifts:
    """Tests each series, one value of one configuration over its runs. Raises ValueError where times do not rise."""
    level = round(1.0 - confidence_ratio, 12)
    known_series = [_KnownSeries(one) for one in series]
    tests = [one.trend for one in known_series] + [one.thirds for one in known_series]
    smallest = [1.0 if test is None else test.smallest_p or 0.0 for test in tests]
    made = [test if worth else None for test, worth in zip(tests, select_worthwhile(smallest, level), strict=True)]
    corrected = iter(correct_by_holm([test.p for test in made if test is not None]))
    tested = [None if test is None else CorrectedTest(test, next(corrected)) for test in made]
    found = [
        one.drift(tested[place], tested[len(known_series) + place], confidence_ratio, level)
        for place, one in enumerate(known_series)
    ]
    return Drifts(tuple(found), sum(test is not None for test in made), confidence_ratio)


class _KnownSeries:
    """The known values of a series with their times."""

    def __init__(self, series: Series) -> None:
        times = range(len(series.values)) if series.times is None else series.times
        pairs = [
            (time, value)
            for time, value in zip(times, series.values, strict=True)
            if value is not None and known_numbers((value,))
        ]
        self.name = series.name
        self.times = [float(time) for time, _ in pairs]
        self.values = [float(value) for _, value in pairs]
        self.third = len(pairs) // 3
        self.first, self.last = self.values[: self.third], self.values[len(pairs) - self.third :]
        self.trend = mann_kendall(self.values) if self.values else None
        self.thirds = mann_whitney(self.last, self.first) if self.third else None

    def drift(
        self, trend: CorrectedTest | None, thirds: CorrectedTest | None, confidence: float, level: float
    ) -> Drift:
        slope = sens_slope(self.times, self.values, confidence)
        change = statistics.median(self.last) - statistics.median(self.first) if self.third else None
        return Drift(
            name=self.name,
            n=len(self.values),
            slope=slope,
            over_run_percent=self._change_over_run(slope.estimate if slope else None),
            over_run_lower_percent=self._change_over_run(slope.lower if slope else None),
            over_run_upper_percent=self._change_over_run(slope.upper if slope else None),
            trend=trend,
            third=self.third,
            thirds_percent=self._percent(change),
            thirds=thirds,
            note=self._note(trend, thirds, level),
            level_ratio=level,
        )

    def _change_over_run(self, slope: float | None) -> float | None:
        return None if slope is None else self._percent(slope * (self.times[-1] - self.times[0]))

    def _percent(self, change: float | None) -> float | None:
        middle = abs(statistics.median(self.values)) if self.values else 0.0
        return None if change is None or middle == 0.0 else 100.0 * change / middle

    def _note(self, trend: CorrectedTest | None, thirds: CorrectedTest | None, level: float) -> str | None:
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
        few = count_of(len(self.values), "value")
        notes = (
            [f"{' and '.join(alone)} could not be shown by {few}, whatever their order: not tested"] if alone else []
        )
        if beside:
            notes.append(f"{' and '.join(beside)} could not be shown by {few} beside so many other tests: not tested")
        return "; ".join(notes) or None


# Where the level of a series changes, by jumpavg: the grouping of the shortest description (FD.io CSIT uses it).
#
# jumpavg takes each group of successive values for a Gaussian population and finds the groups that need the fewest
# bits to write down (minimum message length, https://pypi.org/project/jumpavg). It proposes; whether a change may be
# claimed is decided elsewhere (``compare/history/trends.py``).


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
