"""The one reader of numbers that others wrote: in tables with a decimal comma or marks between thousands, and by tools.

How a number is meant is never guessed from the number alone: ``234.962`` is read by a ``Writing``, which whoever has
the whole column decides.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Final, Literal

from nicbench.core.frozen import frozen

Decimal = Literal["point", "comma"]
DECIMALS: Final = MappingProxyType({"point": ".", "comma": ","})
THOUSANDS: Final = MappingProxyType(
    {
        "comma": ",",
        "point": ".",
        "blank": " \u00a0\u202f\u2009\u2007",
        "apostrophe": "'\u2019\u02bc",
        "underscore": "_",
    }
)
"""The characters that each mark between thousands may be, by its name."""
_LONGEST: Final = 40
_EVERY_MARK: Final = re.escape("".join(THOUSANDS.values()))
_MARKED: Final = re.compile(rf"[0-9][{_EVERY_MARK}][0-9]|^[+-]?[.,][0-9]")
_ALONE: Final = MappingProxyType(
    {name: re.compile(rf"[+-]?[0-9]*{re.escape(mark)}[0-9]+[^0-9]*") for name, mark in DECIMALS.items()}
)
_PLAIN: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


@frozen
class Writing:
    """How numbers are written: the decimal mark, and the mark between thousands (None: thousands are not marked)."""

    decimal: Decimal = "point"
    thousands: str | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the command line that say so."""
        thousands = ("--thousands", self.thousands) if self.thousands else ()
        return (*thousands, *(("--decimal", self.decimal) if not thousands or self.decimal == "comma" else ()))


POINT: Final = Writing()
WRITINGS: Final = tuple(
    Writing(decimal, thousands)
    for decimal in ("point", "comma")
    for thousands in (None, *THOUSANDS)
    if decimal != thousands
)
"""Every way in which numbers are written, those with the fewest marks first of each decimal mark."""


@frozen
class WrittenNumber:
    """A number; ``digits`` are as printed, with a decimal point and without marks; the true value is at most
    ``rounding`` away. ``rest`` is the text behind it.
    """

    digits: str
    value: Fraction
    rounding: Fraction
    rest: str
    is_grouped: bool
    """Whether marks set its thousands apart."""

    @property
    def is_long(self) -> bool:
        """Whether no mark sets its thousands apart although it has more than four digits before the decimal mark."""
        return not self.is_grouped and len(self.digits.lstrip("+-").partition(".")[0]) > len("9999")


def has_marks(text: str) -> bool:
    """Whether there is a mark in the number, so that its meaning depends on how numbers are written."""
    return _MARKED.search(text.strip().replace("\u2212", "-")) is not None


def has_decimal_mark_alone(text: str, decimal: Decimal) -> bool:
    """Whether the number has this decimal mark once, and no other mark, as "12.345" or "9,5 %"."""
    return _ALONE[decimal].fullmatch(text) is not None


def read_number(text: str, writing: Writing = POINT) -> WrittenNumber:
    """Reads a number with whatever text is behind it; ValueError, with what to do, where it is not written so."""
    found = _read(text, writing)
    if found is not None:
        return found
    other = next((one for one in WRITINGS if has_marks(text) and _read(text, one) is not None), None)
    if other is not None:
        raise ValueError(f"write {' '.join(other.options)} for marks as it has them")
    raise ValueError("write a number, or leave the cell blank")


def _read(text: str, writing: Writing) -> WrittenNumber | None:
    match = _pattern(writing).fullmatch(text.strip().replace("\u2212", "-"))
    if match is None:
        return None
    whole, fraction, exponent = match["whole"] or "", match["fraction"], match["exponent"] or ""
    digits = "".join(sign for sign in whole if sign.isdigit())
    is_grouped = digits != whole
    printed = f"{match['sign']}{digits}{'' if fraction is None else f'.{fraction}'}{exponent}"
    if len(printed) > _LONGEST or (is_grouped and exponent) or not (digits or fraction):
        return None
    rounding = Fraction(1, 2) * Fraction(10) ** (int(exponent[1:] or "0") - len(fraction or ""))
    return WrittenNumber(printed, Fraction(printed), rounding, (match["rest"] or "").strip(), is_grouped)


def plain_number(text: str) -> float:
    """Reads a number as programs print it, "12", "-0.5" or "1e6"; ValueError for any other text, inf and nan too."""
    if _PLAIN.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no number")
    return float(text)


@cache
def _pattern(writing: Writing) -> re.Pattern[str]:
    """Marks set groups of three apart, or in India groups of two before the last three, and are all the same."""
    marks = THOUSANDS[writing.thousands] if writing.thousands else ""
    grouped = ""
    if marks:
        mark = f"[{re.escape(marks)}]"
        western = rf"[1-9][0-9]{{0,2}}(?P<west>{mark})[0-9]{{3}}(?:(?P=west)[0-9]{{3}})*"
        indian = rf"[1-9][0-9]?(?P<east>{mark})[0-9]{{2}}(?:(?P=east)[0-9]{{2}})*(?P=east)[0-9]{{3}}"
        grouped = f"{western}|{indian}|"
    point = re.escape(DECIMALS[writing.decimal])
    return re.compile(
        rf"(?P<sign>[+-]?)(?P<whole>{grouped}[0-9]+)?(?:{point}(?P<fraction>[0-9]*))?"
        rf"(?P<exponent>[eE][+-]?[0-9]{{1,2}})?\s*(?P<rest>[^0-9.,\s].*)?"
    )
