"""Maps each column of a file to a column of the method: by heading and unit or by option, never by position."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nicbench.core.errors import Problem, UsageError, nearest_name, quote, suggest
from nicbench.core.table import ImportColumn, ImportTable
from nicbench.importing.cells import Cell, Sheet
from nicbench.importing.units import Decimal, Link, Unit, parse_unit


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the user states about a file; column names are those of the file. No default is a guess.

    ``columns``: the name that a file's column has in nicbench. ``given``: a column that the file lacks, with the value
    of all its rows. ``where``: only rows with this text. ``configurations``: columns that name what is compared.
    ``loss_ratio``: the share of frames that a PDR allows to be lost. ``errata``: implausible figures are taken as
    printed, and listed.
    """

    link: Link | None = None
    ports: int | None = None
    columns: dict[str, str] = field(default_factory=dict)
    units: dict[str, Unit] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    decimal: Decimal = "point"
    thousands: str | None = None
    loss_ratio: float | None = None
    errata: bool = False


_BRACKETS: Final = re.compile(
    r"(?P<name>.*?)\s*[\[(](?P<unit>[^\[\]()]+)[\])]\s*(?P<layer>\(?\bL[12]\)?)?", re.IGNORECASE
)
_LONGEST_UNIT_WORDS: Final = 4
# At the end of a name these are words, not units, as in "offered frames".
_WORDS: Final = frozenset({"frames", "frame", "packets", "packet", "b"})


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; ``name`` is normalised for comparison: lower case and single blanks."""

    name: str
    unit: Unit | None


def parse_heading(text: str) -> Heading:
    """Splits a heading into name and unit; one that is only a unit ("% of line rate") is its own name."""
    bracketed = _BRACKETS.fullmatch(text)
    if bracketed is not None:
        unit = parse_unit(f"{bracketed['unit']} {bracketed['layer'] or ''}".strip())
        if unit is not None:
            return Heading(plain(bracketed["name"]) or plain(text), unit)
    words = re.split(r"[\s_,]+", text.strip())
    for count in range(min(_LONGEST_UNIT_WORDS, len(words)), 0, -1):
        written = " ".join(words[-count:])
        unit = None if written.lower() in _WORDS else parse_unit(written)
        if unit is not None:
            name = " ".join(words[:-count])
            return Heading(plain(name) if name else plain(text), unit)
    return Heading(plain(text), None)


def plain(name: str) -> str:
    """Normalises a name: case, marks between words, and the spelling of "percent" do not matter."""
    small = name.lower().replace("\u00b5", "u").replace("\u03bc", "u").replace("%", " percent ")
    return " ".join(re.sub(r"(?<!\d)\.|\.(?!\d)|[^a-z0-9.]+", " ", small).split())


LINK: Final = ImportColumn(value="link", name="link", quantity="link", also=("link speed", "port speed", "speed"))
"""The speed of the ports of a row: a column that every method takes."""

_BOUND: Final = r"(?P<number>\d{1,9}(?:\.\d{1,9})?) ?(?P<unit>ns|us|ms|s)"


@dataclass(frozen=True, slots=True)
class AssignedColumn:
    """A column of the file (``index``) and its meaning; ``value`` is the column's value, with its bound filled in."""

    column: ImportColumn
    index: int
    head: Cell
    unit: Unit | None
    value: str

    @property
    def key(self) -> str:
        """The value's name, and which part of it (value, lower or upper bound)."""
        part = self.column.bound
        return self.value if part in (None, "value") else f"{self.value}:{part}"


@dataclass(frozen=True, slots=True)
class Assignment:
    """The meaning of all columns; ``configurations`` are indices, ``ignored`` the headings not used."""

    columns: tuple[AssignedColumn, ...]
    configurations: tuple[int, ...]
    ignored: tuple[str, ...]
    problems: tuple[Problem, ...]


def choose_rows(sheet: Sheet, options: ImportOptions) -> Sheet:
    """Returns the rows selected by ``where``. UsageError where there is none."""
    columns = [(_require_column(sheet, name, "--where"), text) for name, text in options.where.items()]
    rows = [row for row in sheet.rows if all(row[index].text == text for index, text in columns)]
    if not rows:
        wanted = " and ".join(f"{name} = {text}" for name, text in options.where.items())
        found = ", ".join(dict.fromkeys(row[columns[0][0]].text for row in sheet.rows))
        raise UsageError(f"no row has {wanted}", next_step=f"its values are: {found[:300]}")
    return Sheet(sheet.heads, tuple(rows), sheet.ignored)


def add_given_columns(sheet: Sheet, options: ImportOptions) -> Sheet:
    """Adds the columns that the file lacks; their cells have the position of their row."""
    heads = (*sheet.heads, *(Cell(name, sheet.heads[0].position) for name in options.given))
    given = tuple(options.given.values())
    return Sheet(
        heads, tuple((*row, *(Cell(text, row[0].position) for text in given)) for row in sheet.rows), sheet.ignored
    )


def assign(sheet: Sheet, table: ImportTable, options: ImportOptions) -> Assignment:
    """Finds the method's column for each heading. UsageError where an option names a column that is not there."""
    configurations = tuple(_require_column(sheet, name, "--configuration") for name in options.configurations)
    ignore = {_require_column(sheet, name, "--ignore") for name in options.ignore}
    for option, names in (("--column", options.columns), ("--unit", options.units)):
        for name in names:
            _require_column(sheet, name, option)
    columns = (*table.columns, LINK)
    found: list[AssignedColumn] = []
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
            problems.append(_unknown_column(head, options.columns.get(head.text, head.text), columns))
        elif taken is not None:
            what = f"{quote(head.text)} and {quote(taken.head.text)} are both the {one.column.name}"
            problems.append(Problem(head.position, what, f"leave one of them out: --ignore '{head.text}'"))
        else:
            found.append(one)
    if not problems:
        problems += _missing(sheet, table, found)
    return Assignment(tuple(found), configurations, tuple(ignored), tuple(problems))


def _find(columns: Iterable[ImportColumn], index: int, head: Cell, options: ImportOptions) -> AssignedColumn | None:
    text = options.columns.get(head.text, head.text)
    heading = parse_heading(text)
    whole = plain(text)
    named = options.units.get(head.text)
    for column in columns:
        if "{bound}" in column.value:
            bound_ns = _bound_ns(column, whole)
            if bound_ns is not None:
                return AssignedColumn(column, index, head, None, column.value.format(bound=bound_ns))
        elif whole in _names(column):  # checked before names without their unit: "PDR % of line rate" is not "PDR"
            is_unit_alone = heading.name == whole
            own = heading.unit if heading.unit and (heading.unit.kind == "percent" or is_unit_alone) else None
            return AssignedColumn(column, index, head, named or own, column.value)
    for column in columns:
        if "{bound}" not in column.value and heading.name in _names(column):
            return AssignedColumn(column, index, head, named or heading.unit, column.value)
    return None


def _names(column: ImportColumn) -> tuple[str, ...]:
    return tuple(plain(name) for name in (column.name, *column.also))


def _bound_ns(column: ImportColumn, heading: str) -> int | None:
    """Returns the bound in the heading of such a column, in ns; None where it has none."""
    for name in (column.name, *column.also):
        before, _, after = name.partition("{bound}")
        pattern = f"{re.escape(plain(before))} ?{_BOUND} ?{re.escape(plain(after))}".rstrip()
        match = re.fullmatch(pattern, heading)
        unit = parse_unit(match["unit"]) if match else None
        if match and unit is not None:
            return round(float(match["number"]) * float(unit.factor))
    return None


def _require_column(sheet: Sheet, name: str, option: str) -> int:
    index = sheet.index_of(name)
    if index is None:
        raise UsageError(
            f"{option}: the file has no column {quote(name)}", next_step=suggest(name, sheet.texts(), "column")
        )
    return index


def nearest_column(heading: str, columns: Iterable[ImportColumn]) -> str | None:
    """Returns the known column whose name is most similar to a heading; None where none is similar."""
    names = {plain(name): column.name for column in columns for name in (column.name, *column.also)}
    close = nearest_name(parse_heading(heading).name, list(names))
    return names[close] if close else None


def _unknown_column(head: Cell, text: str, columns: Sequence[ImportColumn]) -> Problem:
    """Describes the problem with the nearest name, the expected names, and how to ignore the column."""
    close = nearest_column(text, columns)
    meant = f"did you mean `{close}`? " if close else ""
    expected = f"expected are {expected_columns(columns)}"
    others = f"--column '{head.text}=NAME' names it, --ignore '{head.text}' leaves it out"
    return Problem(head.position, f"unknown column {quote(head.text)}", f"{meant}{expected}; {others}")


def expected_columns(columns: Iterable[ImportColumn]) -> str:
    """Lists the names of columns for a sentence."""
    return ", ".join(f"`{column.name}`" for column in columns)


def _missing(sheet: Sheet, table: ImportTable, found: Sequence[AssignedColumn]) -> list[Problem]:
    values = {one.column.value for one in found}
    names: Mapping[str, str] = {column.value: column.name for column in reversed(table.columns)}
    problems = []
    place = sheet.heads[0].position
    expected = f"expected are {expected_columns((*table.columns, LINK))}"
    for column in table.columns:
        if column.is_required and column.value not in values:
            hint = f"where it is the same in all rows: --set '{column.name}=...'; {expected}"
            flags = ("--set", f"{column.name}={column.name.upper()}")
            problems.append(Problem(place, f"there is no column `{column.name}`", hint, flags))
    if not values.intersection(table.any_of):
        either = " or ".join(f"`{names[value]}`" for value in table.any_of)
        problems.append(Problem(place, f"there is no column {either}", expected))
    return problems
