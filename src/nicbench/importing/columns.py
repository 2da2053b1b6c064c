"""Which column of a file is which of the method's: by its heading, never by its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.errors import UsageError
from nicbench.importing.cells import Cell, Sheet
from nicbench.importing.headings import parse_heading, plain
from nicbench.importing.options import ImportOptions
from nicbench.importing.units import Unit, parse_unit
from nicbench.model.import_table import ImportColumn, ImportTable
from nicbench.problems import Problem, nearest, quote, suggest

LINK: Final = ImportColumn(value="link", name="link", quantity="link", also=("link speed", "port speed", "speed"))
"""Every method takes it: the speed of the ports of a row."""

_BOUND: Final = r"(?P<number>\d{1,9}(?:\.\d{1,9})?) ?(?P<unit>ns|us|ms|s)"


@dataclass(frozen=True, slots=True)
class Assigned:
    """A column of the file (``index``) and what it is; ``value`` is that of the column with its bound put in."""

    column: ImportColumn
    index: int
    head: Cell
    unit: Unit | None
    value: str

    @property
    def key(self) -> str:
        """The value, and which part of it."""
        part = self.column.bound
        return self.value if part in (None, "value") else f"{self.value}:{part}"


@dataclass(frozen=True, slots=True)
class Assignment:
    """``configurations`` are indices of columns; ``ignored`` are the headings that nothing was made of."""

    columns: tuple[Assigned, ...]
    configurations: tuple[int, ...]
    ignored: tuple[str, ...]
    problems: tuple[Problem, ...]


def chosen_rows(sheet: Sheet, options: ImportOptions) -> Sheet:
    """The rows that ``where`` asks for. UsageError where there is none."""
    columns = [(_known(sheet, name, "--where"), text) for name, text in options.where.items()]
    rows = [row for row in sheet.rows if all(row[index].text == text for index, text in columns)]
    if not rows:
        wanted = " and ".join(f"{name} = {text}" for name, text in options.where.items())
        found = ", ".join(dict.fromkeys(row[columns[0][0]].text for row in sheet.rows))
        raise UsageError(f"no row has {wanted}", next_step=f"its values are: {found[:300]}")
    return Sheet(sheet.heads, tuple(rows), sheet.ignored)


def with_given(sheet: Sheet, options: ImportOptions) -> Sheet:
    """With the columns that the file lacks; their cells have the place of their row."""
    heads = (*sheet.heads, *(Cell(name, sheet.heads[0].position) for name in options.given))
    given = tuple(options.given.values())
    return Sheet(
        heads, tuple((*row, *(Cell(text, row[0].position) for text in given)) for row in sheet.rows), sheet.ignored
    )


def assign(sheet: Sheet, table: ImportTable, options: ImportOptions) -> Assignment:
    """Finds the method's column for each heading. UsageError where an option names a column that is not there."""
    configurations = tuple(_known(sheet, name, "--configuration") for name in options.configurations)
    ignore = {_known(sheet, name, "--ignore") for name in options.ignore}
    for option, names in (("--column", options.columns), ("--unit", options.units)):
        for name in names:
            _known(sheet, name, option)
    columns = (*table.columns, LINK)
    found: list[Assigned] = []
    ignored, problems = list(sheet.ignored), []
    for index, head in enumerate(sheet.heads):
        if index in configurations:
            continue
        if index in ignore:
            ignored.append(head.text)
            continue
        one = _find(columns, index, head, options)
        taken = next((other for other in found if one and other.key == one.key), None)
        if one is None and head.text in options.where:
            ignored.append(head.text)
        elif one is None:
            problems.append(_unknown(head, options.columns.get(head.text, head.text), columns))
        elif taken is not None:
            what = f"{quote(head.text)} and {quote(taken.head.text)} are both the {one.column.name}"
            problems.append(Problem(head.position, what, f"leave one of them out: --ignore '{head.text}'"))
        else:
            found.append(one)
    if not problems:
        problems += _missing(sheet, table, found)
    return Assignment(tuple(found), configurations, tuple(ignored), tuple(problems))


def _find(columns: Iterable[ImportColumn], index: int, head: Cell, options: ImportOptions) -> Assigned | None:
    text = options.columns.get(head.text, head.text)
    heading = parse_heading(text)
    whole = plain(text)
    named = options.units.get(head.text)
    for column in columns:
        if "{bound}" in column.value:
            bound_ns = _bound_ns(column, whole)
            if bound_ns is not None:
                return Assigned(column, index, head, None, column.value.format(bound=bound_ns))
        elif whole in _names(column):  # before the name without its end: "PDR % of line rate" is no PDR
            is_unit_alone = heading.name == whole
            own = heading.unit if heading.unit and (heading.unit.kind == "percent" or is_unit_alone) else None
            return Assigned(column, index, head, named or own, column.value)
    for column in columns:
        if "{bound}" not in column.value and heading.name in _names(column):
            return Assigned(column, index, head, named or heading.unit, column.value)
    return None


def _names(column: ImportColumn) -> tuple[str, ...]:
    return tuple(plain(name) for name in (column.name, *column.also))


def _bound_ns(column: ImportColumn, heading: str) -> int | None:
    """The bound in the heading of such a column."""
    for name in (column.name, *column.also):
        before, _, after = name.partition("{bound}")
        pattern = f"{re.escape(plain(before))} ?{_BOUND} ?{re.escape(plain(after))}".rstrip()
        match = re.fullmatch(pattern, heading)
        unit = parse_unit(match["unit"]) if match else None
        if match and unit is not None:
            return round(float(match["number"]) * float(unit.factor))
    return None


def _known(sheet: Sheet, name: str, option: str) -> int:
    index = sheet.index_of(name)
    if index is None:
        raise UsageError(
            f"{option}: the file has no column {quote(name)}", next_step=suggest(name, sheet.texts(), "column")
        )
    return index


def _unknown(head: Cell, text: str, columns: Sequence[ImportColumn]) -> Problem:
    """With the nearest name, what is expected, and how to leave the column out."""
    names = {plain(name): column.name for column in columns for name in (column.name, *column.also)}
    close = nearest(parse_heading(text).name, list(names))
    meant = f"did you mean `{names[close]}`? " if close else ""
    expected = f"expected are {expected_columns(columns)}"
    others = f"--column '{head.text}=NAME' names it, --ignore '{head.text}' leaves it out"
    return Problem(head.position, f"unknown column {quote(head.text)}", f"{meant}{expected}; {others}")


def expected_columns(columns: Iterable[ImportColumn]) -> str:
    """Their names, as a list in a sentence."""
    return ", ".join(f"`{column.name}`" for column in columns)


def _missing(sheet: Sheet, table: ImportTable, found: Sequence[Assigned]) -> list[Problem]:
    values = {one.column.value for one in found}
    names: Mapping[str, str] = {column.value: column.name for column in reversed(table.columns)}
    problems = []
    place = sheet.heads[0].position
    expected = f"expected are {expected_columns((*table.columns, LINK))}"
    for column in table.columns:
        if column.is_required and column.value not in values:
            hint = f"where it is the same in all rows: --set '{column.name}=...'; {expected}"
            problems.append(Problem(place, f"there is no column `{column.name}`", hint))
    if not values.intersection(table.any_of):
        either = " or ".join(f"`{names[value]}`" for value in table.any_of)
        problems.append(Problem(place, f"there is no column {either}", expected))
    return problems
