"""The table that a comparison of a few entries opens with: every main value of each, the change, and what is claimed.

Values that a search found come first, goal by goal; then the other main values, while there is room on a first screen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.compare.compared import PointComparison
from nicbench.compare.points import point_of
from nicbench.core.result import Result
from nicbench.report.beside.values import ValueTable
from nicbench.report.comparison import Comparison
from nicbench.report.numbers import UNKNOWN
from nicbench.report.rates import RatesTable, change_of, pair_of
from nicbench.report.statistics.view import StatisticsView

_MOST_ROWS: Final = 16
"""The most rows on a first screen; the first value is shown at all its points, however many these are."""


@dataclass(frozen=True, slots=True)
class Change:
    """How far an entry lies from the first at one point: the change with its interval, and the verdict in words."""

    text: str
    verdict: str
    is_shown: bool


@dataclass(frozen=True, slots=True)
class ChangeCell:
    """The value of one entry at one point; ``change`` is None for the first entry, and where either has no value."""

    text: str
    within: str
    result: Result | None
    change: Change | None


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One point, with a cell for each entry."""

    point: str
    cells: tuple[ChangeCell, ...]


@dataclass(frozen=True, slots=True)
class ChangePart:
    """One main value with its unit, at all its points."""

    heading: str
    rows: tuple[ChangeRow, ...]

    @property
    def is_compared(self) -> bool:
        """Whether anything is said of any change; of a value that its method does not compare, nothing is."""
        return any(cell.change is not None for row in self.rows for cell in row.cells)


@dataclass(frozen=True, slots=True)
class ChangeTable:
    """The values shown first, and the headings of those that had no room."""

    names: tuple[str, ...]
    parts: tuple[ChangePart, ...]
    left_out: tuple[str, ...]

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes in the table."""
        cells = (cell for part in self.parts for row in part.rows for cell in row.cells)
        return tuple(cell.change for cell in cells if cell.change is not None)

    @property
    def sentence(self) -> str:
        """How many of the values differ, in which direction, and why no difference is claimed of the others."""
        counts = Counter(change.verdict for change in self.changes)
        shown = Counter(change.verdict for change in self.changes if change.is_shown)
        total, claimed = counts.total(), shown.total()
        if not total:
            return ""
        of_all = f"of the {total} values below" if total > 1 else "of the value below"
        first, *others = self.names
        subject = f"“{others[0]}”" if len(others) == 1 else "the others"
        against = f" of {subject} from “{first}”"
        reasons = ", ".join(f"{word}{f' ({number})' if len(counts - shown) > 1 else ''}"
                            for word, number in (counts - shown).most_common())  # fmt: skip
        if not claimed:
            return f"No difference{against} can be claimed in any {of_all}: {reasons}."
        told = ", ".join(f"{word} in {number}" for word, number in shown.most_common())
        rest = f" No difference is claimed in the other {total - claimed}: {reasons}." if claimed < total else ""
        return f"A difference{against} is claimed in {claimed} {of_all}: {told}.{rest}"


def change_table(compared: Comparison, tables: Sequence[ValueTable], statistics: StatisticsView) -> ChangeTable | None:
    """Returns the table; None where the entries have no main value in common."""
    every = [*_of_searches(compared), *_of_values(tables, statistics)]
    parts: list[ChangePart] = []
    for part in every:
        room = _MOST_ROWS - sum(len(each.rows) for each in parts)
        if not parts or (part.is_compared and len(part.rows) <= room):
            parts.append(part)
    left_out = tuple(part.heading for part in every if part not in parts)
    return ChangeTable(compared.names, tuple(parts), left_out) if parts else None


def _of_searches(compared: Comparison) -> Iterator[ChangePart]:
    for table in compared.rates:
        of_test = f"{table.test}: " if len(compared.rates) > 1 else ""
        for goal in table.goals:
            rows = tuple(
                ChangeRow(
                    _unbroken(f"{row.size} B" if row.size.isdigit() else row.size),
                    tuple(
                        ChangeCell(
                            cell.text,
                            "" if cell.within == UNKNOWN else cell.within,
                            _doubtful(cell.results),
                            _change(cell.configuration, table, row.told[goal.value]),
                        )
                        for cell in row.cells[goal.value]
                    ),
                )
                for row in table.rows
            )
            yield ChangePart(f"{of_test}{goal.name} [{table.unit(goal)}], {goal.clause}", rows)


def _unbroken(point: str) -> str:
    """Returns the name of a point with its numbers kept beside their units."""
    return re.sub(r"(?<=\d) (?=\S)", "\u00a0", point)


def _doubtful(results: Sequence[Result]) -> Result | None:
    return next((each for each in results if each.verdict.value != "valid"), results[0] if results else None)


def _change(name: str, table: RatesTable, told: Sequence[PointComparison]) -> Change | None:
    return None if name == table.names[0] else _of_pair(name, table.names[0], told)


def _of_values(tables: Sequence[ValueTable], statistics: StatisticsView) -> Iterator[ChangePart]:
    for table in tables:
        if table.is_searched:
            continue
        first = next(iter(table.rows))
        rows = []
        for place, point in enumerate(table.points):
            cells = []
            for name, of_name in table.rows.items():
                shown = of_name[place]
                told = () if shown.result is None else statistics.of(point_of(shown.result), table.value)
                change = None if name == first else _of_pair(name, first, told)
                cells.append(ChangeCell(shown.text, "", shown.result, change))
            rows.append(ChangeRow(_unbroken(f"{point} B" if point.isdigit() else point), tuple(cells)))
        yield ChangePart(f"{table.test}: {table.heading}", tuple(rows))


def _of_pair(name: str, first: str, told: Sequence[PointComparison]) -> Change | None:
    one = pair_of(name, first, told)
    if one is None:
        return None
    basis, better = one.claim.basis, one.better
    if not basis.is_shown:
        verdict = basis.cell
    elif better is None:
        verdict = "higher" if one.claim.higher == name else "lower"
    else:
        verdict = "better" if better == name else "worse"
    return Change(change_of(name, one).replace(" % to ", " to "), verdict, basis.is_shown)
