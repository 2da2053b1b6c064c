"""Numbers as a reader wants them: as many digits as were measured, the unit said once, and unknown values marked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import NamedTuple

from nicbench.core import units as numerals
from nicbench.core.lists import without_none
from nicbench.core.result import Bounded
from nicbench.core.units import SCALES, Form, format_digits, format_fixed, format_ratio

UNKNOWN = "\u2013"  # an en dash: never a zero
THIN_SPACE = "\u202f"
_SIGNIFICANT_DIGITS = 3
_ROUNDING_ERROR = 1e-7
"""The relative error that a bound may have of the arithmetic before: it is not rounded outwards for that."""


def mpps_decimals(rates_frames_per_s: Iterable[float | None]) -> int:
    """Returns the decimals of a column in Mpps that give its smallest rate three significant digits."""
    return frame_rate_decimals("mpps", [rate for rate in rates_frames_per_s if rate])


_RATE_DECIMALS: Mapping[Form, tuple[int, int]] = MappingProxyType({"pps": (0, 0), "kpps": (0, 3), "mpps": (2, 6)})
"""The fewest and the most decimals of each unit."""


def frame_rate_decimals(form: Form, rates: Iterable[float]) -> int:
    """Returns the decimals that give the smallest rate three significant digits."""
    factor = SCALES[form].factor
    known = [abs(rate) * factor for rate in rates if rate]  # an erratum may be negative
    wanted = [_SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(rate)) for rate in known]
    least, most = _RATE_DECIMALS[form]
    return min(most, max(least, *wanted)) if wanted else least


_MOST_DIGITS = 6


def interval_decimals(lower: float, upper: float) -> int:
    """Returns the decimals of the ends of an interval, below 0 for tens: their last digit is worth half its width or
    less, so that an interval that is known to 20 % has two digits. Each end has two at least.
    """
    first = math.floor(math.log10(upper)) if upper > 0 else 0
    wanted = [1 - first] if upper > lower else [_SIGNIFICANT_DIGITS - 1 - first]
    wanted += [1 - math.floor(math.log10(lower))] if lower > 0 else []
    half = (upper - lower) / 2.0 * (1.0 + _ROUNDING_ERROR)
    wanted += [-math.floor(math.log10(half))] if half > 0 else []
    return min(_MOST_DIGITS - 1 - first, max(wanted))


def mpps(rate_frames_per_s: float | None, decimals: int | None = None) -> str:
    """Returns a frame rate in Mpps, without the unit."""
    if rate_frames_per_s is None:
        return UNKNOWN
    return format_fixed(rate_frames_per_s / 1e6, mpps_decimals([rate_frames_per_s]) if decimals is None else decimals)


def basis_words(scope: str) -> str:
    """Returns which ports a rate belongs to, as it follows "Rates are": "per port", "the sum of 2 ports", "of one
    connection".
    """
    before = next((word for start, word in (("sum of", "the "), ("one ", "of ")) if scope.startswith(start)), "")
    return f"{before}{scope}"


def _in_multiples_of(unit: float) -> Callable[[float | None], str]:
    """Returns what writes a value in a unit, without its name, with three significant digits."""
    return lambda value: UNKNOWN if value is None else significant(value / unit)


megabytes = _in_multiples_of(1e6)
"""Writes a rate in bytes per second in MB/s (10^6 bytes/s)."""
mebibytes = _in_multiples_of(2**20)
"""Writes a rate in bytes per second in MiB/s, in which the published study of film frames printed its rates."""
milliseconds = _in_multiples_of(1e6)
"""Writes a duration in nanoseconds in milliseconds."""
seconds = _in_multiples_of(1.0)
"""Writes a duration in seconds."""


def microseconds(duration_ns: float | None) -> str:
    """Returns a latency in microseconds, without the unit: with three significant digits, or with three decimals below
    1 µs.
    """
    if duration_ns is None or duration_ns == 0:
        return UNKNOWN if duration_ns is None else "0"
    return significant(duration_ns / 1e3) if duration_ns >= 1e3 else format_fixed(duration_ns / 1e3, 3)


def uncertainty(duration_ns: float | None) -> str:
    """Returns an uncertainty in microseconds with two significant digits, without the unit."""
    return UNKNOWN if duration_ns is None else format_digits(duration_ns / 1e3, 2)


def significant(value: float) -> str:
    """Writes three significant digits, whole numbers in full, with thousands set apart: 0.392, 14.9, 12 345."""
    if value == 0:
        return "0"
    decimals = max(0, min(6, _SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(abs(value)))))
    return _with_decimals(value, decimals)


def round_up(value: float) -> float:
    """Rounds an upper bound above 0 up to three significant digits, so that it stays one: 1.2431 to 1.25."""
    return numerals.round_up(value, _SIGNIFICANT_DIGITS)


def speak_number(value: float) -> str:
    """Writes three significant digits without trailing zeros; a value that is only nearly 100 or 0 is never written as
    "100" or "0".
    """
    text = significant(value)
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return of_frames(value) if text in ("0", "100") and value not in (0.0, 100.0) and value < 100.0 else text


def percent(value: float | None) -> str:
    """Writes a value that is in percent already, with three significant digits, or with as many as show that it is not
    quite 100 or 0.
    """
    if value is None:
        return UNKNOWN
    text = significant(value)
    is_part = 0.0 < value < 100.0
    return format_ratio(value / 100.0).removesuffix(" %") if is_part and float(text) in (0.0, 100.0) else text


def trim(value: float | None) -> str:
    """Writes at most three decimals without trailing zeros: 100, 99.9, 94.146."""
    return UNKNOWN if value is None else _with_decimals(value, decimals_of([value]))


def decimals_of(values: Iterable[float | None], most: int = 3) -> int:
    """Returns the decimals that show each value with up to ``most`` of them, without any that would be zero in all
    values.
    """
    texts = [format_fixed(value, most).rstrip("0") for value in values if value is not None]
    return max((len(text.partition(".")[2]) for text in texts), default=0)


def decimals_of_frames(values: Iterable[float | None], most: int = 3) -> int:
    """Returns the decimals for a column of ``of_frames``: all of them where a value is only nearly 0 or 100."""
    known = without_none(values)
    step = 10.0**-most
    if any(0.0 < value < step / 2 or 100.0 - step / 2 < value < 100.0 for value in known):
        return most
    return decimals_of(known, most)


def of_frames(value: float | None, decimals: int = 3) -> str:
    """Writes a percentage of frames: 0 means none and 100 means all, so one frame in many millions is
    not rounded away.
    """
    if value is None:
        return UNKNOWN
    if value in (0.0, 100.0):
        return f"{value:.0f}"
    step = 10.0**-decimals
    if value < step / 2:
        return f"< {_with_decimals(step, decimals)}"
    if 100.0 - step / 2 < value < 100.0:
        return f"> {_with_decimals(100.0 - step, decimals)}"
    return _with_decimals(value, decimals)


def _with_decimals(value: float, decimals: int) -> str:
    return format_fixed(value, decimals, THIN_SPACE)


def share(ratio: float | None) -> str:
    """Writes a ratio in percent, with the sign: "0.5 %", "0 %"."""
    return UNKNOWN if ratio is None else format_ratio(ratio).replace(" ", THIN_SPACE)


def threshold(value: float, unit: str) -> str:
    """Returns a limit with its unit: "20 ms", "5 % of the transmission"."""
    if unit.startswith("share"):
        return f"{share(value)}{unit.removeprefix('share')}"
    return f"{value:g} {unit}"


def whole(count: float | None) -> str:
    """Writes a count with its thousands set apart."""
    return UNKNOWN if count is None else f"{count:,.0f}".replace(",", THIN_SPACE)


def heat_of(number: float | None, among: Iterable[float | None]) -> int | None:
    """Returns where a number lies between the lowest (0) and the highest (100) of those that are known."""
    known = without_none(among)
    if number is None or min(known) == max(known):
        return None
    return round(100.0 * (number - min(known)) / (max(known) - min(known)))


class Writer(NamedTuple):
    """Writes the numbers of a column, which are times ``factor`` of its unit. Called, it rounds to the nearest."""

    nearest: Callable[[float], str]
    factor: float = 1.0
    decimals: int | None = None
    """Those of the last digit, below 0 for tens; None where the text of a number shows them."""

    def __call__(self, number: float) -> str:
        return self.nearest(number)

    def down(self, number: float) -> str:
        """Writes a bound that something is at least: rounded down, so that it stays true."""
        return self._loosen(number, -1)

    def up(self, number: float) -> str:
        """Writes a bound that something is below: rounded up, so that it stays true."""
        return self._loosen(number, 1)

    def _loosen(self, number: float, sign: int) -> str:
        text = self.nearest(number)
        try:
            written = Decimal(text.replace(THIN_SPACE, ""))
        except InvalidOperation:  # no plain number, as "< 0.001"
            return text
        beyond = sign * (Decimal(f"{number * self.factor:.15g}") - written)
        if beyond <= abs(written) * Decimal(_ROUNDING_ERROR):
            return text
        step = Decimal(1).scaleb(int(written.as_tuple().exponent) if self.decimals is None else -self.decimals)
        return self.nearest(float(written + sign * step) / self.factor)


def interval(rate: Bounded, write: Writer) -> str:
    """Returns the interval that is known to contain the rate: "0.38 to 0.40", "at least 0.38", or why it is unknown."""
    if rate.value is None:
        return UNKNOWN if rate.upper is None else f"below {write.up(rate.upper)}"
    if rate.is_bare:
        return UNKNOWN
    lower = rate.value if rate.lower is None else rate.lower
    return f"at least {write.down(lower)}" if rate.upper is None else f"{write.down(lower)} to {write.up(rate.upper)}"
