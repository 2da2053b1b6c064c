"""The zones of a searched rate in words and cells, wherever a report or a terminal shows one.

Every trial passed up to the lower bound, none from the upper one on; in between some did, where the device is not
sharp. Bounds are rounded outwards, to as many digits as their distance gives.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from nicbench.core.registry import find
from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy, LossFloor, Queue, Result, Spread, Value, number_of
from nicbench.core.table import Aspect, Column, Goal
from nicbench.core.units import SCALES, Form, format_digits, format_duration_s, format_fixed, suitable_form
from nicbench.methods.base import Method
from nicbench.report.numbers import (
    THIN_SPACE,
    UNKNOWN,
    Writer,
    decimals_of_frames,
    frame_rate_decimals,
    interval,
    interval_decimals,
    microseconds,
    of_frames,
    percent,
    share,
    significant,
    trim,
    uncertainty,
    whole,
)
from nicbench.report.wording import capitalise
from nicbench.stats.intervals import share_interval

_LOADS_DIGITS: Final = 4
"""The most digits of a load within a zone."""
GAP = "\u00a0"
"""A no-break space, which keeps a number and its unit on one line."""


def rate_cell(rate: Value, write: Writer) -> str:
    """Returns a rate as a cell has it: "200.4", "41 to 58" where trials disagreed, "≥ 41", "line rate, 14.88"; "< 0.2"
    where no load passed every time, and "none" where nothing is known. Of several runs it is the median.
    """
    if isinstance(rate, Bounded | Spread) and rate.passes_nothing:
        return PASSES_NOTHING
    if isinstance(rate, Spread) and rate.is_line_rate:
        return f"line rate, {write(rate.median)}"
    if not isinstance(rate, Bounded):
        return _number_text(rate, write)
    if rate.value is None:
        return "none" if rate.upper is None else f"< {write.up(rate.upper)}"
    before = "line rate, " if rate.is_line_rate else "≥ " if rate.at_least else ""
    return f"{before}{number_cell(rate, write)}"


def why_nothing_passes(rate: Bounded) -> str:
    """Returns the reason of a rate of which no load passed."""
    return (rate.reason_null or "").removeprefix(f"{PASSES_NOTHING}: ")


def number_cell(rate: Bounded, write: Writer) -> str:
    """Returns a known rate without a word of its bound: its zone where trials disagreed, else its value."""
    if rate.is_zone and rate.upper is not None:
        return interval(rate, write)
    return value_cell(rate, write)


def value_cell(rate: Bounded, write: Writer) -> str:
    """Returns the value of a known rate, rounded down where it is a load that passed."""
    value = rate.value or 0.0
    return write.down(value) if value == rate.lower and not rate.is_line_rate else write(value)


def interval_cell(rate: Bounded, write: Writer) -> str:
    """Returns further knowledge of a rate: its interval, or within its zone the loads that some and half passed."""
    if rate.is_zone:
        half = _half(rate, write)
        known = [f"half at {half}"] if half else []
        known += [f"some to {_within(rate, write).down(rate.some)}"] if rate.some is not None else []
        return ", ".join(known) or UNKNOWN
    found = interval(rate, write)
    if rate.loss_floor is not None:
        return f"{found}; {_ratio(rate.loss_floor, rate.loss_floor.ratio)} lost"
    if rate.queue is not None:
        return f"{found}; {write.down(rate.queue.burst_frames_per_s)} for {format_duration_s(rate.queue.trial_s)}"
    return found


def _half(rate: Bounded, write: Writer) -> str | None:
    """Returns the load that half of the trials passed; None where it reads as the lower end, which all passed."""
    if rate.half is None:
        return None
    write = _within(rate, write)
    half = write.down(rate.half)
    return None if rate.lower is not None and half == write.down(rate.lower) else half


def _within(rate: Bounded, write: Writer) -> Writer:
    """Returns what writes the loads within a zone: with the digits of their distances, however wide the zone is."""
    known = sorted(load * write.factor for load in (rate.lower, rate.half, rate.some) if load)
    if write.decimals is None or len(known) < 2:
        return write
    most = _LOADS_DIGITS - 1 - math.floor(math.log10(known[-1]))
    wanted = [interval_decimals(lower, upper) for lower, upper in pairwise(known) if lower < upper]
    decimals = max(write.decimals, min(most, max(wanted, default=write.decimals)))
    return Writer(lambda number: format_fixed(number * write.factor, decimals), write.factor, decimals)


def failing_clause(rate: Bounded, goal: Goal, what: str, write: Writer, unit: str) -> str:
    """Returns the clause about a rate without a value: what was lost at every load, or which loads passed at times."""
    if rate.loss_floor is not None:
        return f"loses {_lost(rate.loss_floor)}{_of_the(what)} at any load (no {goal.name})"
    if rate.upper is None:  # no trial that counts: nothing is said of the DUT
        return f"has no {goal.name}{what.replace(' of ', ' for ')} ({rate.reason_null or 'it was not measured'})"
    if rate.some is not None:
        bounds = f"some up to {write.down(rate.some)}{GAP}{unit}, none above {write.up(rate.upper)}{GAP}{unit}"
        return f"passes no load{what} {goal.clause} in every trial: {bounds} ({goal.name})"
    lost = f"more than {share(goal.loss_ratio)} of the frames" if goal.loss_ratio else "frames"
    return f"lost {lost} at every load{what} that was tried ({goal.name} below {write.up(rate.upper)}{GAP}{unit})"


def passing_clause(rate: Bounded, goal: Goal, what: str, write: Writer, unit: str, *, begins: bool) -> str:
    """Returns the clause about a known rate: "passes 200.4 kpps of 64-byte frames without loss, and no load from 200.9
    kpps on (NDR)". With ``begins`` it begins its sentence, with the goal: "Without loss it passes ...".
    """
    if rate.loss_floor is not None:
        lost = _floor_clause(rate, rate.loss_floor, goal, what, write, unit)
        return f"It {lost}" if begins else lost
    number = f"{number_cell(rate, write)}{GAP}{unit}"
    least = "at least " if rate.at_least else ""
    passes = f"the line rate{what}, {number}," if rate.is_line_rate else f"{least}{number}{what}"
    meets = goal.clause if rate.queue is None else f"{goal.clause} and without a growing queue"
    whole_clause = f"{capitalise(meets)} it passes {passes}" if begins else f"passes {passes} {meets}"
    queue = _queue_clause(rate.queue, goal, write, unit)
    return f"{whole_clause}{_bounds_clause(rate, write, unit)} ({goal.name}){queue}"


def _bounds_clause(rate: Bounded, write: Writer, unit: str) -> str:
    """Returns what else trials showed: where no load passed, and what happened in between."""
    if not rate.is_zone:
        if rate.upper is None:
            return ""
        if rate.value != rate.lower:
            return f", interval {interval(rate, write)}{GAP}{unit}"
        return f", and no load from {write.up(rate.upper)}{GAP}{unit} on"
    told = [f"every trial up to {write.down(rate.lower or 0.0)}{GAP}{unit}"]
    if rate.upper is not None:
        told.append(f"none above {write.up(rate.upper)}{GAP}{unit}")
    elif rate.some is not None:
        told.append(f"some up to {_within(rate, write).down(rate.some)}{GAP}{unit}")
    if rate.shared_core:
        told.append("by what other programs leave of the CPU")
    half = f"; half of the trials passed at {half}{GAP}{unit}" if (half := _half(rate, write)) else ""
    return f": {', '.join(told)}{half}"


def _queue_clause(queue: Queue | None, goal: Goal, write: Writer, unit: str) -> str:
    if queue is None:
        return ""
    burst = f"{write.down(queue.burst_frames_per_s)}{GAP}{unit}"
    lasted = format_duration_s(queue.trial_s).replace(" ", GAP)
    lost = goal.clause if goal.loss_ratio else "without loss"
    return f"; a queue of {whole(queue.frames)} frames let {burst} through {lasted} {lost}"


def _floor_clause(rate: Bounded, floor: LossFloor, goal: Goal, what: str, write: Writer, unit: str) -> str:
    up_to = f" up to {write.down(floor.up_to_frames_per_s)}{GAP}{unit}"
    trials = f"{format_duration_s(floor.trial_s).replace(' ', GAP)} trials"
    meet = (
        "lose nothing" if not goal.loss_ratio else f"lose at most {format_digits(100 * goal.loss_ratio)}{THIN_SPACE}%"
    )
    return (
        f"loses {_lost(floor)}{_of_the(what)} at any load{up_to}; a rate {goal.clause} then depends on the length of "
        f"the trial: half of the {trials} {meet} at {number_cell(rate, write)}{GAP}{unit} ({goal.name})"
    )


def _of_the(what: str) -> str:
    return what.replace(" of ", " of the ", 1) or " of the frames"


def _lost(floor: LossFloor) -> str:
    """Returns a loss with its interval: "0.0100 % (0.0097 to 0.0103 %)"."""
    lower = _ratio(floor, floor.lower).removesuffix(f"{THIN_SPACE}%")
    return f"{_ratio(floor, floor.ratio)} ({lower} to {_ratio(floor, floor.upper)})"


def _ratio(floor: LossFloor, ratio: float) -> str:
    """Returns a share in percent with the digits that its interval gives."""
    decimals = interval_decimals(100.0 * floor.lower, 100.0 * floor.upper)
    return f"{format_fixed(100.0 * ratio, max(0, decimals))}{THIN_SPACE}%"


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


def texts(
    column: Column, results: Sequence[Result], among: Sequence[Result] = (), *, with_range: bool = True
) -> list[str]:
    """Returns the cells of a column, all with as many decimals as the one that needs most; a rate that a search
    enclosed has as many as its interval gives.

    The results ``among`` which these stand, in sibling tables, count as well. Cells of several runs have the range of
    these, unless ``with_range`` is False.
    """
    values = [value_of(result, column.value) for result in results]
    every = [*values, *(value_of(result, column.value) for result in among)]
    write = writer(column, [value for value in every if not _is_enclosed(value)])
    return [
        _text(column, result, value, writer(column, [value]) if _is_enclosed(value) else write, with_range=with_range)
        for value, result in zip(values, results, strict=True)
    ]


def text_of(column: Column, result: Result) -> str:
    """Returns the text of a single cell."""
    value = value_of(result, column.value)
    return _text(column, result, value, writer(column, [value]))


def _text(column: Column, result: Result, value: Value, write: Writer, *, with_range: bool = True) -> str:
    text = cell_text(value, column.aspect, write, with_range=with_range)
    return text if column.aspect in ("interval", "limit") else printed_digits(result, column) or text


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


def cell_text(value: Value, aspect: Aspect, write: Writer, *, with_range: bool = True) -> str:
    """Returns one aspect of a value; a value of several runs is followed by the range of these."""
    if aspect == "limit":
        if isinstance(value, Bounded) and value.loss_floor is not None:
            return "loss at any load"
        limit = value.limited_by if isinstance(value, Bounded | Spread) else None
        return UNKNOWN if limit is None else limit.words
    if aspect == "interval":
        return interval_cell(value, write) if isinstance(value, Bounded) and not value.passes_nothing else UNKNOWN
    if aspect == "span" and (text := _span_text(value, write)):
        return text
    if aspect == "exact" and isinstance(value, Bounded) and value.limited_by is LimitedBy.LINE_RATE:
        value = value.value  # no "at least": more than the line rate is impossible
    is_rate = aspect in ("rate", "span")
    text = rate_cell(value, write) if is_rate else _number_text(value, write)
    if not isinstance(value, Spread) or not (with_range or aspect == "span") or (is_rate and value.is_line_rate):
        return text
    least, most = write(value.minimum), write(value.maximum)
    told = [f"{least} to {most}"] if least != most else []
    told += [f"{value.n} of {value.runs} runs"] if value.n < value.runs else []
    return f"{text} ({', '.join(told)})" if told else text


def _number_text(value: Value, write: Writer) -> str:
    """Returns a value without the range of its runs."""
    if isinstance(value, Bounded) and value.value is not None:
        return f"{'≥ ' if value.at_least else ''}{value_cell(value, write)}"
    plain = _plain(value)
    if plain is None or isinstance(plain, str):
        return UNKNOWN if plain is None else _MICRO.sub(r"\1 µs", plain)
    at_least = isinstance(value, Spread) and value.at_least
    return f"≥ {write.down(plain)}" if at_least else write(plain)


def _span_text(value: Value, write: Writer) -> str | None:
    """Returns a rate between its bounds, as the terminal has it: "0.39 .. 0.40"; None where it is not bounded so."""
    if isinstance(value, Spread):
        of = f" ({value.n} of {value.runs} runs)" if value.n < value.runs else ""
        if value.minimum == value.maximum:
            return f"{rate_cell(value, write)}{of}"
        return f"{write(value.minimum)} .. {_number_text(value, write)} .. {write(value.maximum)}{of}"
    if not isinstance(value, Bounded) or value.lower is None or value.upper is None or value.is_zone:
        return None
    middle = () if value.value in (None, value.lower) else (write(value.value or 0.0),)
    return " .. ".join(dict.fromkeys((write.down(value.lower), *middle, write.up(value.upper))))


def printed_digits(result: Result, column: Column) -> str | None:
    """Returns the digits of an imported value exactly as its source printed them; None where it printed nothing usable.
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
"""The share of a table's figures that must show the digit to which all of them were printed."""


def fill_digits(printed: Sequence[str | None]) -> list[str | None]:
    """Returns the printed figures of one table with the zeros at their end that spreadsheets leave out: "25" among
    "25.1" and "24.9" is "25.0". Only plain figures are filled, and only where enough of them have that many decimals.
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
    """Returns the same digits in another multiple of the unit; None where ``to`` is not a multiple of it, or where
    there are more digits than printing shows: then a program must have printed them without rounding.
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


def with_unit(column: Column, text: str) -> str:
    """Returns the text with the unit of its column, for a heading or a legend: "64 bytes", "100 % of line rate"; the
    name of a mix of sizes stays unchanged.
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


def in_one_unit(column: Column, results: Iterable[Result]) -> Column:
    """Returns the column in the unit that suits the greatest value: kpps or Mpps."""
    most = max(
        (abs(number) for result in results if (number := number_in(result, column.value)) is not None), default=0.0
    )
    form = suitable_form(column.form, most)
    return column if form == column.form else column.replace(form=form, unit=SCALES[form].unit)


def main_words(result: Result) -> str:
    """Returns the main values of a result in words, "NDR 498 .. 504 kpps, PDR 498 .. 504 kpps"; "" for none."""
    method = find("nicbench.methods", Method).get(result.method)
    told = []
    for name in method.main_values(result) if method is not None else ():
        declared = method.column_of(result, name) if method is not None else None
        if declared is not None and name in result.values:
            column = in_one_unit(declared.replace(aspect="span") if declared.aspect == "rate" else declared, (result,))
            told.append(f"{column.head} {with_unit(column, text_of(column, result))}")
    return ", ".join(told)
