"""To which digit figures are printed where zeros at the end are left out, as spreadsheets do: "25" among 25.1 and 24.9.

Only statistics over several rows need it: a sum of twelve such figures would else be known to 6 instead of 0.6.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import pstdev, stdev
from typing import Final, Literal

from nicbench.core.frozen import frozen
from nicbench.core.table import ImportStatistics, ImportTable
from nicbench.importing.plausible import EXACT, Comparison, Finding, Group, PlausibleRow
from nicbench.importing.rows import Figure
from nicbench.stats.sample import Range, find_deviation_range, find_median_range, find_sum_range

_FEWEST: Final = 6
"""Figures of a group that show how many digits it has; of fewer, the last printed one is the last."""

_SHARE: Final = 1.0 / 3.0
"""At least this share of the figures has the digit that all are taken to have.

One in ten ends with a zero by chance, but more than half of those that lie close about a round number.
"""


def restore_digits(
    rows: Sequence[PlausibleRow], values: Iterable[str], tells_apart: Sequence[str], places: Sequence[str]
) -> list[PlausibleRow]:
    """Returns the rows with the rounding that figures of these values have together with their like.

    Alike are figures of one value in the rows that differ in ``places`` alone; where those are too few, all figures of
    one unit there; and where even those are, figures of the value in all rows that have the same columns.
    """
    known = frozenset(values)
    groups: dict[Hashable, list[Figure]] = defaultdict(list)
    for one in rows:
        for value, figure in one.figures.items():
            if value in known:
                for group in _groups_of(one, value, figure, tells_apart, places):
                    groups[group].append(figure)
    decimals = {group: _decimals_by_magnitude(figures) for group, figures in groups.items()}

    def restored(one: PlausibleRow) -> dict[str, Figure]:
        return {
            value: _with_digits(
                figure, [decimals[group] for group in _groups_of(one, value, figure, tells_apart, places)]
            )
            if value in known
            else figure
            for value, figure in one.figures.items()
        }

    return [replace(one, figures=restored(one)) for one in rows]


def _groups_of(
    one: PlausibleRow, value: str, figure: Figure, tells_apart: Sequence[str], places: Sequence[str]
) -> tuple[Hashable, Hashable, Hashable]:
    block = one.group([name for name in tells_apart if name not in places])
    columns = tuple(name for name in tells_apart if one.has(name))
    texts = one.group([name for name in tells_apart if name in one.row.texts])
    unit = (figure.quantity, figure.printed.unit)
    return (
        ("value", value, unit, columns, block),
        ("unit", unit, columns, block),
        ("column", value, unit, columns, texts),
    )


def _decimals_by_magnitude(figures: Sequence[Figure]) -> Mapping[int | None, int] | None:
    """Returns the number of decimals by power of ten (None: of zero); None where the figures do not show it.

    Where the digits are significant ones, greater figures have fewer decimals: no figure gets more than one of its
    magnitude, or of a greater one, was printed with.
    """
    printed = [(_magnitude(figure), _decimals(figure)) for figure in figures if figure.value != 0.0]
    if len(printed) < _FEWEST:
        return None
    ranked = sorted((decimals for _, decimals in printed), reverse=True)
    shared = ranked[math.ceil(_SHARE * len(ranked)) - 1]
    found: dict[int | None, int] = {None: shared}
    most = 0
    for magnitude in sorted({magnitude for magnitude, _ in printed}, reverse=True):
        most = max(most, *(decimals for of, decimals in printed if of == magnitude))
        found[magnitude] = min(shared, most)
    return found


def _with_digits(figure: Figure, groups: Sequence[Mapping[int | None, int] | None]) -> Figure:
    """Returns the figure with the rounding of the first group that shows how many digits its figures have."""
    magnitude = None if figure.value == 0.0 else _magnitude(figure)
    for decimals in groups:
        if decimals is not None and magnitude in decimals:
            rounding = 0.5 * 10.0 ** -decimals[magnitude] * figure.scale
            return replace(figure, rounding=min(figure.rounding, rounding))
    return figure


def _magnitude(figure: Figure) -> int:
    return math.floor(math.log10(abs(figure.value / figure.scale)) + 1e-12)


def _decimals(figure: Figure) -> int:
    """Returns the decimals that were printed; negative ones count as none."""
    mantissa, _, exponent = figure.printed.text.lower().partition("e")
    return max(0, len(mantissa.partition(".")[2]) - int(exponent or 0))


@frozen
class Part:
    """What is known of one part, and the line that says so."""

    range: Range
    line: int


Sums = Mapping[str, Sequence[tuple[PlausibleRow, Part]]]
"""By value: sums that are known from parts, from a printed sum or from an average, each with a row of its whole."""


@dataclass(slots=True)
class Whole:
    """Parts by place, the rows that summarise them, and all rows that are about it."""

    like: PlausibleRow
    """A row of it, or of one of its parts."""
    parts: dict[object, Part] = field(default_factory=dict)
    rows: list[PlausibleRow] = field(default_factory=list)
    number: float | None = None
    """How many parts there are; None where nothing says so."""

    @property
    def is_complete(self) -> bool:
        """Whether all parts are known."""
        return bool(self.parts) and len(self.parts) == self.number


def range_of(figure: Figure) -> Range:
    """Returns the numbers that round to what is printed."""
    return Range(figure.value - figure.rounding, figure.value + figure.rounding)


def find_wholes(
    rule: ImportStatistics, rows: Sequence[PlausibleRow], tells_apart: Sequence[str], sums: Sums
) -> list[Whole]:
    """Returns the wholes of a rule; their parts are the ``sums`` of an earlier rule where it found such."""
    if rule.place is None:
        return [Whole(rows=[one], like=one, number=one.number(rule.number or "")) for one in rows]
    apart = {rule.place, *rule.below}
    alike = [name for name in tells_apart if name not in apart]
    found: dict[Group, Whole] = {}

    def group_of(one: PlausibleRow) -> Group:
        configuration, frame_bytes, link, *values = one.group(alike)
        speed = one.row.link.bits_per_s if one.row.link and rule.named is not None else link
        return (configuration, frame_bytes, speed, *values)

    for one, part in _find_parts(rule, rows, sums):
        below = tuple(one.row.texts.get(name) for name in rule.below) if rule.named else ()
        found.setdefault(group_of(one), Whole(like=one)).parts.setdefault((_place(rule, one), *below), part)
    for one in rows:
        group = group_of(one)
        if _summarises(rule, one, sums, has_parts=group in found):
            found.setdefault(group, Whole(like=one)).rows.append(one)
    numbers = {group_of(one): one.number(rule.number) for one in rows if rule.number and one.has(rule.number)}
    for group, whole in found.items():
        _leave_out_what_is_below(whole)
        whole.number = numbers.get(group) if rule.number else _number_of_places(rule, whole)
    return list(found.values())


def _find_parts(
    rule: ImportStatistics, rows: Sequence[PlausibleRow], sums: Sums
) -> Iterator[tuple[PlausibleRow, Part]]:
    if rule.part is not None and rule.part in sums:
        yield from ((one, part) for one, part in sums[rule.part] if _place(rule, one) is not None)
        return
    for one in rows:
        figure = one.figures.get(rule.part or "")
        if figure is not None and _is_part(rule, one):
            yield one, Part(range_of(figure), figure.cell.position.line)


def _place(rule: ImportStatistics, one: PlausibleRow) -> float | str | None:
    place = rule.place or ""
    return one.row.texts.get(place, one.number(place))


def _is_part(rule: ImportStatistics, one: PlausibleRow) -> bool:
    place = _place(rule, one)
    if rule.named is not None:
        return place is not None and not _is_named(rule, place) and all(one.has(name) for name in rule.if_said)
    return place is not None and not any(one.has(name) for name in rule.below)


def _is_named(rule: ImportStatistics, place: float | str | None) -> bool:
    return isinstance(place, str) and place.lower() == rule.named


def _summarises(rule: ImportStatistics, one: PlausibleRow, sums: Sums, *, has_parts: bool) -> bool:
    """Says whether what the row prints is over parts; a sum may also stand on the row of each part."""
    if rule.named is not None:
        return has_parts and _is_named(rule, _place(rule, one)) and all(one.has(name) for name in rule.if_said)
    if one.has(rule.place or ""):
        return rule.part != rule.total and rule.total is not None and _place(rule, one) is not None
    if any(one.has(name) for name in rule.below) or (rule.total is None and any(one.has(value) for value in sums)):
        return False
    if rule.of is not None and one.has(rule.of) and one.number(rule.of) is None:
        return False
    return has_parts or (rule.of is not None and (one.has(rule.of) or one.has(rule.total or "")))


def _leave_out_what_is_below(whole: Whole) -> None:
    """Leaves out the clients of ports where the ports themselves are printed."""
    whole_places = {place for place in whole.parts if isinstance(place, tuple) and not any(place[1:])}
    if whole_places:
        whole.parts = {place: part for place, part in whole.parts.items() if place in whole_places}


def _number_of_places(rule: ImportStatistics, whole: Whole) -> float | None:
    """Returns how many parts there are by their places: counted from 1 without a gap, or all ports of the link."""
    places = {place[0] for place in whole.parts if isinstance(place, tuple)}
    count = len(places)
    if rule.named is not None:
        ports = next((one.row.link.ports for one in whole.rows if one.row.link), None)
        return len(whole.parts) if count > 1 and ports in (None, 1, count) else None
    return count if count > 1 and places == set(range(1, count + 1)) else None


Divisor = Literal["n", "n - 1"]
_DIVISORS: Final = ("n", "n - 1")
_ROLES: Final = ("total", "average", "median", "deviation", "minimum", "maximum")


@frozen
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
    known = find_sum_range(_ranges(whole)) if whole.is_complete else None
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
