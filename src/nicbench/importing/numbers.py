"""A number as it is printed, with what rounding leaves open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from nicbench.importing.units import Unit, parse_unit

Decimal = Literal["point", "comma"]
THOUSANDS: Final = {"comma": ",", "point": ".", "blank": " \u00a0\u202f\u2009", "apostrophe": "'\u2019"}
NOTHING: Final = frozenset({"", "-", "--", "\u2013", "\u2014", "n/a", "na", "nan", "null", "none"})
"""How tables write that there is no figure, in small letters."""
_LONGEST_NUMBER: Final = 40
_NUMBER: Final = re.compile(r"(?P<digits>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*(?P<unit>[^\d.,\s].*)?")


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """``value`` in the unit that it is printed in; the true one is at most ``rounding`` away."""

    text: str
    value: Fraction
    rounding: Fraction
    unit: Unit | None


def parse_number(text: str, decimal: Decimal = "point", thousands: str | None = None) -> PrintedNumber:
    """ValueError, with what to do, where ``text`` is no number. A unit behind the number is its own."""
    written = text.replace("\u2212", "-")
    separators = THOUSANDS[thousands] if thousands else ""
    if separators:
        written = _without(written, separators, "," if decimal == "comma" else ".")
    if decimal == "comma":
        if "." in written:
            raise ValueError("it has a point; write --thousands point if points set thousands apart")
        written = written.replace(",", ".", 1)
    match = _NUMBER.fullmatch(written)
    if match is None or len(match["digits"]) > _LONGEST_NUMBER:
        if "," in written and decimal == "point":
            raise ValueError("write --decimal comma for a decimal comma, --thousands comma for marks between thousands")
        raise ValueError("write a number, or nothing where there is none")
    unit = None
    if match["unit"]:
        unit = parse_unit(match["unit"])
        if unit is None:
            raise ValueError(f"{match['unit'].strip()!r} behind the number is no unit that is known")
    digits = match["digits"]
    mantissa, _, exponent = digits.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    rounding = Fraction(1, 2) * Fraction(10) ** (int(exponent or 0) - decimals)
    return PrintedNumber(digits, Fraction(digits), rounding, unit)


def _without(text: str, separators: str, point: str) -> str:
    """Marks between thousands are taken away where they set groups of three apart, and nowhere else."""
    marks = re.escape(separators)
    whole, mark, rest = text.partition(point)
    if re.fullmatch(rf"[+-]?\d{{1,3}}(?:[{marks}]\d{{3}})+(?:\s*\D.*)?", whole):
        whole = re.sub(rf"(?<=\d)[{marks}](?=\d{{3}})", "", whole)
    return f"{whole}{mark}{rest}"
