"""Finds which rows of a table are parts of which: the instances of a run, the runs of a summary, the ports of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nicbench.core.table import ImportStatistics
from nicbench.importing.across_rows import Group, PlausibleRow
from nicbench.importing.rows import Figure
from nicbench.stats.sample import Range


@dataclass(frozen=True, slots=True)
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
