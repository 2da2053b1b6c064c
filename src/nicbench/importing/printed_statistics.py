"""Holds printed sums, averages, medians, deviations, minima and maxima against the figures that they summarise.

Every figure stands for all numbers that round to it. A statistic is wrong where none of them have it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import pstdev, stdev
from typing import Final, Literal

from nicbench.core.table import ImportStatistics, ImportTable
from nicbench.importing.across_rows import PlausibleRow
from nicbench.importing.digits import restore_digits
from nicbench.importing.plausible import EXACT, Comparison, Finding
from nicbench.importing.rows import Figure
from nicbench.importing.wholes import Part, Whole, find_wholes, range_of
from nicbench.stats.sample import Range, find_deviation_range, find_median_range, find_sum_range

Divisor = Literal["n", "n - 1"]
_DIVISORS: Final[tuple[Divisor, ...]] = ("n", "n - 1")
_ROLES: Final = ("total", "average", "median", "deviation", "minimum", "maximum")


@dataclass(frozen=True, slots=True)
class _Deviation:
    """A printed standard deviation of ``parts``, and what it can be by each divisor."""

    index: int
    value: str
    figure: Figure
    parts: str
    ranges: Mapping[Divisor, Range]
    computed: Mapping[Divisor, float | None]
    reason: str

    def fits(self, divisor: Divisor) -> bool:
        return _agree(range_of(self.figure), self.ranges[divisor])


@dataclass(slots=True)
class _Statistics:
    """The comparisons made so far, the sums known, and the deviations, judged when their divisor is known."""

    made: list[tuple[int, Comparison]] = field(default_factory=list)
    sums: dict[str, list[tuple[PlausibleRow, Part]]] = field(default_factory=lambda: defaultdict(list))
    deviations: list[_Deviation] = field(default_factory=list)


def compare_statistics(rows: Sequence[PlausibleRow], table: ImportTable) -> list[tuple[int, Comparison]]:
    """Makes every comparison of printed statistics that the table allows, each with the index of its row."""
    found = _Statistics()
    tells_apart = [column.value for column in table.columns if column.tells_apart]
    places = [rule.place for rule in table.statistics if rule.place is not None]
    for rule in table.statistics:
        values = [value for role in _ROLES if (value := getattr(rule, role)) is not None]
        precise = restore_digits(rows, [*values, rule.part or ""], tells_apart, places)
        for whole in find_wholes(rule, precise, tells_apart, found.sums):
            _compare_whole(rule, whole, found)
    _judge_deviations(found)
    return found.made


def _compare_whole(rule: ImportStatistics, whole: Whole, found: _Statistics) -> None:
    """Compares all rows about one whole; what is known of its sum afterwards is a part of later rules.

    Where figures contradict one another the sum is the one that is printed, or else that of the parts.
    """
    known: Range | None = find_sum_range(_ranges(whole)) if whole.is_complete else None
    for one in whole.rows:
        total = _WholeRow(rule, whole, one, found).compare(known)
        if known is not None and total is not None:
            known = known.intersect(total) if _agree(known, total) else total
        known = known or total
    if known is not None and rule.total is not None and rule.part != rule.total:
        line = whole.rows[0].row.line if whole.rows else whole.like.row.line
        found.sums[rule.total].append((whole.like, Part(known, line)))


def _ranges(whole: Whole) -> list[Range]:
    return [part.range for part in whole.parts.values()]


@dataclass(slots=True)
class _WholeRow:
    """One row that prints statistics of a whole."""

    rule: ImportStatistics
    whole: Whole
    one: PlausibleRow
    found: _Statistics

    def compare(self, known: Range | None) -> Range | None:
        """Makes every comparison; returns what the sum can be by this row, and by what was ``known`` of it before."""
        total = self._compare_sum(known)
        self._compare_others(total)
        return total

    def _compare_sum(self, known: Range | None) -> Range | None:
        """Compares the sum with the parts, and the average with both; returns what the sum can then be."""
        total = self._figure("total")
        if total is None:
            return self._compare_average(known, known, is_of_parts=self.whole.is_complete)
        printed = range_of(total)
        if self.whole.parts:
            expected = find_sum_range(_ranges(self.whole))
            computed = expected.middle
            if not self.whole.is_complete:  # what is not known adds to it
                expected = Range(expected.least, math.inf)
            what, reason = f"sums with their {self.rule.parts}", f"{self._which()} make another"
            self._compare("total", total, expected, computed, what, reason)
        if known is None:
            return self._compare_average(printed, printed, is_of_parts=False)
        if not _agree(known, printed):
            return self._compare_average(known, printed, is_of_parts=self.whole.is_complete)
        both = known.intersect(printed)
        return self._compare_average(both, both, is_of_parts=self.whole.is_complete)

    def _compare_average(self, total: Range | None, possible: Range | None, *, is_of_parts: bool) -> Range | None:
        """Compares the average with the ``total``; returns what the sum can be, which was ``possible`` without it."""
        average, number = self._figure("average"), self.whole.number
        if average is None or number is None or number < 1:
            return possible
        by_average = range_of(average).scale(number)
        if total is None or possible is None:
            return by_average
        what, reason = f"averages with their {self.rule.parts}", f"{self._which() if is_of_parts else ''} have another"
        printed = self._figure("total")
        if not is_of_parts or (printed and _agree(by_average, find_sum_range(_ranges(self.whole)))):
            summed = printed.words() if printed else average.words(total.middle)
            reason = f"{self._counted(number)} with a sum of {summed} have another"
        if not is_of_parts:
            what = f"averages with the sums of their {self.rule.parts}"
        expected = total.scale(1.0 / number)
        if self._compare("average", average, expected, expected.middle, what, reason):
            return possible.intersect(by_average) if _agree(possible, by_average) else possible
        return possible

    def _compare_others(self, total: Range | None) -> None:
        """Compares median, minimum, maximum and standard deviation with the parts, or with what the row prints."""
        ranges = _ranges(self.whole) if self.whole.is_complete else []
        if not ranges and self.whole.number == 1 and total is not None:
            ranges = [total]
        which = self._which() if self.whole.parts else self._counted(self.whole.number)
        if ranges:
            lowest = Range(min(one.least for one in ranges), min(one.most for one in ranges))
            highest = Range(max(one.least for one in ranges), max(one.most for one in ranges))
            for role, noun, expected in (
                ("median", "medians", find_median_range(ranges)),
                ("minimum", "minima", lowest),
                ("maximum", "maxima", highest),
            ):
                figure = self._figure(role)
                if figure is not None:
                    what, reason = f"{noun} with their {self.rule.parts}", f"{which} have another"
                    self._compare(role, figure, expected, expected.middle, what, reason)
        self._note_deviation(ranges, which)

    def _note_deviation(self, ranges: Sequence[Range], which: str) -> None:
        deviation, number = self._figure("deviation"), self.whole.number
        if deviation is None or number is None:
            return
        reason = f"{which} have another"
        if number == 1:
            what, nothing = f"standard deviations of one {self.rule.parts.removesuffix('s')} with 0", Range(0.0, 0.0)
            self._compare(
                "deviation",
                deviation,
                nothing,
                0.0,
                what,
                f"of one {self.rule.parts.removesuffix('s')} nothing deviates",
            )
            return
        computed: dict[Divisor, float | None] = dict.fromkeys(_DIVISORS)
        if ranges:
            count = len(ranges)
            middles = [one.middle for one in ranges]
            of_each: dict[Divisor, Range] = {"n": find_deviation_range(ranges, count)}
            of_each["n - 1"] = find_deviation_range(ranges, count - 1)
            computed = {"n": pstdev(middles), "n - 1": stdev(middles)}
        else:
            bounds = self._bounds(number)
            if bounds is None:
                return
            of_each = {"n": bounds, "n - 1": bounds.scale(math.sqrt(number / (number - 1)))}
            reason = f"{self._counted(number)} between this minimum and this maximum have another"
        value = self.rule.deviation or ""
        self.found.deviations.append(
            _Deviation(self.one.index, value, deviation, self.rule.parts, of_each, computed, reason)
        )

    def _bounds(self, number: float) -> Range | None:
        """Returns what minimum, average and maximum leave of a population's deviation (Popoviciu, Bhatia, Davis)."""
        minimum, average, maximum = (self._figure(role) for role in ("minimum", "average", "maximum"))
        if minimum is None or maximum is None or number < 2:
            return None
        low, high = range_of(minimum).least, range_of(maximum).most
        middle = (low + high) / 2.0
        if average is not None:
            middle = min(max(middle, range_of(average).least), range_of(average).most)
        most = math.sqrt(max(0.0, (high - middle) * (middle - low)))
        least = max(0.0, range_of(maximum).least - range_of(minimum).most) / math.sqrt(2.0 * number)
        return Range(least, max(least, most))

    def _figure(self, role: str) -> Figure | None:
        return self.one.figures.get(getattr(self.rule, role) or "")

    def _which(self) -> str:
        """Names the parts: "12 instances, the first on line 2,"."""
        known, number = len(self.whole.parts), self.whole.number
        counted = self._counted(known)
        if not self.whole.is_complete:
            of_all = "" if number is None else f" of {number:g}"
            counted = f"{known} known ones{of_all} {self.rule.parts}"
        return f"{counted}, the first on line {min(part.line for part in self.whole.parts.values())},"

    def _counted(self, number: float | None) -> str:
        return f"1 {self.rule.parts.removesuffix('s')}" if number == 1 else f"{number or 0:g} {self.rule.parts}"

    def _compare(self, role: str, figure: Figure, expected: Range, computed: float, what: str, reason: str) -> bool:
        """Adds the comparison, and returns whether the figure can be so."""
        agrees = _agree(range_of(figure), expected)
        value = getattr(self.rule, role)
        finding = None if agrees else Finding(value, figure, figure.words(computed), reason)
        self.found.made.append((self.one.index, Comparison(what, finding)))
        return agrees


def _judge_deviations(found: _Statistics) -> None:
    """Takes the divisor that contradicts the fewest deviations of the file; of equals, the population's."""
    wrong = {divisor: sum(not one.fits(divisor) for one in found.deviations) for divisor in _DIVISORS}
    divisor: Divisor = "n - 1" if wrong["n - 1"] < wrong["n"] else "n"
    kind = {"n": "the population’s, divisor n", "n - 1": "the sample’s, divisor n - 1"}[divisor]
    if wrong["n"] == wrong["n - 1"]:
        kind = "divisor n or n - 1, which the digits do not tell"
    for one in found.deviations:
        value = one.computed[divisor]
        computed = None if value is None else one.figure.words(value)
        finding = None if one.fits(divisor) else Finding(one.value, one.figure, computed, one.reason)
        found.made.append((one.index, Comparison(f"standard deviations with their {one.parts} ({kind})", finding)))


def _agree(first: Range, second: Range) -> bool:
    ends = (abs(end) for end in (first.least, first.most, second.least, second.most) if math.isfinite(end))
    return first.overlaps(second, EXACT * max(ends, default=0.0))
