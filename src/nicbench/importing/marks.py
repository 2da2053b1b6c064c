"""Decides from whole columns how a file writes its numbers; where figures could be two numbers, a question is asked.

Each way of writing is tried on every number of the file. A way is ruled out by a number that is not written so, by one
that cannot be of its kind (98,765 % of a line rate, half a frame), and by long numbers without marks in a column whose
other numbers would have marks between thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Final

from nicbench.core.errors import Problem, quote
from nicbench.core.frozen import frozen
from nicbench.core.number_reader import POINT, WRITINGS, Decimal, Writing, has_decimal_mark_alone, has_marks
from nicbench.core.units import format_digits
from nicbench.importing.cells import Cell
from nicbench.importing.columns import PrintedNumber, parse_number

_DIGITS_SHOWN: Final = 12


@frozen
class NumberColumn:
    """The cells of a column of numbers; ``is_possible`` says whether a number can be one of its kind."""

    name: str
    cells: tuple[Cell, ...]
    is_possible: Callable[[PrintedNumber], bool]


def writing_said(decimal: Decimal | None, thousands: str | None) -> Writing:
    """Returns the writing that options name; without them numbers have a decimal point and nothing between thousands.

    Where points set thousands apart, the decimal mark can only be a comma.
    """
    return Writing(decimal or ("comma" if thousands == "point" else POINT.decimal), thousands)


def settle(
    columns: Iterable[NumberColumn], decimal: Decimal | None, thousands: str | None
) -> tuple[Writing, Problem | None]:
    """Returns how the numbers are written; with a problem where the options do not say it, or contradict the numbers.

    ``decimal`` and ``thousands`` are what the options say.
    """
    wanted = writing_said(decimal, thousands)
    left = [
        writing for writing in WRITINGS if decimal in (None, writing.decimal) and thousands in (None, writing.thousands)
    ]
    numbers = []
    for column, cell in [(of, cell) for of in columns for cell in of.cells]:
        if cell.is_typed or not has_marks(cell.text) or _is_alike(cell.text, left):
            continue
        number = _read(column, cell, left)
        if number is None:  # no number by any of them: it is told where it is read
            continue
        numbers.append(number)
        left = [writing for writing in left if writing in number.readings]
    left = [writing for writing in left if _is_even(writing, numbers)] or left
    apart = [number for number in numbers if len({number.readings[writing].value for writing in left}) > 1]
    if apart:
        return left[0], _question(apart[0], left)
    if wanted in left:
        return wanted, None
    found = min(left, key=lambda writing: writing.thousands is not None)
    return found, _told(next((number for number in numbers if wanted not in number.readings), numbers[0]), found)


@frozen
class _Number:
    """A cell with marks, and what it is by each way of writing that fits it; ``column`` is its column."""

    column: NumberColumn
    cell: Cell
    readings: dict[Writing, PrintedNumber]


def _is_alike(text: str, writings: Sequence[Writing]) -> bool:
    """Whether the only mark is the decimal mark of every one of these ways, as in most cells."""
    decimals = {writing.decimal for writing in writings}
    return len(decimals) == 1 and has_decimal_mark_alone(text, decimals.pop())


def _read(column: NumberColumn, cell: Cell, writings: Sequence[Writing]) -> _Number | None:
    """Returns the possible readings of a cell, or else the impossible ones; None where it is not a number."""
    readings = {}
    for writing in writings:
        try:
            readings[writing] = parse_number(cell.text, writing)
        except ValueError:
            continue
    possible = {writing: number for writing, number in readings.items() if column.is_possible(number)}
    return _Number(column, cell, possible or readings) if readings else None


def _is_even(writing: Writing, numbers: Sequence[_Number]) -> bool:
    """Whether no column has some numbers with marks between thousands, and long ones without."""
    grouped = {id(number.column): number.column for number in numbers if number.readings[writing].is_grouped}
    return not any(_has_long(column, writing) for column in grouped.values())


def _has_long(column: NumberColumn, writing: Writing) -> bool:
    for cell in column.cells:
        try:
            if not cell.is_typed and parse_number(cell.text, writing).is_long:
                return True
        except ValueError:
            continue
    return False


def _question(number: _Number, left: Sequence[Writing]) -> Problem:
    """Asks which of the numbers a cell is, with the options that answer it."""
    answers: dict[Fraction, Writing] = {}
    for writing in left:
        answers.setdefault(number.readings[writing].value, writing)
    text = number.cell.text
    ways = [f"{' '.join(writing.options)} if it is {_shown(value)}" for value, writing in answers.items()]
    what = f"{number.column.name} {quote(text)} can be {' or '.join(map(_shown, answers))}"
    why = "three digits are behind every mark that could tell"
    return Problem(number.cell.position, f"{what}: {why}", f"write {', '.join(ways)}")


def _told(number: _Number, found: Writing) -> Problem:
    """Says which marks the numbers have, which options do not say."""
    marks = [f"a {found.thousands} sets its thousands apart"] if found.thousands else []
    marks += ["its decimal mark is a comma"] if found.decimal == "comma" else []
    what = f"{number.column.name} {quote(number.cell.text)}: {' and '.join(marks or ['its decimal mark is a point'])}"
    step = f"{' '.join(found.options)} reads it as {_shown(number.readings[found].value)}"
    return Problem(number.cell.position, what, step, found.options)


def _shown(value: Fraction) -> str:
    return format_digits(float(value), _DIGITS_SHOWN)
