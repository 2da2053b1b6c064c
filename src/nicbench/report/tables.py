"""Sections that methods bring along themselves (model/table.py): every value as text, its unit in the heading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from string import Formatter
from typing import Any, Final

from nicbench.methods.base import Method
from nicbench.model.result import Result, ResultVerdict, name_of_test
from nicbench.model.table import Column, Grid, ResultTable
from nicbench.model.turn import DEFAULT
from nicbench.registry import find
from nicbench.report.cells import number_of, text_of, texts, value_of, with_unit
from nicbench.report.grids import GridTable, grid_tables
from nicbench.report.numbers import UNKNOWN, spoken_number
from nicbench.report.section_notes import notes_beside, notes_of

_GAP = "\u00a0"
_FEW_BITS_PER_S = 1e8


@dataclass(frozen=True, slots=True)
class Row:
    """One result; ``cells`` in the order of the columns."""

    cells: tuple[str, ...]
    result: Result


@dataclass(frozen=True, slots=True)
class Section:
    """One test of a method that has a table; ``configuration`` and ``scope`` are those of all its rows."""

    test: str
    configuration: str
    scope: str
    table: ResultTable
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    grids: tuple[GridTable, ...] = ()
    brief: tuple[Row, ...] = ()
    """Those that are shown where there is little room: what the method chose, or what sums up the others, or all."""

    @property
    def is_abridged(self) -> bool:
        """Whether there are rows beside the brief ones."""
        return len(self.brief) < len(self.rows)

    @property
    def sums(self) -> tuple[Row, ...]:
        """The rows that sum up the others, where there are such."""
        if self.table.sums is None:
            return ()
        column, word = self.table.sums
        return tuple(row for row in self.rows if value_of(row.result, column) == word)

    @property
    def sentence(self) -> str | None:
        """What the first row says, without its subject: "forwards 9.66 Mpps of 64 bytes frames on one core".

        Of a curve, first up to which load nothing was lost. What ``notes`` say of the row may stand in it.
        """
        if not self.rows:
            return None
        rows = self.sums or self.brief or self.rows
        first = next((row for row in rows if self._said_of(row, self.table.sentences)), rows[0])
        clean = self._clean_row(first)
        if clean is None or self.table.clean_sentence is None:
            said = self._said_of(first, self.table.sentences)
        else:
            good = self._said_of(clean, (self.table.clean_sentence,))
            rest = None if clean is first else self._said_of(first, self.table.sentences)
            said = ", and ".join(text for text in (good, rest) if text) or None
        worst = self._worst_beside(first) if said else None
        return said if worst is None else f"{said}; at worst it {self._said_of(worst, self.table.sentences)}"

    def sentence_of(self, row: Row) -> str | None:
        """The same of any row."""
        return self._said_of(row, self.table.sentences)

    def _said_of(self, row: Row, sentences: Sequence[str]) -> str | None:
        pairs = list(zip(self.table.columns, row.cells, strict=True))
        unknown = [f"{{{column.value}}}" for column, cell in pairs if cell == UNKNOWN]
        said = (text for text in sentences if not any(name in text for name in unknown))
        words = {name: value for name, _ in self.table.notes if isinstance(value := value_of(row.result, name), str)}
        spoken = {column.value: _spoken(column, self._rounded(column, row, cell)) for column, cell in pairs}
        known = {**words, **spoken}
        chosen = next((text for text in said if _names_in(text) <= known.keys()), None)
        return chosen and f"{chosen.format(**known)}{self._line_of(row, _names_in(chosen))}"

    def _line_of(self, row: Row, named: Collection[str]) -> str:
        """Of several lines of a curve, on which the row lies, as far as a sentence has not ``named`` it."""
        lines = [each for each in (self.table.curve.lines if self.table.curve else ()) if each.value not in named]
        told = [
            with_unit(column, text_of(column, row.result))
            for column in lines
            if column.value != "configuration" and len({text_of(column, each.result) for each in self.rows}) > 1
        ]
        return f" ({', '.join(told)})" if told else ""

    def _worst_beside(self, first: Row) -> Row | None:
        """At the load of a row, where a sentence does not tell all lines of the curve apart: the one least clean.

        None where that is no worse than the row itself.
        """
        curve = self.table.curve
        if (
            curve is None
            or curve.clean is None
            or not any(self._line_of(first, _names_in(s)) for s in self.table.sentences)
        ):
            return None

        def far(row: Row) -> float:
            number = number_of(row.result, curve.y.value)
            return 0.0 if number is None or curve.clean is None else abs(number - curve.clean)

        load = number_of(first.result, curve.x.value)
        worst = max((row for row in self.rows if number_of(row.result, curve.x.value) == load), key=far, default=first)
        return worst if far(worst) > far(first) else None

    def _rounded(self, column: Column, row: Row, cell: str) -> str:
        """A cell has as many decimals as its column needs; a sentence three significant digits."""
        number = number_of(row.result, column.value)
        if column.form not in ("of_frames", "trimmed") or number is None or not cell[:1].isdigit():
            return cell
        return spoken_number(number)

    def _clean_row(self, first: Row) -> Row | None:
        """The highest on the first row's line of the curve, at and below which nothing was lost."""
        curve = self.table.curve
        if curve is None or curve.clean is None:
            return None

        def line(row: Row) -> tuple[str, ...]:
            return tuple(text_of(column, row.result) for column in curve.lines)

        beside = [row for row in self.rows if line(row) == line(first)]
        loads = sorted(beside, key=lambda row: number_of(row.result, curve.x.value) or 0.0)
        clean = list(takewhile(lambda row: number_of(row.result, curve.y.value) == curve.clean, loads))
        return clean[-1] if clean else None


def sections(
    results: Iterable[Result], tests: Mapping[str, str], beside: Column | None = None, single: Sequence[Result] = ()
) -> tuple[Section, ...]:
    """One per test and configuration, in the order of the results; ``tests`` maps a result's id to its test.

    ``beside`` is a column more than the method's own, ``single`` the results of single runs behind those over runs.
    """
    methods = find("nicbench.methods", Method)
    tables = {(kind, table.part): table for kind, method in methods.items() for table in method.tables()}
    grouped: dict[Group, list[Result]] = {}
    for result in results:
        part = result.parameters.get("part")
        if (result.method, part) in tables:
            test = name_of_test(result, tests)
            scope = result.scope if tables[result.method, part].has_basis else ""
            grouped.setdefault((result.method, part, test, result.configuration, scope), []).append(result)
    found = []
    for (method, part, test, configuration, scope), members in sorted(grouped.items(), key=_place_in(methods, grouped)):
        table = _filled(_with_column(tables[method, part], beside), members[0].parameters)
        table = _in_megabits(_of_others(_without_empty(table, members), method, members), members)
        grids = grid_tables(members, table.grid) if table.grid else ()
        of = (method, part, test)
        rows = _rows(members, table)
        if beside is None:
            notes = notes_of(members, table)
        else:
            runs = [one for one in single if (one.method, one.parameters.get("part"), name_of_test(one, tests)) == of]
            notes = notes_beside(members, runs, table, partial(_name_of, _telling(table, members)))
        section = Section(test, configuration, scope, table, rows, notes, grids)
        # Of editors everything is told before, and what is left are details.
        chosen = () if table.editors else methods[method].brief(tuple(members))
        brief = _rows(chosen, table) if len(chosen) < len(members) else section.sums or rows
        found.append(replace(section, brief=brief))
    return tuple(found)


Group = tuple[str, str | None, str, str, str]


def _place_in(
    methods: Mapping[str, type[Method]], grouped: Mapping[Group, Any]
) -> Callable[[tuple[Group, Any]], tuple[int, int, int]]:
    """Tests in the order of their first results; the sections of one in the order in which its method has them."""
    tests: dict[tuple[str, str], int] = {}
    for number, (method, _, test, configuration, _) in enumerate(grouped):
        tests.setdefault((f"{method} {test}", configuration), number)

    def place(item: tuple[Group, Any]) -> tuple[int, int, int]:
        (method, part, test, configuration, _), _ = item
        parts = [table.part for table in methods[method].tables()]
        return tests[f"{method} {test}", configuration], parts.index(part), list(grouped).index(item[0])

    return place


def _names_in(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def side_by_side(
    results: Iterable[Result], tests: Mapping[str, str], single: Iterable[Result] = ()
) -> tuple[Section, ...]:
    """One per test, its configurations beside each other: a column, a level of the grid, a line of the curve and a bar
    more. ``single`` are the results of single runs, where ``results`` are over several.

    Where there is but one configuration, the same as ``sections``.
    """
    results = tuple(results)
    names = tuple(dict.fromkeys(result.configuration for result in results))
    if len(names) < 2:
        return sections(results, tests)
    return sections(map(_named, results), tests, beside=_CONFIGURATION, single=tuple(map(_named, single)))


CONFIGURATION: Final = "configuration"
"""The column that results have beside those of their method where configurations stand side by side."""
_CONFIGURATION: Final = Column(value=CONFIGURATION, head="Configuration", form="text")


def _named(result: Result) -> Result:
    """With its configuration as a parameter, which tables can show."""
    parameters = {**result.parameters, "configuration": result.configuration}
    return result.model_copy(update={"parameters": parameters, "configuration": DEFAULT})


def _with_column(table: ResultTable, column: Column | None) -> ResultTable:
    """The same with one more column, which also tells apart the columns of a grid, the lines of charts, and bars."""
    if column is None:
        return table
    first, *rest = table.columns
    grid = table.grid and table.grid.model_copy(update={"across": (*table.grid.across, column)})
    curve = table.curve and table.curve.model_copy(update={"lines": (*table.curve.lines, column)})
    bars = table.bars and table.bars.model_copy(update={"lines": (*table.bars.lines, column)})
    plots = tuple(plot.model_copy(update={"lines": (*plot.lines, column)}) for plot in table.plots)
    more = {"grid": grid, "curve": curve, "bars": bars, "plots": plots}
    return table.model_copy(update={"columns": (first, column, *rest), **more})


def with_tables() -> frozenset[str]:
    """The methods whose results have a section of their own."""
    return frozenset(kind for kind, method in find("nicbench.methods", Method).items() if method.tables())


def _without_empty(table: ResultTable, results: Sequence[Result]) -> ResultTable:
    """Without columns that may be left out and that no result fills."""
    known = [
        column
        for column in table.columns
        if not column.is_optional or any(value_of(result, column.value) is not None for result in results)
    ]
    return table.model_copy(update={"columns": tuple(known)})


def _of_others(table: ResultTable, method: str, results: Sequence[Result]) -> ResultTable:
    """Of imported results: not with a caption that says how nicbench measures, nor with columns that nobody filled."""
    imports = find("nicbench.methods", Method)[method].imports() if results[0].imported else None
    if imports is None:
        return table
    known = [
        column for column in table.columns if any(value_of(result, column.value) is not None for result in results)
    ]
    captions = {"caption": imports.caption or table.title, "notes": (), "clean_sentence": None}
    names = {column.value for column in known}
    said = tuple(text for text in table.sentences if _names_in(text) <= names)
    return table.model_copy(update={**captions, "columns": tuple(known), "sentences": said})


def _filled(table: ResultTable, parameters: Mapping[str, Any]) -> ResultTable:
    """With the names in its units replaced by the parameters that all results share ("% of {load_of}")."""
    known = defaultdict(lambda: UNKNOWN, parameters)

    def filled(part: Any, key: str = "") -> Any:
        if isinstance(part, dict):
            return {name: filled(value, name) for name, value in part.items()}
        if isinstance(part, tuple):
            return tuple(map(filled, part))
        return part.format_map(known) if key == "unit" and part else part

    return ResultTable.model_validate(filled(table.model_dump()))


def _in_megabits(table: ResultTable, results: Sequence[Result]) -> ResultTable:
    """With rates in Mb/s where none of their column reaches 0.1 Gb/s: in headings, charts and sentences alike."""
    slow = {
        column.value
        for column in table.columns
        if column.form == "gigabits"
        and max((number_of(result, column.value) or 0.0 for result in results), default=0.0) < _FEW_BITS_PER_S
    }

    def converted(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(converted, part))
        if not isinstance(part, dict):
            return part
        inner = {name: converted(value) for name, value in part.items()}
        is_slow = inner.get("form") == "gigabits" and inner.get("value") in slow
        return {**inner, "form": "megabits", "unit": "Mb/s"} if is_slow else inner

    return ResultTable.model_validate(converted(table.model_dump())) if slow else table


def _rows(results: Sequence[Result], table: ResultTable) -> tuple[Row, ...]:
    columns = [texts(column, results) for column in table.columns]
    return tuple(Row(tuple(cells[number] for cells in columns), result) for number, result in enumerate(results))


def _spoken(column: Column, cell: str) -> str:
    if column.value == "port":
        return cell if cell.startswith("port ") else f"port {cell}"
    if column.unit == "bytes":
        return f"{cell}-byte" if cell.isdigit() else cell
    return f"{cell}{_GAP}{column.unit}".replace("≥ ", "at least ") if column.unit else cell


def spoilt(section: Section) -> tuple[str, ...]:
    """A sentence for each row that rests on a disturbed trial, or on none."""
    return tuple(
        f"{_name(section.table, row)}: {'; '.join(row.result.disturbances) or row.result.verdict.value}"
        for row in section.rows
        if row.result.verdict not in (ResultVerdict.VALID, ResultVerdict.IMPORTED)
    )


def _name(table: ResultTable, row: Row) -> str:
    """Its first cell; of a grid, where it stands in it: "64 bytes, 75 % of line rate"."""
    if table.grid is None:
        head = table.columns[0]
        return f"{row.cells[0]} {head.unit or head.head}"
    return ", ".join(with_unit(column, texts(column, [row.result])[0]) for column in _placed(table.grid))


def _telling(table: ResultTable, results: Sequence[Result]) -> tuple[Column, ...]:
    """The columns that tell results of several configurations apart; at least that of the configuration."""
    placed = _placed(table.grid) if table.grid is not None else table.columns[:2]
    return tuple(
        column
        for column in placed
        if column.value == _CONFIGURATION.value or len({text_of(column, result) for result in results}) > 1
    )


def _name_of(telling: Sequence[Column], result: Result) -> str:
    """The configuration in quotes, for it is a word of the bench file's author."""
    told = (with_unit(column, text_of(column, result)) for column in telling)
    words = (
        f"“{text}”" if column.value == _CONFIGURATION.value else text
        for column, text in zip(telling, told, strict=True)
    )
    return ", ".join(words)


def _placed(grid: Grid) -> tuple[Column, ...]:
    """What says where a result stands in it."""
    return (*([grid.each] if grid.each else []), *grid.across, grid.rows)


def names_line_rate(section: Section) -> bool:
    """Whether a heading of the section speaks of the line rate."""
    grid = section.table.grid
    columns = (*section.table.columns, *((grid.rows, grid.cell) if grid else ()))
    return any("line rate" in f"{column.head} {column.unit}".lower() for column in columns)
