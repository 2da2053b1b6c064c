"""Compares rows of a table with one another: which are alike, and whether targets of theirs agree.

Two rows contradict each other only where no numbers that round to theirs would agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nicbench.core.errors import Problem
from nicbench.core.table import ImportShare, ImportTable
from nicbench.importing.plausible import EXACT, Finding
from nicbench.importing.rows import Figure, ReadRow

Group = tuple[object, ...]
"""What rows must share to be compared: configuration, frame size, link, and further values."""


@dataclass(frozen=True, slots=True)
class PlausibleRow:
    """A row (the ``index``-th) without the figures that are implausible by themselves."""

    index: int
    row: ReadRow
    figures: dict[str, Figure]

    def number(self, value: str | None) -> float | None:
        """Returns the number of a value; None where there is none that is plausible."""
        figure = self.figures.get(value or "")
        return figure.value if figure else None

    def has(self, value: str) -> bool:
        """Says whether the row has anything in this column, plausible or not."""
        return value in self.row.figures or value in self.row.texts

    def group(self, values: Iterable[str]) -> Group:
        """Returns the values by which the row is told apart from those that it is not compared with."""
        row = self.row
        values_of_row = [self.number(value) if value in row.figures else row.texts.get(value) for value in values]
        return (row.configuration, row.frame_bytes, row.link, *values_of_row)


def plausible_rows(rows: Sequence[ReadRow], findings: Sequence[Sequence[Finding]]) -> list[PlausibleRow]:
    """Leaves out the figures that a finding is about."""
    wrong = [{finding.value for finding in of_row} for of_row in findings]
    return [
        PlausibleRow(index, row, {value: figure for value, figure in row.figures.items() if value not in of_row})
        for index, (row, of_row) in enumerate(zip(rows, wrong, strict=True))
    ]


def find_contradicting_shares(rows: Sequence[PlausibleRow], table: ImportTable) -> tuple[list[Problem], int]:
    """Returns a problem for each row whose share contradicts that of the rows before it, and how many were compared."""
    compared = [found for rule in table.same_shares for found in _compare_shares(rows, rule)]
    return [problem for problem in compared if problem is not None], len(compared)


def _compare_shares(rows: Sequence[PlausibleRow], rule: ImportShare) -> Iterator[Problem | None]:
    """Compares shares that must agree; ``least`` and ``most`` bound what all rows of a group so far allow."""
    allowed: dict[Group, tuple[float, float, Figure]] = {}
    for one in rows:
        figure, number = one.figures.get(rule.value), one.number(rule.number)
        if figure is None or number is None:
            continue
        of = 1.0 if rule.place in one.row.figures else number
        least, most = (figure.value - figure.rounding) / of, (figure.value + figure.rounding) / of
        group = one.group(rule.among)
        if group not in allowed:
            allowed[group] = (least, most, figure)
            continue
        known_least, known_most, first = allowed[group]
        if least > known_most * (1.0 + EXACT) or most < known_least * (1.0 - EXACT):
            each = figure.words(figure.value / of)
            what = f"{figure.name} {figure.words()} is {each} for each of {of:g}"
            other = f"which contradicts line {first.cell.position.line}"
            yield Problem(figure.cell.position, f"{what}, {other}", rule.hint)
            continue
        allowed[group] = (max(least, known_least), min(most, known_most), first)
        yield None
