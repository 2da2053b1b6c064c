"""A section of the page: one table of results that a method describes (core/table.py), and what its rows say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from string import Formatter
from typing import Any, Final

from nicbench.core.plan import Plan
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.table import Column, FurtherTable, Grid, ResultTable
from nicbench.core.trial import Trial
from nicbench.report.cells import known_within, number_in, text_of, texts, value_of, with_unit
from nicbench.report.grids import GridTable
from nicbench.report.numbers import UNKNOWN, speak_number
from nicbench.report.timing import Timing

_GAP = "\u00a0"


@dataclass(frozen=True, slots=True)
class Row:
    """One result; ``cells`` are in the order of the columns, and ``doubt`` says why the result may not be relied on."""

    cells: tuple[str, ...]
    result: Result
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class RunKnowledge:
    """What a run knows beyond its results: its plan, and its trials by their id."""

    plan: Plan | None = None
    trials: Mapping[str, Trial] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Further:
    """The rows of a section in the columns of a further table."""

    table: FurtherTable
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One test of a method that has a table; ``configuration`` and ``scope`` are those of all its rows.

    ``says_caption`` is False where the section before it has the same caption. ``search_notes`` are said even of
    results that may be relied on.
    """

    test: str
    configuration: str
    scope: str
    table: ResultTable
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
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
        return self._tell()[0]

    @property
    def sentence(self) -> str | None:
        """What the first row says, without its subject: "forwards 9.66 Mpps of 64 bytes frames on one core". For a
        curve it first says up to which load nothing was lost. It may include what ``notes`` say of the row, and says
        so where its samples were disturbed.
        """
        said, behind = self._tell()
        return said and f"{said}{caveat(behind)}"

    def _tell(self) -> tuple[str | None, tuple[Row, ...]]:
        """Returns what the first row says, and the rows that it is said of."""
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
        texts_of = {
            column.value: speak_cell(column, self._round_for_speech(column, row, cell))
            + known_within(row.result, column.value)
            for column, cell in pairs
        }
        known = {LOAD: load_words(row.result.parameters), **words, **texts_of}
        chosen = next((text for text in said if names_in(text) <= known.keys()), None)
        return chosen and f"{chosen.format(**known)}{self._line_of(row, names_in(chosen))}"

    def _line_of(self, row: Row, named: Collection[str]) -> str:
        """Returns the line of the curve on which the row lies, in brackets, as far as a sentence has not ``named`` it;
        "" where there is only one.
        """
        lines = [each for each in (self.table.curve.lines if self.table.curve else ()) if each.value not in named]
        told = [
            with_unit(column, text_of(column, row.result))
            for column in lines
            if column.value != "configuration" and len({text_of(column, each.result) for each in self.rows}) > 1
        ]
        return f" ({', '.join(told)})" if told else ""

    def _worst_beside(self, first: Row) -> Row | None:
        """Returns the row at the load of ``first`` that lies farthest from free of loss, where the sentences do not
        tell all lines of the curve apart. Returns None where that row is no worse than ``first``.
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

        beside = [row for row in self.rows if line(row) == line(first)]
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
    of_runs = f" of {runs} run{'' if runs == 1 else 's'}" if runs else ""
    return f". Not reliable: the {disturbed.measured_by or 'trial'}s{of_runs} were disturbed"


def speak_cell(column: Column, cell: str) -> str:
    """Returns a cell as it is written within a sentence, with its unit."""
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
    """Returns the headings above those of columns, each with the number of columns that it spans; None above a column
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
