"""Quantities as written in a bench file, in both directions: durations, frame rates, bits, bytes, ratios.

A plain number is in the base unit (seconds, frames per second, bits per second, bytes, a share). Multiples of bits and
frames are decimal; for bytes, ``MB`` is 10^6 and ``MiB`` 2^20. Every ValueError says which forms are accepted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Final, Literal

from nicbench.core.frozen import frozen

_EXACT: Final = Context(prec=400)
FRAME_OVERHEAD_BYTES = 20
"""Bytes on the wire in addition to each frame: preamble 7, start delimiter 1, inter-frame gap 12 (IEEE 802.3)."""

_NUMBER = re.compile(r"([+-]?(?:\d+(?:[_']\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)", re.DOTALL)
_LEADING_ZERO = re.compile(r"[+-]?0[_']?\d")


def _table(rows: Mapping[str, str]) -> Mapping[str, Fraction]:
    factors = {spelling: Fraction(factor) for names, factor in rows.items() for spelling in names.split()}
    return MappingProxyType(factors)


_DURATIONS = _table(
    {"s sec second seconds": "1", "ms": "1e-3", "us µs μs": "1e-6", "ns": "1e-9", "min m": "60", "h": "3600"}
)
_RATES = _table(
    {
        "fps pps frames/s packets/s": "1",
        "kfps kpps Kpps": "1e3",
        "Mfps Mpps": "1e6",
        "Gfps Gpps": "1e9",
    }
)
_RATE_FORMS = '"200 kpps", "1.5 Mpps", "200000 fps", or a number of frames per second'
_BIT_RATES = _table(
    {
        "b/s bit/s bps": "1",
        "kb/s kbit/s kbps": "1e3",
        "Mb/s Mbit/s Mbps": "1e6",
        "Gb/s Gbit/s Gbps": "1e9",
        "Tb/s Tbit/s Tbps": "1e12",
    }
)
_BYTES = _table(
    {
        "B byte bytes": "1",
        "kB": "1e3",
        "MB": "1e6",
        "GB": "1e9",
        "KiB": "1024",
        "MiB": "1048576",
        "GiB": "1073741824",
    }
)
_RATIOS = _table({"%": "0.01", "ppm": "1e-6"})
_MOST_DIGITS = 12
"""Further digits of a quotient are errors of the arithmetic."""


@dataclass(frozen=True)
class Percent:
    """A share of the line rate, in percent; the corresponding frame rate depends on the frame size."""

    value: float

    def of(self, whole: float) -> float:
        """Returns this percentage of ``whole``."""
        return whole * self.value / 100.0

    def __str__(self) -> str:
        return f"{self.value:g} %"


def parse_duration_s(text: str | float) -> float:
    """Returns seconds: "1 s", "200 ms", "50 us", "2 min", 0.2."""
    return _parse(text, _DURATIONS, "a duration", '"1 s", "200 ms", "50 us", "100 ns", "2 min", or a number of seconds')


def parse_rate(text: str | float) -> float | Percent:
    """Returns frames per second: "200 kpps", "1.5 Mpps", "200000 fps", 200000; or a share of the line rate: "95 %"."""
    forms = f'{_RATE_FORMS}, or "95 %" of the line rate'
    if isinstance(text, str) and text.rstrip().endswith("%"):
        percent = _parse(text.rstrip()[:-1], {}, "a rate", forms)
        if not 0.0 < percent <= 100.0:
            raise ValueError(f"{text!r} is not a rate: a share of the line rate is above 0 and at most 100 %")
        return Percent(percent)
    return _parse(text, _RATES, "a rate", forms)


def parse_frames_per_s(text: str | float) -> float:
    """Returns frames per second: "200 kpps", "1.5 Mpps", "200000 fps", 200000."""
    match = _NUMBER.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is not None and match.group(2).strip() in _BIT_RATES and match.group(2).strip() != "":
        raise ValueError(f"{text!r} is a bit rate, and not a frame rate: write {_RATE_FORMS}")
    if match is not None and match.group(2).strip() == "%":
        raise ValueError(f"{text!r} is a share of the line rate, which is not accepted here: write {_RATE_FORMS}")
    return _parse(text, _RATES, "a frame rate", _RATE_FORMS)


def parse_percent(text: str) -> float:
    """Returns a percentage of any size: "110 %"."""
    forms = '"50 %"'
    if not text.rstrip().endswith("%"):
        raise ValueError(f"{text!r} is not a percentage: write {forms}")
    return _parse(text.rstrip()[:-1], {}, "a percentage", forms)


def parse_bits_per_s(text: str | float) -> float:
    """Returns bits per second: "10 Gb/s", "10Gbit/s", 1e10."""
    return _parse(text, _BIT_RATES, "a bit rate", '"10 Gb/s", "10 Gbit/s", "100 Mb/s", or a number of bits per second')


def parse_bytes(text: str | int) -> int:
    """Returns whole bytes: "64 MiB", "64 MB", "1500 B", 1500."""
    forms = '"64 MiB", "64 MB", "4 KiB", "1500 B", or a whole number of bytes'
    value = _parse(text, _BYTES, "a size", forms)
    if value != int(value):
        raise ValueError(f"{text!r} is not a size: it is not a whole number of bytes; write {forms}")
    return int(value)


def parse_ratio(text: str | float) -> float:
    """Returns a share from 0 to 1: "0.5 %", "100 ppm", 0.005."""
    forms = '"0.5 %", "100 ppm", or a number from 0 to 1'
    value = _parse(text, _RATIOS, "a ratio", forms)
    if value > 1.0:
        raise ValueError(f"{text!r} is not a ratio: it exceeds 1 (100 %); write {forms}")
    return value


def line_rate_frames_per_s(link_bits_per_s: float, frame_bytes: float) -> float:
    """Returns the most frames per second that a link carries; frame bytes include the FCS (RFC 5180 appendix A)."""
    return link_bits_per_s / ((frame_bytes + FRAME_OVERHEAD_BYTES) * 8)


def l2_bits_per_s(rate_frames_per_s: float, frame_bytes: float) -> float:
    """Returns the throughput on layer 2: the frame's bytes with FCS, without preamble and gap."""
    return rate_frames_per_s * frame_bytes * 8


def l1_bits_per_s(rate_frames_per_s: float, frame_bytes: float) -> float:
    """Returns the throughput on layer 1: with preamble, delimiter and gap; at line rate, the link's bit rate."""
    return rate_frames_per_s * (frame_bytes + FRAME_OVERHEAD_BYTES) * 8


RATE_UNITS = ((1e9, "Gpps"), (1e6, "Mpps"), (1e3, "kpps"))
"""The units of a frame rate above 1 pps, with the frames per second in each."""


def format_rate(rate_frames_per_s: float, rounding: str = ROUND_HALF_UP) -> str:
    """Formats a frame rate with a suitable unit: "14.88 Mpps", "200.0 kpps", "950 pps"; ``rounding`` is decimal's."""
    for factor, unit in RATE_UNITS:
        if rate_frames_per_s >= factor:
            scaled = rate_frames_per_s / factor
            return f"{Decimal(str(scaled)).quantize(Decimal(1).scaleb(-_decimals(scaled)), rounding)} {unit}"
    return f"{rate_frames_per_s:g} pps"


def format_lower(rate_frames_per_s: float) -> str:
    """Formats a rate that is a lower bound, which is rounded down."""
    return format_rate(rate_frames_per_s, ROUND_FLOOR)


def format_upper(rate_frames_per_s: float) -> str:
    """Formats a rate that is an upper bound, which is rounded up."""
    return format_rate(rate_frames_per_s, ROUND_CEILING)


def format_span(lower_frames_per_s: float, upper_frames_per_s: float) -> str:
    """Formats two bounds, with their unit once where it is the same: "10.38 to 10.44 kpps"."""
    lower, upper = format_lower(lower_frames_per_s), format_upper(upper_frames_per_s)
    number, _, unit = lower.partition(" ")
    return f"{number if upper.endswith(f' {unit}') else lower} to {upper}"


def format_duration_s(duration_s: float) -> str:
    """Formats a duration with a suitable unit: "1 s", "200 ms", "50 µs", "100 ns"; minutes and hours from two up."""
    if duration_s == 0.0:
        return "0 s"
    if duration_s >= 7200.0:
        hours, minutes = divmod(round(duration_s / 60.0), 60)
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    if duration_s >= 120.0:
        minutes, seconds = divmod(round(duration_s), 60)
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if duration_s >= factor:
            return f"{duration_s / factor:.4g} {unit}"
    return f"{duration_s / 1e-9:.4g} ns"


def format_bits_per_s(bits_per_s: float, digits: int = 4) -> str:
    """Formats a bit rate with a suitable unit: "10 Gb/s", "96 Mb/s"."""
    for factor, unit in ((1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s")):
        if bits_per_s >= factor:
            return f"{bits_per_s / factor:.{digits}g} {unit}"
    return f"{bits_per_s:.{digits}g} b/s"


def format_bytes(size_bytes: int) -> str:
    """Formats a size in a unit of which it is a multiple, which tells MB (10^6) from MiB (2^20): "10 MB", "16 MiB"."""
    for unit in ("GiB", "GB", "MiB", "MB", "KiB", "kB"):
        if size_bytes and size_bytes % _BYTES[unit] == 0:
            return f"{size_bytes // int(_BYTES[unit])} {unit}"
    return f"{size_bytes} B"


def format_fixed(value: float, decimals: int, thousands: str = "") -> str:
    """Writes a number with this many decimals, rounding ties away from zero, as a reader rounds 21.95 to 22.0, although
    no binary number is 21.95.
    """
    if not math.isfinite(value):
        return f"{value:.{decimals}f}"
    # Fifteen digits are what a double holds of a decimal number: beyond them is the error of the arithmetic before.
    rounded = Decimal(f"{value:.15g}").quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, _EXACT)
    return f"{rounded or abs(rounded):,f}".replace(",", thousands)


def format_digits(number: float, digits: int = 3, sign: str = "") -> str:
    """Formats with a maximum number of significant digits, never as a power of ten: "0.0000795", "12.5", "1230".

    With "+" as the ``sign`` a positive number has one, too.
    """
    if not math.isfinite(number):
        return f"{number:{sign}g}"
    return f"{Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(f'{number:.15g}').normalize() + 0:{sign}f}"


def format_ratio(ratio: float, digits: int = 3) -> str:
    """Formats a share in percent with significant digits, never as a power of ten: "0.5 %", "0.0000795 %".

    A share that is not quite all has the digits that say so: "99.9996 %".
    """
    texts = (format_digits(ratio * 100.0, more) for more in range(digits, _MOST_DIGITS + 1))
    text = next((text for text in texts if text != "100" or ratio >= 1.0), "100")
    return f"{text} %"


def count_of(number: int, noun: str) -> str:
    """Returns a number with its noun, in the plural where it is not one: "1 trial", "3 trials"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def and_list(parts: Sequence[str]) -> str:
    """Returns the parts as a list in a sentence: "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _decimals(value: float, most: int = 4) -> int:
    if value <= 0.0:
        return 1
    return max(0, min(most, 3 - math.floor(math.log10(value))))


def _parse(text: str | float, units: Mapping[str, Fraction], what: str, forms: str) -> float:
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"{text!r} is not {what}: write {forms}")
    if not isinstance(text, str):
        return _require_finite(float(text), text, what, forms)
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not {what}: write {forms}")
    if _LEADING_ZERO.match(match.group(1)):
        raise ValueError(f"{text!r} is not {what}: it begins with a zero, as an octal number; write {forms}")
    digits, unit = match.group(1).replace("_", "").replace("'", ""), match.group(2).strip()
    if unit and unit not in units:
        raise ValueError(f"{text!r} is not {what}: unknown unit {unit!r}; write {forms}")
    if len(digits) > 40 or abs(int(re.split("[eE]", digits + "e0")[1])) > 30:
        raise ValueError(f"{text!r} is not {what}: the number is out of all proportion; write {forms}")
    # Exact until the last step, so that "0.1 s" and 0.1 are the same number.
    return _require_finite(float(Fraction(digits) * units.get(unit, Fraction(1))), text, what, forms)


def _require_finite(value: float, text: str | float, what: str, forms: str) -> float:
    if not math.isfinite(value) or value < 0.0:
        raise ValueError(f"{text!r} is not {what}: it must be finite and not negative; write {forms}")
    return value


# How values are written: the unit, the scale factor, and the unit that suits a whole column.
#
# The name of a value carries its base unit (``latency_ns``). A form that contradicts the name is refused, so that no
# table can print nanoseconds under a heading of microseconds.


Form = Literal[
    "pps",
    "kpps",
    "mpps",
    "gigabits",
    "megabits",
    "megabytes",
    "gigahertz",
    "microseconds",
    "milliseconds",
    "seconds",
    "uncertainty",
    "percent",
    "trimmed",
    "of_frames",
    "number",
    "whole",
    "text",
]
"""How a value is written: ``pps`` to ``mpps`` for frames per second, ``gigahertz`` for Hz, ``microseconds`` to
``seconds`` for ns, ``megabytes`` (10^6) for bytes, ``uncertainty`` for a time that is written as "± 0.35"; ``number``
with three significant digits, ``trimmed`` with at most three decimals and no trailing zeros; ``of_frames`` is like
``trimmed``, for a percentage that shows 0 only for no frames and 100 only for all of them.
"""


@frozen
class Scale:
    """A form with its own unit: values whose name ends with ``suffix`` are multiplied by ``factor`` into ``unit``.

    ``base_unit`` is that of the values themselves.
    """

    suffix: str
    unit: str
    factor: float
    base_unit: str


SCALES: Final[Mapping[Form, Scale]] = MappingProxyType(
    {
        "pps": Scale("_frames_per_s", "pps", 1.0, "frames/s"),
        "kpps": Scale("_frames_per_s", "kpps", 1e-3, "frames/s"),
        "mpps": Scale("_frames_per_s", "Mpps", 1e-6, "frames/s"),
        "megabits": Scale("_bits_per_s", "Mb/s", 1e-6, "b/s"),
        "gigabits": Scale("_bits_per_s", "Gb/s", 1e-9, "b/s"),
        "megabytes": Scale("bytes_per_s", "MB/s", 1e-6, "B/s"),
        "gigahertz": Scale("_hz", "GHz", 1e-9, "Hz"),
        "microseconds": Scale("_ns", "µs", 1e-3, "ns"),
        "milliseconds": Scale("_ns", "ms", 1e-6, "ns"),
        "seconds": Scale("_ns", "s", 1e-9, "ns"),
        "uncertainty": Scale("_ns", "µs", 1e-3, "ns"),
    }
)

_PLAIN_FORMS: Final = frozenset({"number", "trimmed", "whole"})
_UNITS: Final = MappingProxyType(
    {
        "_frames_per_s": frozenset({"fps", "frames/s"}),
        "_bits_per_s": frozenset({"b/s"}),
        "_bytes_per_s": frozenset({"B/s"}),
        "_hz": frozenset({"Hz"}),
        "_ns": frozenset({"ns"}),
        "_us": frozenset({"µs"}),
        "_ms": frozenset({"ms"}),
        "_bytes": frozenset({"bytes"}),
    }
)
"""The allowed units of values that are written unscaled, by the suffix of their name."""
_DEFAULTS: Final[tuple[tuple[str, Form], ...]] = (
    ("_frames_per_s", "mpps"),
    ("_bits_per_s", "gigabits"),
    ("bytes_per_s", "megabytes"),
    ("_hz", "gigahertz"),
    ("_ns", "microseconds"),
)
_LADDERS: Final[Mapping[Form, tuple[tuple[Form, float], ...]]] = MappingProxyType(
    {
        "mpps": (("pps", 0.0), ("kpps", 1e3), ("mpps", 1e6)),
        "gigabits": (("megabits", 0.0), ("gigabits", 1e8)),
        "microseconds": (("microseconds", 0.0), ("milliseconds", 1e6), ("seconds", 1e9)),
        "milliseconds": (("milliseconds", 0.0), ("seconds", 1e9)),
    }
)
"""The forms that a column may have instead of a declared form, each with the magnitude from which it applies.

Links of 1 Gb/s and more are compared in Gb/s, so the step to Gb/s is at a tenth of one.
"""


def name_in_words(value: str) -> str:
    """Returns the name of a value without its unit, as it stands in a sentence: "recovery time", "NDR"."""
    units = ("_frames_per_s", "_bits_per_s", "_bytes_per_s", "_transactions_per_s", "_percent", "_ratio", "_ns", "_ms")
    unit = next((unit for unit in (*units, "_us", "_hz", "_s") if value.endswith(unit)), "")
    words = value.removesuffix(unit).replace("_", " ")
    return words.upper() if words in ("ndr", "pdr") else words


def uncapitalise(head: str) -> str:
    """Returns a heading as it reads inside a sentence: in lower case, unless its first word is written in capitals."""
    return head if head[1:2].isupper() else f"{head[:1].lower()}{head[1:]}"


def default_form(value: str, unit: str | None) -> Form:
    """Returns the form of a column without one, by the suffix of the value's name unless another unit is given."""
    form: Form = next((form for suffix, form in _DEFAULTS if value.endswith(suffix)), "number")
    return form if unit is None or form not in SCALES or SCALES[form].unit == unit else "number"


def default_unit(value: str, form: Form) -> str | None:
    """Returns the unit of a form that has one, else the unit that the value's name ends with."""
    if form in SCALES:
        return SCALES[form].unit
    return {"_us": "µs", "_ms": "ms"}.get(value[-3:])


def contradiction(value: str, form: Form, unit: str | None) -> str | None:
    """Describes how a column contradicts the suffix of its value's name; None where name, form and unit agree."""
    scale = SCALES.get(form)
    if scale is not None:
        if not value.endswith(scale.suffix):
            return f"the form {form!r} is of values whose name ends with {scale.suffix!r}"
        return None if unit == scale.unit else f"the form {form!r} prints {scale.unit}, the heading says {unit}"
    suffix = next((suffix for suffix in _UNITS if value.endswith(suffix)), None)
    if suffix is None or form == "text" or form in ("percent", "of_frames"):
        wrong = suffix is not None and form != "text"
        return f"the form {form!r} is of percentages, the name ends with {suffix!r}" if wrong else None
    if form in _PLAIN_FORMS and unit not in _UNITS[suffix]:
        allowed = " or ".join(sorted(filter(None, _UNITS[suffix])))
        return f"a value whose name ends with {suffix!r} is written as it is in {allowed}, the heading says {unit}"
    return None


def suitable_form(form: Form, greatest: float) -> Form:
    """Returns the form for a whole column by its greatest value in the base unit: kpps where that is below 1 Mpps."""
    steps = _LADDERS.get(form)
    if steps is None or greatest <= 0.0:
        return form
    return next(candidate for candidate, least in reversed(steps) if greatest >= least)


# Formats numbers and quantities for sentences, with enough digits that rounding does not mislead.


_MOST_DECIMALS: Final = 9
_ROUNDING_ERROR: Final = 1e-6


def figures(value: float, digits: int = 4) -> str:
    """Formats with this many significant digits, commas and no exponent: "235.1", "14,880,000", "0.01234"."""
    if value == 0.0 or not math.isfinite(value):
        return "0" if value == 0.0 else "unknown"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = Decimal(f"{value:.15g}").quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, _EXACT)
    return f"{rounded:,.{max(0, decimals)}f}"


def decimals_above_one(factor: float) -> int | None:
    """Returns the decimals that show that a factor is more than 1, where two do not: 3 for 1.002; else None."""
    if round(factor, 2) != 1.0:
        return None
    return next((decimals for decimals in range(3, 7) if round(factor, decimals) > 1.0), 6)


def round_up(value: float, digits: int = 4) -> float:
    """Rounds an upper bound above 0 up to this many significant digits, so that it stays one: 1.2431 to 1.244.

    A relative excess of 1e-6 is an error of the arithmetic before: 2.00000001 stays 2.
    """
    nearest = float(f"{value:.{digits}g}")
    if abs(value - nearest) <= _ROUNDING_ERROR * nearest:
        return nearest
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(f"{value:.15g}"))


def format_alike(values: Sequence[float], of_no_difference: float, least_decimals: int = 2) -> tuple[str, ...]:
    """Formats with equal decimals, enough that values differ from ``of_no_difference`` and from each other as they
    should.
    """
    decimals = least_decimals
    while decimals < _MOST_DECIMALS and _misleads(values, of_no_difference, decimals):
        decimals += 1
    return tuple(f"{value:,.{decimals}f}" for value in values)


def probability(p: float) -> str:
    """Formats a p-value: "p = 0.032"; below 0.0001 "p < 0.0001"."""
    if p < 0.0001:
        return "p < 0.0001"
    return f"p = {p:.4f}" if p < 0.01 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def percent(value: float) -> str:
    """Formats with a sign and at least two significant digits: "+3.2 %", "-0.041 %", "0 %"."""
    text = figures(value, max(2, 1 + math.floor(math.log10(abs(value))) if value else 2))
    return f"{'+' if value > 0.0 else ''}{text} %"


def _misleads(values: Sequence[float], of_no_difference: float, decimals: int) -> bool:
    """Returns whether this many decimals make a value look like no difference, or different values look equal."""
    texts = {value: f"{value:.{decimals}f}" for value in values}
    nothing = f"{of_no_difference:.{decimals}f}"
    if any(value != of_no_difference and text == nothing for value, text in texts.items()):
        return True
    return len(set(texts.values())) == 1 < len(texts)


@frozen
class Quantity:
    """What is compared. ``name`` is such as "sum of frame rates"; ``unit`` such as "frames/s", or "".

    ``adjective`` describes the better one: "fast" (then "1.24 times as fast"); without it the sentence only says which
    is higher. ``higher_is_better`` is ``None`` where neither is better.
    """

    name: str
    unit: str
    higher_is_better: bool | None = None
    adjective: str | None = None

    def format_value(self, value: float | None) -> str:
        """Formats a value with the unit."""
        return "unknown" if value is None else f"{figures(value)} {self.unit}".rstrip()
