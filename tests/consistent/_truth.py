"""What was measured, from the run folder alone, and whether what is printed is that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from nicbench.core.result import Bounded, Result, Spread, Value

from ._reading import Printed, numbers_in, plain

UNKNOWN = "–"
FACTORS: Final = {
    "_frames_per_s": {"pps": 1.0, "kpps": 1e3, "Mpps": 1e6, "fps": 1.0, "frames/s": 1.0},
    "_bits_per_s": {"b/s": 1.0, "kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9},
    "bytes_per_s": {"B/s": 1.0, "MB/s": 1e6, "GB/s": 1e9},
    "_hz": {"Hz": 1.0, "MHz": 1e6, "GHz": 1e9},
    "_ns": {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9},
    "_us": {"µs": 1.0},
    "_ms": {"ms": 1.0, "s": 1e3},
    "_ratio": {"%": 0.01},
}
"""By the end of the name of a value: how many of its own units one of the printed units is."""


def factor_of(name: str, unit: str | None) -> float:
    """By which a value is divided before it is printed in this unit."""
    of_name = next((units for end, units in FACTORS.items() if name.removesuffix("_sum_of_ports").endswith(end)), {})
    return of_name.get(unit or "", 1.0)


def unit_of(head: str) -> str | None:
    """The unit that a heading ends with."""
    found = re.search(r"\[([^\]]*)\]$", head)
    return found[1] if found else None


def is_said(cell: str, value: Value, factor: float) -> bool:
    """Whether the cell says this value and nothing else."""
    if isinstance(value, str):
        return plain(re.sub(r"(\d) us\b", r"\1 µs", value)) == cell.replace(" | ", " ")
    if value is None:
        return not numbers_in(cell)
    if isinstance(value, Bounded):
        return _is_bounded(cell, value, factor)
    if isinstance(value, Spread):
        return _is_spread(cell, value, factor)
    return _is_number(cell, float(value) / factor)


def is_interval_said(cell: str, value: Value, factor: float) -> bool:
    """Whether the cell says both ends of the interval, the lower first."""
    if not isinstance(value, Bounded):
        return True
    ends = [end / factor for end in (value.lower, value.upper) if end is not None]
    printed = numbers_in(cell)
    if value.is_zone:  # its ends stand beside, and here what happened between them
        ends = [end / factor for end in (value.half, value.some) if end is not None]
    elif value.passes_nothing or not ends:
        return not printed or value.loss_floor is not None
    slack = _slack(value, factor)
    if len(printed) < len(ends):  # both ends are the same at this rounding, or there is one
        return all(is_near(number, end, slack) for number in printed for end in ends[-1:])
    return all(is_near(number, end, slack) for number, end in zip(printed, ends, strict=False))


def _slack(value: Bounded, factor: float) -> float:
    """How far an end may be rounded: by half of the interval's width."""
    return (value.upper - value.lower) / factor / 2.0 if value.upper is not None and value.lower is not None else 0.0


def ends_of(value: Value) -> tuple[tuple[float, float], ...]:
    """The numbers that may be printed of a value, each with how far it may be rounded."""
    if isinstance(value, Bounded):
        ends = (value.value, value.lower, value.upper, value.some, value.half)
        seen = (
            value.queue and value.queue.burst_frames_per_s,
            value.loss_floor and value.loss_floor.up_to_frames_per_s,
        )
        return tuple((end, _slack(value, 1.0)) for end in (*ends, *seen) if end is not None)
    if isinstance(value, Spread):
        return tuple((end, 0.0) for end in (value.median, value.minimum, value.maximum))
    return ((float(value), 0.0),) if isinstance(value, int | float) else ()


def is_near(number: Printed, end: float, slack: float) -> bool:
    last_digit = 10.0 ** -len(number.text.partition(".")[2])  # bounds are rounded outwards
    return number.is_of(end) or abs(number.value - end) <= max(slack, last_digit)


def is_limit_said(cell: str, value: Value) -> bool:
    if isinstance(value, Bounded) and value.loss_floor is not None:
        return cell == "loss at any load"
    limit = value.limited_by if isinstance(value, Bounded | Spread) else None
    return cell == (UNKNOWN if limit is None else limit.words)


def _is_number(cell: str, number: float) -> bool:
    text = cell.replace("| ", " ")
    printed = numbers_in(text)
    if not printed:
        return False
    first = printed[0]
    if "< " in text[: text.find(first.text)]:
        return 0.0 < number < first.value
    if "> " in text[: text.find(first.text)]:
        return number > first.value
    return first.is_of(number)


def _is_bounded(cell: str, value: Bounded, factor: float) -> bool:
    if value.value is None:
        printed = numbers_in(cell)
        if value.loss_floor is not None:
            return not printed or is_near(printed[0], 100.0 * value.loss_floor.ratio, 0.0)
        if value.upper is not None and printed:
            return "<" in cell and printed[0].is_of(value.upper / factor)
        return not printed
    if ("≥" in cell or "at least" in cell or "line rate" in cell) is not value.at_least and not value.is_line_rate:
        return False
    ends = (value.value, value.lower, value.upper, value.some, value.half)
    allowed, slack = [end / factor for end in ends if end is not None], _slack(value, factor)
    printed = numbers_in(cell)
    are_said = bool(printed) and all(any(is_near(number, each, slack) for each in allowed) for number in printed)
    return are_said and (" .. " not in cell or _rise(printed))


def _is_spread(cell: str, value: Spread, factor: float) -> bool:
    allowed = [end / factor for end in (value.median, value.minimum, value.maximum)]
    of = re.search(r"(\d+) of (\d+) runs", cell)
    if (of is not None) != (value.n < value.runs):
        return False
    if of and (int(of[1]), int(of[2])) != (value.n, value.runs):
        return False
    text = re.sub(r"\d+ of \d+ runs", "", cell)
    if " .. " in text:
        return _all_of(numbers_in(text), allowed) and _rise(numbers_in(text))
    return _is_number(text, allowed[0]) and (re.search("[<>] ", text) is not None or _all_of(numbers_in(text), allowed))


def _all_of(printed: Sequence[Printed], allowed: Sequence[float]) -> bool:
    return all(any(number.is_of(each) for each in allowed) for number in printed)


def _rise(printed: Sequence[Printed]) -> bool:
    values = [number.value for number in printed]
    return values == sorted(values)


def has_rate(result: Result) -> bool:
    return any(isinstance(value, Bounded) for value in result.values.values())
