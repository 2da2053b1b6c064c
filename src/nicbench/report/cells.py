"""The value of a result as the text of a cell, the same for every table on the page and on the terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Final

from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy, Result, Spread, Value, number_of
from nicbench.core.table import Aspect, Column
from nicbench.core.units import SCALES, Form
from nicbench.report.numbers import (
    UNKNOWN,
    Writer,
    decimals_of_frames,
    format_fixed,
    frame_rate_decimals,
    interval_decimals,
    microseconds,
    of_frames,
    percent,
    significant,
    trim,
    uncertainty,
    whole,
)
from nicbench.report.zones import interval_cell, rate_cell, value_cell
from nicbench.stats.intervals import share_interval

_POWERS: Final[tuple[Mapping[str | None, int], ...]] = (
    MappingProxyType({"b/s": 0, "kb/s": 3, "Mb/s": 6, "Gb/s": 9}),
    MappingProxyType({"B/s": 0, "kB/s": 3, "MB/s": 6, "GB/s": 9}),
    MappingProxyType({"fps": 0, "pps": 0, "kfps": 3, "kpps": 3, "Mpps": 6, "Gpps": 9}),
    MappingProxyType({"ns": -9, "us": -6, "µs": -6, "ms": -3, "s": 0}),
)
"""Groups of units of one quantity, each unit with its power of ten."""
_PLAIN: Final = re.compile(r"\d+(?:\.\d+)?")
_MICRO: Final = re.compile(r"(\d) us\b")
"""How quantities of bench files write a microsecond."""
_MOST_DIGITS: Final = 6
"""The most digits that people print; a number with more was printed by a program without rounding."""


def value_of(result: Result, name: str) -> Value:
    """Returns the value of this name or, where the result has none, the parameter of this name."""
    if name in result.values:
        return result.values[name]
    value = result.parameters.get(name)
    return value if isinstance(value, str | int | float) else None


def number_in(result: Result, name: str) -> float | None:
    """Returns the value of this name where it is a number, else None."""
    return number_of(value_of(result, name))


_LOST: Final = {"loss": "lost"}
_WHOLES: Final = ("offered_frames", "sent_frames")
_SHARE: Final = "_percent"


def counted(result: Result, name: str) -> tuple[int, int] | None:
    """Returns the frames that a share was counted from, and of how many; None where the result does not say."""
    stem = name.removesuffix(_SHARE)
    share = number_in(result, name)
    if stem == name or share is None:
        return None
    frames = result.values.get(f"{_LOST.get(stem, stem)}_frames")
    for whole_of in (f"{stem}_of_frames", *_WHOLES):
        of = result.values.get(whole_of)
        if isinstance(frames, int) and isinstance(of, int) and 0 <= frames <= of and of:
            # Other frames may count as well, those that were altered for instance: then it is no share of these.
            return (frames, of) if math.isclose(share, 100.0 * frames / of, rel_tol=1e-9) else None
    return None


def known_within(result: Result, name: str) -> str:
    """Says in brackets how well a share is known that was counted: its exact interval, or its one end where none or all
    were counted.
    """
    found = counted(result, name)
    if found is None:
        return ""
    frames, of = found
    confidence_percent = number_in(result, "confidence_percent") or 95.0
    lower, upper = (percent(100.0 * end) for end in share_interval(frames, of, confidence_percent / 100.0))
    if frames == 0:
        return f" (at most {upper} %)"
    return f" (at least {lower} %)" if frames == of else f" ({lower} to {upper} %)"


def _plain(value: Value) -> float | int | str | None:
    if isinstance(value, Spread):
        return value.median
    return value.value if isinstance(value, Bounded) else value


def factor_of(form: Form) -> float:
    """Returns the factor that converts a value to the unit of its column, on an axis or in a sentence."""
    return SCALES[form].factor if form in SCALES else 1.0


def texts(column: Column, results: Sequence[Result], among: Sequence[Result] = ()) -> list[str]:
    """Returns the cells of a column, all with as many decimals as the one that needs most; a rate that a search
    enclosed has as many as its interval gives.

    The results ``among`` which these stand, in sibling tables, count as well.
    """
    values = [value_of(result, column.value) for result in results]
    every = [*values, *(value_of(result, column.value) for result in among)]
    write = writer(column, [value for value in every if not _is_enclosed(value)])
    cell = _ASPECTS[column.aspect]
    written = [cell(value, writer(column, [value]) if _is_enclosed(value) else write) for value in values]
    return [
        text if column.aspect in ("interval", "limit") else printed_digits(result, column) or text
        for text, result in zip(written, results, strict=True)
    ]


def writer(column: Column, values: Iterable[Value]) -> Writer:
    """Returns what writes the values of a column; rates get the decimals of their intervals, also in columns without
    these, so that a rate is the same text wherever it stands.
    """
    known = list(values)
    enclosed = [value for value in known if isinstance(value, Bounded) and _is_enclosed(value)]
    others = [_magnitude(value) for value in known if not _is_enclosed(value)]
    numbers = [float(number) for number in others if isinstance(number, int | float)]
    ends = [(rate.lower or 0.0, rate.upper or 0.0) for rate in enclosed]
    return _writer(column.form, numbers, ends)


def _is_enclosed(value: Value) -> bool:
    return isinstance(value, Bounded) and value.lower is not None and value.upper is not None


def _magnitude(value: Value) -> float | str | None:
    if isinstance(value, Bounded):
        return value.upper if value.is_only_below else value.value
    return value.magnitude if isinstance(value, Spread) else value


def _value_text(value: Value, write: Writer) -> str:
    if isinstance(value, Bounded) and value.value is not None:
        return f"{'≥ ' if value.at_least else ''}{value_cell(value, write)}"
    plain = _plain(value)
    if plain is None or isinstance(plain, str):
        return UNKNOWN if plain is None else _MICRO.sub(r"\1 µs", plain)
    at_least = isinstance(value, Spread) and value.at_least
    text = write.down(plain) if at_least else write(plain)
    return f"{'≥ ' if at_least else ''}{text}{_range(value, write)}"


def _exact_text(value: Value, write: Writer) -> str:
    """Returns a value without its "at least" where the line rate limits it, because more than the line rate is
    impossible.
    """
    plain = value.value if isinstance(value, Bounded) and value.limited_by is LimitedBy.LINE_RATE else value
    return _value_text(plain, write)


def _rate_text(value: Value, write: Writer) -> str:
    """Returns a rate as a search found it; why there is none is said below the table."""
    if isinstance(value, Bounded):
        return rate_cell(value, write)
    if isinstance(value, Spread) and value.is_line_rate:
        return f"line rate, {write(value.median)}"
    if isinstance(value, Spread) and value.passes_nothing:
        return f"{PASSES_NOTHING}{_range(value, write)}"
    return _value_text(value, write)


def _span_text(value: Value, write: Writer) -> str:
    """Returns a rate between its bounds, as the terminal has it: "0.39 .. 0.40"; "41 to 58" where trials disagreed."""
    if isinstance(value, Spread):
        of = f" ({value.n} of {value.runs} runs)" if value.n < value.runs else ""
        differ = value.minimum != value.maximum
        median = (_value_text if differ else _rate_text)(value, write).partition(" (")[0]
        return f"{write(value.minimum)} .. {median} .. {write(value.maximum)}{of}" if differ else f"{median}{of}"
    if not isinstance(value, Bounded) or value.lower is None or value.upper is None or value.is_zone:
        return _rate_text(value, write)
    middle = () if value.value in (None, value.lower) else (write(value.value or 0.0),)
    return " .. ".join(dict.fromkeys((write.down(value.lower), *middle, write.up(value.upper))))


def _interval_text(value: Value, write: Writer) -> str:
    return interval_cell(value, write) if isinstance(value, Bounded) and not value.passes_nothing else UNKNOWN


def _limit_text(value: Value, write: Writer) -> str:
    if isinstance(value, Bounded) and value.loss_floor is not None:
        return "loss at any load"
    limit = value.limited_by if isinstance(value, Bounded | Spread) else None
    return UNKNOWN if limit is None else limit.words


_ASPECTS: Final[Mapping[Aspect, Callable[[Value, Writer], str]]] = MappingProxyType(
    {
        "value": _value_text,
        "exact": _exact_text,
        "rate": _rate_text,
        "span": _span_text,
        "interval": _interval_text,
        "limit": _limit_text,
    }
)


def _range(value: Value, write: Writer) -> str:
    """Returns, for the value of several runs, " (lowest to highest)" where they differ, and how many
    runs have a value.
    """
    if not isinstance(value, Spread):
        return ""
    least, most = write(value.minimum), write(value.maximum)
    told = [f"{least} to {most}"] if least != most else []
    told += [f"{value.n} of {value.runs} runs"] if value.n < value.runs else []
    return f" ({', '.join(told)})" if told else ""


def printed_digits(result: Result, column: Column) -> str | None:
    """Returns the digits of an imported value exactly as its source printed them; None where there are none to use.
    Where the column has another multiple of the source's unit, the decimal point moves.
    """
    found = result.imported.printed.get(column.value) if result.imported else None
    if found is None or column.form in ("text", "whole") or column.value not in result.values:
        return None
    unit = column.unit or ("%" if column.head.startswith("%") else None)
    if found.unit == unit or (found.unit == "frames" and unit is None):
        return found.text
    return _move_point(found.text, found.unit, unit)


_FEWEST_SHARE: Final = 1.0 / 3.0
"""So many of the figures of a table show the digit to which all of them were printed (importing/digits.py)."""


def fill_digits(printed: Sequence[str | None]) -> list[str | None]:
    """Returns the printed figures of one table with the zeros at their end that spreadsheets leave out: "25" among
    "25.1" and "24.9" is "25.0". Nothing but plain figures is filled, and none where too few have so many decimals.
    """
    decimals = sorted(
        (len(text.partition(".")[2]) for text in printed if text and _PLAIN.fullmatch(text)), reverse=True
    )
    shared = decimals[math.ceil(_FEWEST_SHARE * len(decimals)) - 1] if decimals else 0

    def fill(text: str) -> str:
        lacking = shared - len(text.partition(".")[2])
        if lacking <= 0 or not _PLAIN.fullmatch(text):
            return text
        return f"{text}{'' if '.' in text else '.'}{'0' * lacking}"

    return [text and fill(text) for text in printed]


def _move_point(text: str, unit: str | None, to: str | None) -> str | None:
    """Returns the same digits in another multiple of the unit; None where ``to`` is no multiple of it, or where there
    are so many digits that a program must have printed them without rounding.
    """
    for powers in _POWERS:
        if unit in powers and to in powers:
            try:
                number = Decimal(text)
            except InvalidOperation:
                return None
            if not number.is_finite() or len(number.as_tuple().digits) > _MOST_DIGITS:
                return None
            return f"{number.scaleb(powers[unit] - powers[to]):f}"
    return None


def text_of(column: Column, result: Result) -> str:
    """Returns the text of a single cell."""
    return texts(column, [result])[0]


def with_unit(column: Column, text: str) -> str:
    """Returns the text with the unit of its column, for a heading or a legend: "64 bytes", "100 % of line rate"; the
    name of a mix of sizes stays as it is.
    """
    if column.unit == "bytes" and not text.isdigit():
        return text
    return f"{text} {column.unit}" if column.unit else text


def _writer(form: Form, numbers: Sequence[float], ends: Sequence[tuple[float, float]] = ()) -> Writer:
    """Returns what writes a column of these numbers, and of intervals with these ends."""
    factor = factor_of(form)
    if form in ("pps", "kpps", "mpps"):
        wanted = [interval_decimals(lower * factor, upper * factor) for lower, upper in ends]
        wanted += [frame_rate_decimals(form, numbers)] if numbers or not ends else []
        decimals = max(wanted)
        return Writer(lambda number: format_fixed(number * factor, decimals), factor, decimals)
    if form == "of_frames":
        decimals = decimals_of_frames(numbers)
        return Writer(lambda number: of_frames(number, decimals))
    return Writer(_FORMS[form], factor)


def _scaled_writer(form: Form) -> Callable[[float], str]:
    return lambda value: significant(value * SCALES[form].factor)


_FORMS: Mapping[Form, Callable[[float], str]] = MappingProxyType(
    {
        **{form: _scaled_writer(form) for form in SCALES},
        "percent": percent,
        "trimmed": trim,
        "microseconds": microseconds,
        "uncertainty": lambda value: f"± {uncertainty(value)}",
        "number": significant,
        "whole": whole,
        "text": str,
    }
)
