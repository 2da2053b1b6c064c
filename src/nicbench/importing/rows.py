"""Reads rows into figures: each cell in the base unit of its value, with its rounding and its printed text."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Final

from nicbench.core.errors import Problem, quote
from nicbench.core.frozen import frozen
from nicbench.core.number_reader import POINT, Writing
from nicbench.core.result import PrintedValue
from nicbench.core.table import ImportTable, Quantity
from nicbench.core.units import FRAME_OVERHEAD_BYTES, format_digits, line_rate_frames_per_s
from nicbench.importing.cells import Cell, Sheet
from nicbench.importing.columns import (
    FORMS,
    NOTHING,
    AssignedColumn,
    Assignment,
    ImportOptions,
    Link,
    PrintedNumber,
    Unit,
    parse_link,
    parse_number,
)
from nicbench.importing.marks import NumberColumn, settle

_SMALLEST_FRAME: Final = 64
_LARGEST_FRAME: Final = 65_535
_TIME_SCALES: Final = {"_ns": Fraction(1), "_us": Fraction(1, 10**3), "_ms": Fraction(1, 10**6)}


@frozen
class Figure:
    """One printed number. ``value`` and ``rounding`` are in the base unit; ``scale`` converts the printed unit to
    it.
    """

    name: str
    quantity: Quantity
    value: float
    rounding: float
    scale: float
    printed: PrintedValue
    cell: Cell

    def words(self, value: float | None = None) -> str:
        """Formats the printed number, or another ``value``, in the printed unit."""
        text = self.printed.text if value is None else format_digits(value / self.scale, 6)
        return f"{text} {self.printed.unit}" if self.printed.unit else text


@dataclass(slots=True)
class ReadRow:
    """A row as read. ``figures`` and ``texts`` are keyed by value; ``load_of`` is the basis of a load in percent."""

    line: int
    first: Cell
    configuration: str = "default"
    frame_bytes: int | None = None
    load_of: str | None = None
    link: Link | None = None
    link_is_printed: bool = False
    figures: dict[str, Figure] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def line_rate_frames_per_s(self) -> float | None:
        """The line rate of the link; None where the link or the frame size is not known."""
        if self.link is None or self.frame_bytes is None:
            return None
        return self.link.line_rate_frames_per_s(self.frame_bytes)


class _WrongCellError(ValueError):
    """Says what is wrong with a cell, and what to do."""

    def __init__(self, message: str, next_step: str | None = None, flags: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.next_step = next_step
        self.flags = flags
        """Options that would settle it for the whole column, which is then told once."""


def read_rows(
    sheet: Sheet, assignment: Assignment, table: ImportTable, options: ImportOptions
) -> tuple[list[ReadRow], list[Problem]]:
    """Reads every row; returns the rows and the problems of all cells."""
    # Conversions need the frame size and the link, so these are read first.
    order = sorted(assignment.columns, key=lambda one: one.column.quantity not in ("frame_size", "link"))
    rows = []
    problems = []
    writing, asked = settle(_number_columns(sheet, order, table, options), options.decimal, options.thousands)
    problems += [asked] if asked is not None else []
    problems += _find_blanks(sheet, assignment)
    for cells in sheet.rows:
        names = [cells[index].text for index in assignment.configurations]
        row = ReadRow(cells[0].position.line, cells[0], ", ".join(names) or "default", link=options.link)
        for one in order:
            cell = cells[one.index]
            try:
                _read(row, one, cell, table, options, writing)
            except _WrongCellError as error:
                if not cell.text and any(problem.position == cell.position for problem in problems):
                    continue
                what = f"{one.column.name} {quote(cell.text)}: {error}"
                if not any(error.flags and problem.flags == error.flags for problem in problems):
                    problems.append(Problem(cell.position, what, error.next_step, error.flags))
        rows.append(row)
    problems += _find_unplaced(sheet, assignment, table)
    return rows, problems


def _find_unplaced(sheet: Sheet, assignment: Assignment, table: ImportTable) -> list[Problem]:
    """Returns the first row that is a part of something (an instance) without saying of what (a run), as others do."""
    indices = {one.value: one.index for one in assignment.columns}
    problems = []
    for rule in table.statistics:
        place = indices.get(rule.place or "")
        below = [indices[name] for name in rule.below if name in indices]
        if place is None or not any(row[place].text for row in sheet.rows):
            continue
        first = next(
            (row[place] for row in sheet.rows if not row[place].text and any(row[at].text for at in below)), None
        )
        if first is not None:
            head = sheet.heads[place].text
            what = f"{quote(head)} is empty, and the row is of a part of one"
            hint = f"--repeat {shlex.quote(head)} takes the value above for each empty cell; or write it"
            problems.append(Problem(first.position, what, hint, ("--repeat", head)))
    return problems


_MOST_BITS_PER_S: Final = 1.6e12
"""The fastest port that there is, where no link is named: it tells 37.202 Mpps from 37,202."""
_MOST: Final = {
    "frame_rate": line_rate_frames_per_s(_MOST_BITS_PER_S, _SMALLEST_FRAME),
    "bit_rate": _MOST_BITS_PER_S,
    "percent": 100.0,
    "time": 1e12,
    "clock": 1e11,
}


def _number_columns(
    sheet: Sheet, columns: Sequence[AssignedColumn], table: ImportTable, options: ImportOptions
) -> Iterator[NumberColumn]:
    """Yields the columns that hold numbers, with what each can be."""
    for one in columns:
        if one.column.quantity != "text":
            cells = tuple(row[one.index] for row in sheet.rows)
            yield NumberColumn(one.column.name, cells, partial(_is_possible, one, table, options))


def _is_possible(one: AssignedColumn, table: ImportTable, options: ImportOptions, number: PrintedNumber) -> bool:
    """Whether a number can be one of its kind: it only rules out readings."""
    quantity, unit = one.column.quantity, number.unit or one.unit
    if quantity in ("frame_size", "count") and number.value.denominator != 1:
        return False
    if quantity == "frame_size":
        return _SMALLEST_FRAME <= number.value <= _LARGEST_FRAME
    if quantity == "percent" or (unit is not None and unit.kind == "percent"):
        return number.value <= (100 * _MOST["percent"] if table.overload else _MOST["percent"])
    if unit is None or quantity == "media_rate":
        return True
    most = _MOST.get(unit.kind, math.inf)
    if options.link is not None and unit.kind == "frame_rate":
        most = options.link.line_rate_frames_per_s(_SMALLEST_FRAME)
    return number.value * unit.factor <= most


_BLANK: Final = ("it tells rows apart and may not be empty", "write it, or remove the row")


def _find_blanks(sheet: Sheet, assignment: Assignment) -> list[Problem]:
    """Returns the first empty cell of each column that tells rows apart, as cells leave that were merged."""
    told = [one.index for one in assignment.columns if one.column.is_filled]
    problems = []
    for index in (*assignment.configurations, *told):
        cells = [row[index] for row in sheet.rows]
        first = next((cell for cell in cells if not cell.text), None)
        if first is None or not any(cell.text for cell in cells):
            continue
        head = sheet.heads[index].text
        flags = ("--repeat", head) if cells[0].text else ()
        hint = f"--repeat {shlex.quote(head)} takes the value above for each empty cell; or write it" if flags else None
        problems.append(Problem(first.position, f"{quote(head)} is empty: {_BLANK[0]}", hint or _BLANK[1], flags))
    return problems


def _read(
    row: ReadRow, one: AssignedColumn, cell: Cell, table: ImportTable, options: ImportOptions, writing: Writing
) -> None:
    if cell.text.lower() in NOTHING:
        if one.column.is_required:
            raise _WrongCellError(*_BLANK)
        return
    quantity = one.column.quantity
    if quantity == "text":
        row.texts[one.value] = _text(cell, one)
    elif quantity == "link":
        row.link, row.link_is_printed = _link(cell, one, options, writing), True
    elif quantity == "frame_size":
        row.frame_bytes = _frame_bytes(cell, one, writing)
    else:
        number = _number(cell, writing)
        unit = number.unit or one.unit
        if quantity == "load":
            row.load_of = _load_of(unit, table)
        scale = _scale(one, unit, row)
        row.figures[one.key] = Figure(
            name=one.column.name,
            quantity=quantity,
            value=float(number.value * scale),
            rounding=0.0 if quantity == "count" else float(number.rounding * scale),
            scale=float(scale),
            printed=PrintedValue(text=number.text, unit=_unit_words(unit, one)),
            cell=cell,
        )


def _text(cell: Cell, one: AssignedColumn) -> str:
    """Returns the text as written, or the known word that equals it in lower case."""
    words = one.column.words
    if not words:
        return cell.text
    known = next((word for word in words if word == cell.text.lower()), None)
    if known is None:
        raise _WrongCellError(f"it is none of {', '.join(words)}", f"write {' or '.join(words)}, or nothing")
    return known


def _number(cell: Cell, writing: Writing) -> PrintedNumber:
    try:
        return parse_number(cell.text, POINT if cell.is_typed else writing)
    except ValueError as error:
        raise _WrongCellError("it is no number", str(error)) from error


def _frame_bytes(cell: Cell, one: AssignedColumn, writing: Writing) -> int:
    number = _number(cell, writing)
    unit = number.unit or one.unit
    if unit is not None and unit.kind != "size":
        raise _WrongCellError(f"{unit} is no unit of a frame size", "a frame size is in bytes, with its FCS")
    if number.value.denominator != 1 or not _SMALLEST_FRAME <= number.value <= _LARGEST_FRAME:
        raise _WrongCellError(
            f"an Ethernet frame has a whole number of bytes from {_SMALLEST_FRAME} to {_LARGEST_FRAME}, with its FCS"
        )
    return int(number.value)


def _link(cell: Cell, one: AssignedColumn, options: ImportOptions, writing: Writing) -> Link:
    unit = one.unit
    text = f"{cell.text} {unit.name}" if unit is not None and unit.kind == "bit_rate" else cell.text
    try:
        link = parse_link(text, POINT if cell.is_typed else writing)
    except ValueError as error:
        raise _WrongCellError("it is no speed", str(error)) from error
    return Link(link.bits_per_s, link.ports or options.ports)


def _load_of(unit: Unit | None, table: ImportTable) -> str:
    """Returns the basis of a load in percent: from the heading, or as the method declares it."""
    of = (unit.of if unit else None) or table.load_of
    if of is None:
        hint = "write it in the heading, `load [% of line rate]`, or by --unit 'COLUMN=% of line rate'"
        raise _WrongCellError("it is not said what 100 % is", hint)
    return of


def _scale(one: AssignedColumn, unit: Unit | None, row: ReadRow) -> Fraction:
    """Returns the factor from the printed unit to the base unit of the value."""
    quantity = one.column.quantity
    if quantity in ("count", "number"):
        if unit is not None and unit.kind not in ("count", "size"):
            raise _WrongCellError(f"{unit} is no unit of it", "it is a plain number")
        return Fraction(1)
    forms = _FORMS.get(quantity, FORMS)
    if unit is None:
        hint = f"write it in the heading, `{one.column.name} [UNIT]`, or by --unit '{one.head.text}=UNIT': {forms}"
        flags = ("--unit", f"{one.head.text}=UNIT")
        raise _WrongCellError("it has no unit, which is never guessed", hint, flags)
    if unit.kind in _KINDS[quantity]:
        if quantity == "frame_rate":
            return _frame_rate_scale(one, unit, row)
        if quantity == "bit_rate":
            return unit.factor if _layer(unit, one) == 2 else unit.factor * _payload_share(row)
        if quantity == "payload_rate" and unit.layer is not None:
            raise _WrongCellError(f"{unit} counts frames, and this is of payload", "it is in Mb/s or Gb/s, no layer")
        if quantity == "media_rate" and unit.factor != 1:
            raise _WrongCellError(f"{unit} counts frames on a line, and this is of film", "it is in fps")
        if quantity == "time":
            return unit.factor * next((scale for end, scale in _TIME_SCALES.items() if one.value.endswith(end)), 1)
        return unit.factor
    raise _WrongCellError(f"{unit} is no unit of it", f"units that are known: {forms}")


_FORMS: Final = {"media_rate": "fps"}
_KINDS: Final = {
    "frame_rate": ("frame_rate", "bit_rate", "percent"),
    "media_rate": ("frame_rate",),
    "bit_rate": ("bit_rate",),
    "payload_rate": ("bit_rate",),
    "percent": ("percent",),
    "load": ("percent",),
    "time": ("time",),
    "clock": ("clock",),
}


def _frame_rate_scale(one: AssignedColumn, unit: Unit, row: ReadRow) -> Fraction:
    """Converts bit rates by the frame's bytes (plus 20 of preamble and gap on layer 1), percentages by the line
    rate.
    """
    if unit.kind == "frame_rate":
        return unit.factor
    if row.frame_bytes is None:
        raise _WrongCellError(f"{unit} is a frame rate only with a frame size", "the row has none")
    if unit.kind == "percent":
        line_rate = row.line_rate_frames_per_s
        if line_rate is None:
            hint = '--link-speed "25 Gb/s" names it'
            raise _WrongCellError("a share of the line rate needs the link's speed", hint, ("--link-speed", "SPEED"))
        return Fraction(line_rate) / 100
    overhead = FRAME_OVERHEAD_BYTES if _layer(unit, one) == 1 else 0
    return unit.factor / ((row.frame_bytes + overhead) * 8)


def _layer(unit: Unit, one: AssignedColumn) -> int:
    if unit.layer is None:
        column = one.head.text
        hint = f"write it in the heading, `{unit.name} L2`, or by --unit '{column}={unit.name} L2'"
        flags = ("--unit", f"{column}={unit.name} LAYER")
        raise _WrongCellError("it is not said whether that is of layer 1 or of layer 2", hint, flags)
    return unit.layer


def _payload_share(row: ReadRow) -> Fraction:
    """Returns the share of the bits on the wire that belong to the frame."""
    if row.frame_bytes is None:
        raise _WrongCellError("a bit rate of layer 1 needs a frame size", "the row has none")
    return Fraction(row.frame_bytes, row.frame_bytes + FRAME_OVERHEAD_BYTES)


def _unit_words(unit: Unit | None, one: AssignedColumn) -> str | None:
    """Names the unit as in headings of reports; layer 1 is named, because bit rates there are on layer 2."""
    if unit is None:
        return "frames" if one.column.quantity == "count" and one.value.endswith("frames") else None
    if one.column.quantity == "media_rate":
        return "fps"
    return f"{unit.name} L1" if unit.layer == 1 else unit.name


def find_same_points(rows: Sequence[ReadRow], keys: Sequence[tuple[object, ...]]) -> list[Problem]:
    """Returns a problem for each row that is about the same point as an earlier row."""
    seen: dict[tuple[object, ...], int] = {}
    problems = []
    for row, key in zip(rows, keys, strict=True):
        if key in seen:
            hint = "choose by --where COLUMN=VALUE, or tell them apart by --configuration COLUMN"
            problems.append(Problem(row.first.position, f"this row is about the same as line {seen[key]}", hint))
        seen.setdefault(key, row.line)
    return problems
