"""Sibling tables: the sections of one method's table in a report, whose like columns have the same decimals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, takewhile
from string import Formatter
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from nicbench.core.lists import grouped
from nicbench.core.plan import Plan
from nicbench.core.result import Result, ResultVerdict, Value
from nicbench.core.table import Column, FurtherTable, Grid, ResultTable
from nicbench.core.trial import Trial
from nicbench.core.units import Form, count_of, format_digits
from nicbench.report.cells import factor_of, known_within, number_in, text_of, texts, value_of, with_unit
from nicbench.report.numbers import UNKNOWN, speak_number
from nicbench.report.timing import Timing

Among = Callable[[Column], Sequence[Result]]
"""The results whose values decide how many decimals a column has."""
_Key = tuple[str, str | None]


class Siblings:
    """Knows the results of all sections of a table that show the same value in the same unit."""

    def __init__(self, sections: Iterable[tuple[_Key, ResultTable, Sequence[Result]]]) -> None:
        self._results: dict[tuple[_Key, str, Form], list[Result]] = {}
        for key, table, results in sections:
            columns = (*table.columns, *(column for further in table.further for column in further.columns))
            columns = (*columns, table.grid.cell) if table.grid else columns
            for value, form in dict.fromkeys((column.value, column.form) for column in columns):
                self._results.setdefault((key, value, form), []).extend(results)

    def among(self, key: _Key, column: Column) -> Sequence[Result]:
        """Returns the results of every section with this column; empty where none has it."""
        return self._results.get((key, column.value, column.form), ())


_DIGITS_APART: Final = 9
"""The digits of loads that differ by less than is printed as a rule."""


class Crossing(NamedTuple):
    """One cell, with its result."""

    text: str
    result: Result


class GridTable(NamedTuple):
    """A table of results in a grid.

    ``heads`` has one tuple for each level of headings, outermost first, each as long as a row has cells. ``title`` says
    what the whole table has in common ("64 bytes"); None where there is only one table. A crossing stays None where
    nobody measured.
    """

    title: str | None
    corner: str
    heads: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[str, tuple[Crossing | None, ...]], ...]

    def spans(self, level: int) -> tuple[tuple[str, int], ...]:
        """Returns the headings of a level, each with the number of columns that it spans; it ends where a heading above
        it changes.
        """
        columns = zip(*self.heads[: level + 1], strict=True)
        return tuple((path[-1], sum(1 for _ in same)) for path, same in groupby(columns))


def grid_tables(results: Sequence[Result], grid: Grid, among: Among | None = None) -> tuple[GridTable, ...]:
    """Returns one table for each value of ``each``, with the highest row first (or the lowest, where the grid says so)
    and the columns in the order of the results; all have the decimals that the results ``among`` which they stand need,
    by default all of ``results``.
    """
    decisive = results if among is None else among(grid.cell)
    if grid.each is not None and len({_path(result, grid.across) for result in results}) == 1:
        # Many tables with one column each are better shown as one table with a column for each.
        grid = grid.replace(across=(*grid.across, grid.each), each=None)
    # All at once: the decimals of a column rest on all of its cells.
    cells = map(Crossing, texts(grid.cell, results, decisive), results)
    groups = grouped(
        (with_unit(grid.each, text_of(grid.each, cell.result)) if grid.each else None, cell) for cell in cells
    )
    return tuple(_table(title, members, grid) for title, members in groups.items())


class _Place(NamedTuple):
    """What one row has in common: its value, and which of the results with this value in one column it holds."""

    value: Value
    turn: int


def _table(title: str | None, cells: Iterable[Crossing], grid: Grid) -> GridTable:
    at: dict[tuple[_Place, tuple[str, ...]], Crossing] = {}
    turns: Counter[tuple[Value, tuple[str, ...]]] = Counter()
    members: dict[_Place, Result] = {}
    for cell in cells:
        value, path = value_of(cell.result, grid.rows.value), _path(cell.result, grid.across)
        place = _Place(value, turns[value, path])
        turns[value, path] += 1
        at[place, path] = cell
        members.setdefault(place, cell.result)
    sign = 1.0 if grid.is_rising else -1.0
    rows = dict(sorted(members.items(), key=lambda item: sign * (number_in(item[1], grid.rows.value) or 0.0)))
    labels = _labels(rows, grid.rows)
    columns = _columns([path for _, path in at], labels)
    return GridTable(
        title=title,
        corner=f"{grid.rows.head} [{grid.rows.unit}]" if grid.rows.unit else grid.rows.head,
        heads=tuple(
            tuple(with_unit(column, path[level]) for path in columns) for level, column in enumerate(grid.across)
        ),
        rows=tuple(
            (label, tuple(at.get((row, path)) for path in columns)) for row, label in zip(rows, labels, strict=True)
        ),
    )


def _labels(rows: Mapping[_Place, Result], column: Column) -> list[str]:
    """Returns the names of rows. Values that would print alike get more digits, and results of one value their run."""
    texts_of = {row: text_of(column, result) for row, result in rows.items()}
    values: dict[str, set[Value]] = {}
    for row, text in texts_of.items():
        values.setdefault(text, set()).add(row.value)
    labels = []
    for row, text in texts_of.items():
        number = number_in(rows[row], column.value)
        label = text
        if len(values[text]) > 1 and number is not None:
            label = format_digits(number * factor_of(column.form), _DIGITS_APART)
        if row.turn > 0 and rows[row].run_number is not None:
            label = f"{label} (run {rows[row].run_number})"
        labels.append(label)
    return labels


def _path(result: Result, across: tuple[Column, ...]) -> tuple[str, ...]:
    return tuple(text_of(column, result) for column in across)


def _columns(paths: Sequence[tuple[str, ...]], rows: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns each path once, those with the same outer heading next to each other.

    Names that rows have too, as the ports of each way from one to another, stand in the order of the rows: no port
    leads to itself, so that the first one would otherwise come after those that it leads to.
    """
    seen = [_in_order(list(dict.fromkeys(level)), rows) for level in zip(*paths, strict=True)]
    return sorted(set(paths), key=lambda path: [names.index(text) for names, text in zip(seen, path, strict=True)])


def _in_order(names: Sequence[str], rows: Sequence[str]) -> list[str]:
    return [*(row for row in rows if row in names), *(name for name in names if name not in rows)]


def one_above_the_other(tables: Sequence[GridTable]) -> tuple[tuple[GridTable, ...], ...]:
    """Returns the tables in groups of those with the same headings, each of which is printed as one table."""
    return tuple(tuple(same) for _, same in groupby(tables, key=lambda table: (table.corner, table.heads)))


_GAP = "\u00a0"


class Row(NamedTuple):
    """One result; ``cells`` are in the order of the columns, and ``doubt`` says why the result may not be relied on."""

    cells: tuple[str, ...]
    result: Result
    doubt: str | None = None


class RowNote(NamedTuple):
    """A sentence below a table; ``about`` names what it explains, "" where the text says so itself."""

    about: str
    text: str

    def __str__(self) -> str:
        return f"{self.about}: {self.text}" if self.about else self.text


class RunKnowledge(NamedTuple):
    """What a run knows beyond its results: its plan, and its trials by their id."""

    plan: Plan | None = None
    trials: Mapping[str, Trial] = MappingProxyType({})


class Further(NamedTuple):
    """The rows of a section in the columns of a further table."""

    table: FurtherTable
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Section:
    """One test of a method that has a table; ``configuration`` and ``scope`` are those of all its rows.

    ``says_caption`` is False where the section before it has the same caption. ``search_notes`` appear even for
    results that may be relied on.
    """

    test: str
    configuration: str
    scope: str
    table: ResultTable
    rows: tuple[Row, ...]
    notes: tuple[RowNote, ...]
    grids: tuple[GridTable, ...] = ()
    brief: tuple[Row, ...] = ()
    """The rows that are shown where there is little room: those that the method chose, or those that sum up the others,
    or all.
    """
    further: tuple[Further, ...] = ()
    search_notes: tuple[str, ...] = ()
    says_caption: bool = True
    known: RunKnowledge = field(default_factory=RunKnowledge)
    timing: Timing | None = None
    """How frames were timed, for a table whose rows are trials with timed frames."""

    def without_rates(self) -> Section:
        """Returns the section in one table, without the rates and intervals that stand side by side elsewhere."""
        own = [at for at, column in enumerate(self.table.columns) if column.aspect not in ("rate", "interval")]
        columns = [self.table.columns[at] for at in own]
        cells = [[row.cells[at] for at in own] for row in self.rows]
        kept = []
        for further in self.further:
            if len(further.rows) < len(self.rows):
                kept.append(further)
                continue
            columns += further.table.columns[1:]
            cells = [[*had, *row.cells[1:]] for had, row in zip(cells, further.rows, strict=True)]
        groups = [column.group for column in columns]
        order = sorted(range(1, len(columns)), key=lambda at: (groups[at] is None, groups.index(groups[at])))
        rows = tuple(
            row._replace(cells=(had[0], *(had[at] for at in order))) for row, had in zip(self.rows, cells, strict=True)
        )
        table = self.table.replace(columns=(columns[0], *(columns[at] for at in order)))
        return replace(self, table=table, rows=rows, brief=rows, further=tuple(kept))

    @property
    def is_bare(self) -> bool:
        """Whether imported results fill none of its columns, because all that their source has is shown elsewhere."""
        return bool(self.rows[0].result.imported) and all(column.is_minor for column in self.table.columns[1:])

    @property
    def is_imported(self) -> bool:
        """Whether its results were measured by somebody else."""
        return self.rows[0].result.imported is not None

    @property
    def line_rate_is_real(self) -> bool:
        """Whether the line rate is that of a link which could carry it."""
        plan = self.known.plan
        return plan is not None and not plan.link_is_nominal and not plan.simulated

    @property
    def doubts(self) -> tuple[str, ...]:
        """A sentence for each row that rests on a disturbed trial or on none, and for each missing value."""
        told = (f"{name_of_row(self.table, row)}: {row.doubt}" for row in self.rows if row.doubt is not None)
        return tuple(dict.fromkeys(told))

    @property
    def is_abridged(self) -> bool:
        """Whether there are more rows than the brief ones."""
        return len(self.brief) < len(self.rows)

    @property
    def sums(self) -> tuple[Row, ...]:
        """The rows that sum up the others, where there are such rows."""
        if self.table.sums is None:
            return ()
        column, word = self.table.sums
        return tuple(row for row in self.rows if value_of(row.result, column) == word)

    @property
    def claim(self) -> str | None:
        """What ``sentence`` says, without what it rests on."""
        return self._told[0]

    @property
    def sentence(self) -> str | None:
        """What the first row says, without its subject: "forwards 9.66 Mpps of 64 bytes frames on one core". For a
        curve it first says up to which load nothing was lost. It may include what ``notes`` say of the row, and says
        so where its samples were disturbed.
        """
        said, behind = self._told
        return said and f"{said}{caveat(behind)}"

    @cached_property
    def _told(self) -> tuple[str | None, tuple[Row, ...]]:
        """What the first row says, and the rows that it describes."""
        if not self.rows:
            return None, ()
        rows = self.sums or self.brief or self.rows
        first = next((row for row in rows if self._sentence_from(row, self.table.sentences)), rows[0])
        clean = self._clean_row(first)
        behind = [first]
        if clean is None or self.table.clean_sentence is None:
            said = self._sentence_from(first, self.table.sentences)
        else:
            good = self._sentence_from(clean, (self.table.clean_sentence,))
            rest = None if clean is first else self._sentence_from(first, self.table.sentences)
            said = ", and ".join(text for text in (good, rest) if text) or None
            behind.append(clean)
        worst = self._worst_beside(first) if said else None
        if worst is None:
            return said, tuple(behind)
        told = f"{said}; at worst it {self._sentence_from(worst, self.table.sentences)}"
        return told, (*behind, worst)

    def sentence_of(self, row: Row) -> str | None:
        """Returns what a row says, without its subject, and whether its samples were disturbed."""
        said = self._sentence_from(row, self.table.sentences)
        return said and f"{said}{caveat((row,))}"

    def _sentence_from(self, row: Row, sentences: Sequence[str]) -> str | None:
        pairs = list(zip(self.table.columns, row.cells, strict=True))
        unknown = [f"{{{column.value}}}" for column, cell in pairs if cell == UNKNOWN]
        said = (text for text in sentences if not any(name in text for name in unknown))
        words = {name: value for name, _ in self.table.notes if isinstance(value := value_of(row.result, name), str)}
        known = {LOAD: load_words(row.result.parameters), **words}
        names = known.keys() | {column.value for column, _ in pairs}
        chosen = next((text for text in said if names_in(text) <= names), None)
        if chosen is None:
            return None
        named = names_in(chosen)
        known |= {
            column.value: speak_cell(column, self._round_for_speech(column, row, cell))
            + known_within(row.result, column.value)
            for column, cell in pairs
            if column.value in named
        }
        return f"{chosen.format(**known)}{self._line_of(row, named)}"

    def _line_of(self, row: Row, named: Collection[str]) -> str:
        """Returns the line of the curve on which the row lies, in brackets, as far as a sentence has not ``named`` it;
        "" where there is only one.
        """
        lines = [each for each in self._lines_apart if each.value not in named]
        told = [with_unit(column, text_of(column, row.result)) for column in lines]
        return f" ({', '.join(told)})" if told else ""

    @cached_property
    def _lines_apart(self) -> tuple[Column, ...]:
        """The columns that tell the lines of the curve apart."""
        return tuple(
            column
            for column in (self.table.curve.lines if self.table.curve else ())
            if column.value != "configuration" and len({text_of(column, each.result) for each in self.rows}) > 1
        )

    def _worst_beside(self, first: Row) -> Row | None:
        """Returns the row at the load of ``first`` that lies farthest from free of loss, where the sentences do not
        tell all lines of the curve apart. Returns None unless that row is worse than ``first``.
        """
        curve = self.table.curve
        if (
            curve is None
            or curve.clean is None
            or not any(self._line_of(first, names_in(s)) for s in self.table.sentences)
        ):
            return None

        def far(row: Row) -> float:
            number = number_in(row.result, curve.y.value)
            return 0.0 if number is None or curve.clean is None else abs(number - curve.clean)

        load = number_in(first.result, curve.x.value)
        worst = max((row for row in self.rows if number_in(row.result, curve.x.value) == load), key=far, default=first)
        return worst if far(worst) > far(first) else None

    def _round_for_speech(self, column: Column, row: Row, cell: str) -> str:
        """Returns a cell rounded to three significant digits for a sentence; in the table it has the decimals of its
        column.
        """
        number = number_in(row.result, column.value)
        if column.form not in ("of_frames", "trimmed") or number is None or not cell[:1].isdigit():
            return cell
        return speak_number(number)

    def _clean_row(self, first: Row) -> Row | None:
        """Returns the row with the highest load on the line of ``first`` at and below which nothing was lost; None
        without one.
        """
        curve = self.table.curve
        if curve is None or curve.clean is None:
            return None

        def line(row: Row) -> tuple[str, ...]:
            return tuple(text_of(column, row.result) for column in curve.lines)

        same = line(first)
        beside = [row for row in self.rows if line(row) == same]
        loads = sorted(beside, key=lambda row: number_in(row.result, curve.x.value) or 0.0)
        clean = list(takewhile(lambda row: number_in(row.result, curve.y.value) == curve.clean, loads))
        return clean[-1] if clean else None


def caveat(rows: Iterable[Row]) -> str:
    """Returns what goes before the full stop of a sentence about these rows where they are disturbed."""
    results = (row.result for row in rows)
    disturbed = next((one for one in results if one.verdict is ResultVerdict.DISTURBED or one.disturbed_runs), None)
    if disturbed is None:
        return ""
    if disturbed.contradicted_by:
        return ". Not reliable: a later trial contradicts it"
    runs = disturbed.disturbed_runs
    of_runs = f" of {count_of(runs, 'run')}" if runs else ""
    return f". Not reliable: the {disturbed.measured_by or 'trial'}s{of_runs} were disturbed"


def speak_cell(column: Column, cell: str) -> str:
    """Returns a cell in the form of a sentence, with its unit."""
    if column.value == "port":
        return cell if cell.startswith("port ") else f"port {cell}"
    if column.unit == "bytes":
        return f"{cell}-byte" if cell.isdigit() else cell
    return f"{cell}{_GAP}{column.unit}".replace("≥ ", "at least ") if column.unit else cell


LOAD: Final = "load"
"""The name by which titles and sentences refer to the load of a result."""


def load_words(parameters: Mapping[str, Any]) -> str:
    """Returns the load of a result in words: "50 % of the NDR"."""
    if "senders" in parameters:
        return f"an incast of {parameters['senders']} senders"
    percent, of = parameters.get("load_percent"), parameters.get("load_of")
    if not isinstance(percent, int | float):
        return "the load of the test"
    return f"{percent:g} % of the {of}" if of else f"{percent:g} % load"


def name_of_row(table: ResultTable, row: Row) -> str:
    """Returns the name of a row: what the table calls it, its first cell or, in a grid, its place: "64 bytes, 75 %"."""
    # Runs that were made before a table named its rows have no such value.
    if table.row_name is not None and names_in(table.row_name) <= row.result.values.keys():
        return table.row_name.format_map(row.result.values)
    if table.grid is None:
        head = table.columns[0]
        if head.unit is None and head.form == "text":
            return row.cells[0]
        return f"{row.cells[0]} {head.unit or head.head}"
    return ", ".join(with_unit(column, texts(column, [row.result])[0]) for column in place_columns(table.grid))


def place_columns(grid: Grid) -> tuple[Column, ...]:
    """Returns the columns that say where in a grid a result stands."""
    return (*([grid.each] if grid.each else []), *grid.across, grid.rows)


def heads_above(columns: Sequence[Column]) -> tuple[tuple[str | None, int], ...]:
    """Returns the headings above the columns' own, each with the number of columns that it spans; None above a column
    without one.
    """
    found: list[tuple[str | None, int]] = []
    for column in columns:
        if column.group is not None and found and found[-1][0] == column.group:
            found[-1] = (column.group, found[-1][1] + 1)
        else:
            found.append((column.group, 1))
    return tuple(found)


def names_in(text: str) -> set[str]:
    """Returns the names of the values that a sentence contains."""
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def names_line_rate(section: Section) -> bool:
    """Returns whether a heading of the section mentions the line rate."""
    grid = section.table.grid
    columns = (*section.table.columns, *((grid.rows, grid.cell) if grid else ()))
    return any("line rate" in f"{column.head} {column.unit}".lower() for column in columns)
