"""What rows say of one another: sums that are not those of their parts, and shares that should be the same. Pure.

Two rows contradict each other only where no numbers that round to theirs would agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.importing.plausible import Finding
from nicbench.importing.rows import Figure, ReadRow
from nicbench.model.import_table import ImportShare, ImportTable, ImportTotal
from nicbench.problems import Problem

_EXACT: Final = 1e-9
"""For the arithmetic itself, relatively."""

Group = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Right:
    """A row without the figures that cannot be so by themselves."""

    row: ReadRow
    figures: dict[str, Figure]

    def number(self, value: str) -> float | None:
        figure = self.figures.get(value)
        return figure.value if figure else None

    def group(self, values: Sequence[str]) -> Group:
        row = self.row
        said = [self.number(value) if value in row.figures else row.texts.get(value) for value in values]
        return (row.configuration, row.frame_bytes, row.link, *said)


def wrong_totals(
    rows: Sequence[ReadRow], findings: Sequence[Sequence[Finding]], table: ImportTable
) -> list[list[Finding]]:
    """The findings of each row, and behind them the totals that are not the sum of their parts."""
    found = [list(of_row) for of_row in findings]
    right = _right(rows, findings)
    for rule in table.totals:
        for index, finding in _of_totals(right, rule, table):
            found[index].append(finding)
    return found


def contradicting_shares(
    rows: Sequence[ReadRow], findings: Sequence[Sequence[Finding]], table: ImportTable
) -> list[Problem]:
    """A problem for each row whose share is another than that of the rows before it."""
    right = _right(rows, findings)
    return [problem for rule in table.same_shares for problem in _of_shares(right, rule)]


def _right(rows: Sequence[ReadRow], findings: Sequence[Sequence[Finding]]) -> list[_Right]:
    wrong = [{finding.value for finding in of_row} for of_row in findings]
    return [
        _Right(row, {value: figure for value, figure in row.figures.items() if value not in of_row})
        for row, of_row in zip(rows, wrong, strict=True)
    ]


def _of_totals(rows: Sequence[_Right], rule: ImportTotal, table: ImportTable) -> Iterator[tuple[int, Finding]]:
    """Of parts that are not all known the sum is at least that of those that are: none is negative."""
    alike = [column.value for column in table.columns if column.tells_apart and column.value != rule.place]
    parts: dict[Group, list[Figure]] = {}
    for one in rows:
        if one.number(rule.place) is not None and rule.part in one.figures:
            parts.setdefault(one.group(alike), []).append(one.figures[rule.part])
    for index, one in enumerate(rows):
        total, number = one.figures.get(rule.total), one.number(rule.number)
        known = parts.get(one.group(alike), [])
        if total is None or number is None or not known:
            continue
        computed = math.fsum(part.value for part in known)
        slack = total.rounding + math.fsum(part.rounding for part in known) + computed * _EXACT
        is_complete = len(known) == number
        if total.value < computed - slack or (is_complete and total.value > computed + slack):
            which = f"{len(known)}" if is_complete else f"{len(known)} known ones of {number:g}"
            reason = f"{which} {rule.number}, the first on line {known[0].cell.position.line}, make another"
            yield index, Finding(rule.total, total, total.words(computed), reason)


def _of_shares(rows: Sequence[_Right], rule: ImportShare) -> Iterator[Problem]:
    """``least`` and ``most`` are what all rows of a group until now allow."""
    allowed: dict[Group, tuple[float, float, Figure]] = {}
    for one in rows:
        figure, number = one.figures.get(rule.value), one.number(rule.number)
        if figure is None or number is None:
            continue
        of = 1.0 if rule.place in one.row.figures else number
        least, most = (figure.value - figure.rounding) / of, (figure.value + figure.rounding) / of
        group = one.group(rule.among)
        known_least, known_most, first = allowed.get(group, (least, most, figure))
        if least > known_most * (1.0 + _EXACT) or most < known_least * (1.0 - _EXACT):
            each = figure.words(figure.value / of)
            what = f"{figure.name} {figure.words()} is {each} for each of {of:g}"
            other = f"which contradicts line {first.cell.position.line}"
            yield Problem(figure.cell.position, f"{what}, {other}", rule.hint)
            continue
        allowed[group] = (max(least, known_least), min(most, known_most), first)
