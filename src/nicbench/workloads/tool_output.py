"""Parses what tools print, trusting nothing: JSON, numbers, and latencies of single requests."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any, NoReturn

from nicbench.core.round import Basis, RequestLatency
from nicbench.stats.latency import histogram_of, percentiles_ns
from nicbench.workloads.base import WorkloadError, last_words

NANOSECONDS_PER_MICROSECOND = 1000
_QUOTED_CHARACTERS = 80
_MOST_DIGITS = 30


def json_object(text: str, tool: str) -> Mapping[str, Any]:
    """Parses the one JSON object that a tool printed. WorkloadError where it is none, or holds NaN or infinity."""
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise WorkloadError(f"the output of {tool} is no JSON: {_first_line(error)}; {_quote_end(text)}") from error
    if not isinstance(content, dict):
        beginning = last_words(text[:_QUOTED_CHARACTERS])
        raise WorkloadError(f"the output of {tool} is no JSON object, but begins: {beginning}")
    return content


class Reading:
    """A JSON object of a tool's output, read field by field. Errors name the field's place in the output."""

    def __init__(self, content: Any, tool: str, place: str = "") -> None:
        if not isinstance(content, Mapping):
            raise WorkloadError(f"the output of {tool} has no {place or 'content'}")
        self._content = content
        self._tool = tool
        self._place = place

    def part(self, name: str) -> Reading:
        """Returns a part that must be there; WorkloadError where it is missing."""
        return Reading(self._content.get(name), self._tool, self._within(name))

    def maybe(self, name: str) -> Reading | None:
        """Returns a part, None where it is missing."""
        return None if self._content.get(name) is None else self.part(name)

    def parts(self, name: str) -> tuple[Reading, ...]:
        """Returns a list of parts, empty where it is missing."""
        content = self._content.get(name, [])
        if not isinstance(content, list):
            raise WorkloadError(f"the output of {self._tool}: {self._within(name)} is no list")
        return tuple(Reading(one, self._tool, self._within(name)) for one in content)

    def number(self, name: str) -> float:
        """Returns a number that must be there; WorkloadError where it is missing."""
        value = self.maybe_number(name)
        if value is None:
            raise WorkloadError(f"the output of {self._tool} has no {self._within(name)}")
        return value

    def maybe_number(self, name: str) -> float | None:
        """Returns a number, None where it is missing."""
        value = self._content.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WorkloadError(f"the output of {self._tool}: {self._within(name)} is no number")
        return finite(value, f"{self._tool}: {self._within(name)}")

    def maybe_count(self, name: str) -> int | None:
        """Returns a whole number, None where it is missing."""
        value = self.maybe_number(name)
        return None if value is None else int(value)

    def flag(self, name: str) -> bool | None:
        """Returns true or false, None where the field is missing or neither."""
        value = self._content.get(name)
        return value if isinstance(value, bool) else None

    def text(self, name: str) -> str | None:
        """Returns a text, None where it is missing or empty."""
        value = self._content.get(name)
        return value if isinstance(value, str) and value else None

    def names(self) -> tuple[str, ...]:
        """Returns the names of the fields, in the order of the output."""
        return tuple(str(name) for name in self._content)

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self._content.get(name) is not None

    def _within(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name


def finite(value: float, what: str) -> float:
    """Converts to a finite float. WorkloadError where the number is NaN, infinite, or too large."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise WorkloadError(f"the output of {what} is no finite number")
    return number


def number_of(text: str, what: str) -> float:
    """Parses a number that a tool printed. WorkloadError where it is none (``inf`` and ``nan`` count as none)."""
    try:
        return finite(float(text), what)
    except ValueError:
        raise WorkloadError(f"the output of {what} is no number: {last_words(text[:_QUOTED_CHARACTERS])!r}") from None


def count_of(text: str, what: str) -> int:
    """Parses the digits of a count. WorkloadError where there are more of them than any count has."""
    if len(text) > _MOST_DIGITS:
        raise WorkloadError(f"the output of {what} has a count of {len(text)} digits")
    return int(text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which is no number")


def _first_line(error: Exception) -> str:
    return last_words((str(error).splitlines() or [type(error).__name__])[0])


def _quote_end(text: str) -> str:
    return f"it ends: {last_words(text[-200:])}" if text.strip() else "it is empty"


def latency_of(samples_us: Sequence[float], basis: Basis, tool: str) -> RequestLatency:
    """Computes the distribution of single latencies in microseconds. WorkloadError without any, or with a bad one."""
    if not samples_us:
        raise WorkloadError(f"{tool} kept no latency of any request")
    least, most = min(samples_us), max(samples_us)
    if not math.isfinite(sum(samples_us) * NANOSECONDS_PER_MICROSECOND) or least <= 0:
        raise WorkloadError(f"{tool} kept a latency of {least:g} µs")
    counted = Counter(round(one * NANOSECONDS_PER_MICROSECOND) for one in samples_us)
    histogram = histogram_of(sorted(counted.items()))
    maximum_ns = most * NANOSECONDS_PER_MICROSECOND
    return RequestLatency(
        basis=basis,
        count=len(samples_us),
        minimum_ns=least * NANOSECONDS_PER_MICROSECOND,
        mean_ns=fmean(samples_us) * NANOSECONDS_PER_MICROSECOND,
        maximum_ns=maximum_ns,
        stdev_ns=pstdev(samples_us) * NANOSECONDS_PER_MICROSECOND,
        percentiles_ns=dict(percentiles_ns(histogram, maximum_ns=round(maximum_ns))),
        histogram=histogram,
    )
