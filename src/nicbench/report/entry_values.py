"""The main values of all entries, a table for each value: a row for each entry, a column for each point."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from nicbench.compare.claims import PointComparison
from nicbench.compare.points import point_of
from nicbench.core.frame_size import label_of
from nicbench.core.lists import grouped
from nicbench.core.registry import find
from nicbench.core.result import PASSES_NOTHING, Bounded, Result, Summary, Value, name_of_test
from nicbench.core.table import Column
from nicbench.methods.base import Method, main_values, tables_of
from nicbench.report.cells import number_in, texts, value_of
from nicbench.report.comparison import Comparison
from nicbench.report.editors import is_summed_up
from nicbench.report.numbers import UNKNOWN
from nicbench.report.rates import change_of, pair_of
from nicbench.report.statistics import StatisticsView
from nicbench.report.tables import scale_units

_VIEWS: Final = frozenset({"size", "run", "part"})
"""Parameters that do not distinguish the points of one table."""


class ValueCell(NamedTuple):
    """One entry's value at one point."""

    text: str
    number: float | None
    result: Result | None
    value: Value = None


class ValueTable(NamedTuple):
    """One value of one test; ``points`` are the headings of its columns, ``rows`` maps the name of an entry to its
    cells.
    """

    test: str
    method: str
    value: str
    head: str
    unit: str | None
    scope: str
    corner: str
    points: tuple[str, ...]
    is_searched: bool
    """Whether the value is a rate that a search found: such rates have a table of their own, with their intervals."""
    parameters: tuple[Mapping[str, Any], ...]
    rows: Mapping[str, tuple[ValueCell, ...]]

    @property
    def heading(self) -> str:
        """The name of the value with its unit: "NDR [Mpps]"."""
        return f"{self.head} [{self.unit}]" if self.unit else self.head


def value_tables(summary: Summary) -> tuple[ValueTable, ...]:
    """Returns a table for every main value that at least two entries have; instances of film frames have
    other tables.
    """
    groups = grouped(
        ((name_of_test(result, {}), result.method, str(part)), result)
        for result in summary.beside_each_other
        if not is_summed_up(result.method, part := result.parameters.get("part")) and part != "summary"
    )
    names = summary.configurations
    tables = [
        table
        for (test, method, _), results in groups.items()
        for column in _columns(method, results)
        if (table := _table(test, method, column, results, names)) is not None
    ]
    return tuple(tables)


def _columns(method: str, results: Sequence[Result]) -> list[Column]:
    """Returns a column, with heading and unit, for each value that the method calls a main value or prints in bold."""
    kind = find("nicbench.methods", Method).get(method)
    part = results[0].parameters.get("part")
    table = next((one for one in (tables_of(kind) if kind else ()) if one.part == part), None)
    if kind is None or table is None:
        return [Column(name, name) for name in dict.fromkeys(_main_names(results))]
    fitted = kind.table_for(table, results, {})
    known = {column.value: column for column in reversed(fitted.columns)}
    stated = [fitted.statement.also] if fitted.statement else []
    wanted = dict.fromkeys((*_main_names(results), *stated))
    columns = [known.get(name) or Column(name, name) for name in wanted]
    suited = scale_units(fitted.replace(columns=tuple(columns), further=()), results)
    return [column.replace(head=column.name or column.head) for column in suited.columns]


def _main_names(results: Iterable[Result]) -> Iterator[str]:
    return (name for result in results for name in main_values(result))


def _table(
    test: str, method: str, column: Column, results: Sequence[Result], names: Sequence[str]
) -> ValueTable | None:
    having = [result for result in results if value_of(result, column.value) is not None]
    numbers = [result for result in having if number_in(result, column.value) is not None or _is_bound(result, column)]
    if len({result.configuration for result in numbers}) < 2:
        return None
    labels = _labels(numbers)
    at: dict[tuple[str, str], Result] = {}
    for result, label in zip(numbers, labels, strict=True):
        at.setdefault((result.configuration, label), result)
    counts = Counter(label for _, label in at)
    points = _in_order([label for label in dict.fromkeys(labels) if counts[label] > 1], at)
    if not points:
        return None
    shown = dict(zip(map(id, numbers), texts(column, numbers, with_range=False), strict=True))
    cells = {
        (name, label): ValueCell(
            _text(result, column, shown[id(result)]),
            number_in(result, column.value),
            result,
            value_of(result, column.value),
        )
        for (name, label), result in at.items()
    }
    none = ValueCell(UNKNOWN, None, None)
    first = next(at[name, points[0]] for name in names if (name, points[0]) in at)
    return ValueTable(
        test=test,
        method=method,
        value=column.value,
        head=column.head,
        unit=column.unit and column.unit.format_map(defaultdict(lambda: UNKNOWN, first.parameters)),
        scope=first.scope,
        corner="Frame [bytes]" if all(point.isdigit() for point in points) else "",
        points=tuple(points),
        is_searched=column.aspect == "rate",
        parameters=tuple(next(at[name, label] for name in names if (name, label) in at).parameters for label in points),
        rows={name: tuple(cells.get((name, label), none) for label in points) for name in names},
    )


def _is_bound(result: Result, column: Column) -> bool:
    """Returns whether a rate has a known upper bound."""
    value = result.values.get(column.value)
    return isinstance(value, Bounded) and value.upper is not None


def _text(result: Result, column: Column, text: str) -> str:
    value = result.values.get(column.value)
    if isinstance(value, Bounded) and value.passes_nothing:
        return PASSES_NOTHING
    if isinstance(value, Bounded) and value.value is None and value.upper is not None:
        bound = result.replace(values={column.value: value.upper}, imported=None)
        return f"< {texts(column, [bound])[0]}"
    return text


def _labels(results: Sequence[Result]) -> list[str]:
    """Returns what tells the points of these results apart, in words: the frame size, and every parameter that is not
    the same in all.
    """
    names = dict.fromkeys(name for result in results for name in result.parameters if name not in _VIEWS)
    sized = any(label_of(result.parameters) is not None for result in results)
    telling = [
        name
        for name in names
        if name not in ("frame_bytes", "mix") and len({str(result.parameters.get(name)) for result in results}) > 1
    ]
    found = []
    for result in results:
        size = label_of(result.parameters)
        only = sized and not telling
        first = [] if size is None else [size if only or not size.isdigit() else f"{size} B"]
        rest = [
            _words_of(name, result.parameters.get(name)) for name in telling if result.parameters.get(name) is not None
        ]
        found.append(", ".join([*first, *rest]) or name_of_test(result, {}))
    return found


def _words_of(name: str, value: Any) -> str:
    if name.endswith("_percent"):
        return f"{value:g} %" if isinstance(value, int | float) else f"{value} %"
    if name.endswith("_bytes"):
        return f"{value} B"
    return f"{value}" if isinstance(value, str) else f"{name.replace('_', ' ')} {value}"


def _in_order(labels: Sequence[str], at: Mapping[tuple[str, str], Result]) -> list[str]:
    """Returns the labels by frame size; those of one size in the order in which they were measured."""
    sizes: dict[str, float] = {}
    for (_, label), result in at.items():
        sizes.setdefault(label, number_in(result, "frame_bytes") or 0.0)
    return sorted(labels, key=lambda label: sizes[label])


_MOST_ROWS: Final = 16
"""The most rows on a first screen; the first value is shown at all its points, however many these are."""


class Change(NamedTuple):
    """How far an entry lies from the first at one point: the change with its interval, and the verdict in words."""

    text: str
    verdict: str
    is_shown: bool


class ChangeCell(NamedTuple):
    """The value of one entry at one point; the first entry has no ``change``, nor has one where either value is
    missing.
    """

    text: str
    within: str
    result: Result | None
    change: Change | None


class ChangePart(NamedTuple):
    """One main value with its unit: each point at which it is known, with a cell for each entry."""

    heading: str
    rows: Sequence[tuple[str, Sequence[ChangeCell]]]

    @property
    def changes(self) -> list[Change]:
        """The changes that have words; a value that its method does not compare has none."""
        return [cell.change for _, cells in self.rows for cell in cells if cell.change is not None]


class ChangeTable(NamedTuple):
    """The values shown first, and the headings of those that had no room."""

    names: tuple[str, ...]
    parts: tuple[ChangePart, ...]
    left_out: tuple[str, ...]

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes in the table."""
        return tuple(change for part in self.parts for change in part.changes)

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
        if not parts or (part.changes and len(part.rows) <= room):
            parts.append(part)
    left_out = tuple(part.heading for part in every if part not in parts)
    return ChangeTable(compared.names, tuple(parts), left_out) if parts else None


def _of_searches(compared: Comparison) -> Iterator[ChangePart]:
    for table in compared.rates:
        of_test = f"{table.test}: " if len(compared.rates) > 1 else ""
        for goal in table.goals:
            rows = []
            for row in table.rows:
                told = row.told[goal.value]
                cells = [
                    ChangeCell(
                        cell.text,
                        "" if cell.within == UNKNOWN else cell.within,
                        next(
                            (each for each in cell.results if each.verdict.value != "valid"), (*cell.results, None)[0]
                        ),
                        _of_pair(cell.configuration, table.names[0], told),
                    )
                    for cell in row.cells[goal.value]
                ]
                rows.append((_point(row.size), cells))
            yield ChangePart(f"{of_test}{goal.name} [{table.unit(goal)}], {goal.clause}", rows)


def _point(point: str) -> str:
    """Returns the name of a point with its numbers kept together with their units."""
    return re.sub(r"(?<=\d) (?=\S)", "\u00a0", f"{point} B" if point.isdigit() else point)


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
                cells.append(ChangeCell(shown.text, "", shown.result, _of_pair(name, first, told)))
            rows.append((_point(point), cells))
        yield ChangePart(f"{table.test}: {table.heading}", rows)


def _of_pair(name: str, first: str, told: Sequence[PointComparison]) -> Change | None:
    one = None if name == first else pair_of(name, first, told)
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
