"""Reading what tools print: JSON and numbers, of which nothing is taken for granted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from nicbench.workloads.base import WorkloadError, last_words

_DEEPEST_SHOWN = 80


def json_object(text: str, tool: str) -> Mapping[str, Any]:
    """The one JSON object that a tool printed; WorkloadError where it is none, or holds NaN or infinity."""
    try:
        read = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise WorkloadError(f"the output of {tool} is no JSON: {_first_line(error)}; {_end_of(text)}") from error
    if not isinstance(read, dict):
        raise WorkloadError(f"the output of {tool} is no JSON object, but begins: {last_words(text[:_DEEPEST_SHOWN])}")
    return read


class Reading:
    """A JSON object, or a table, of a tool's output, read field by field. Errors name the field's place."""

    def __init__(self, content: Any, tool: str, place: str = "") -> None:
        if not isinstance(content, Mapping):
            raise WorkloadError(f"the output of {tool} has no {place or 'content'}")
        self._content = content
        self._tool = tool
        self._place = place

    def part(self, name: str) -> Reading:
        """A part that must be there."""
        return Reading(self._content.get(name), self._tool, self._within(name))

    def maybe(self, name: str) -> Reading | None:
        """A part that may be missing."""
        return None if self._content.get(name) is None else self.part(name)

    def parts(self, name: str) -> tuple[Reading, ...]:
        """A list of parts; none where it is missing."""
        content = self._content.get(name, [])
        if not isinstance(content, list):
            raise WorkloadError(f"the output of {self._tool}: {self._within(name)} is no list")
        return tuple(Reading(one, self._tool, self._within(name)) for one in content)

    def number(self, name: str) -> float:
        """A number that must be there."""
        value = self.maybe_number(name)
        if value is None:
            raise WorkloadError(f"the output of {self._tool} has no {self._within(name)}")
        return value

    def maybe_number(self, name: str) -> float | None:
        """A number, None where it is missing."""
        value = self._content.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WorkloadError(f"the output of {self._tool}: {self._within(name)} is no number")
        return finite(value, f"{self._tool}: {self._within(name)}")

    def maybe_count(self, name: str) -> int | None:
        """A whole number, None where it is missing."""
        value = self.maybe_number(name)
        return None if value is None else int(value)

    def flag(self, name: str) -> bool | None:
        """True or false, None where it is missing or neither."""
        value = self._content.get(name)
        return value if isinstance(value, bool) else None

    def text(self, name: str) -> str | None:
        """A text, None where it is missing."""
        value = self._content.get(name)
        return value if isinstance(value, str) and value else None

    def names(self) -> tuple[str, ...]:
        """Its fields, in the order of the output."""
        return tuple(str(name) for name in self._content)

    def has(self, name: str) -> bool:
        """Whether it is there."""
        return self._content.get(name) is not None

    def _within(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name


def finite(value: float, what: str) -> float:
    """The number; WorkloadError where it is NaN or infinite, or no number can hold it."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise WorkloadError(f"the output of {what} is no finite number")
    return number


def number_of(text: str, what: str) -> float:
    """A number as a tool prints it; WorkloadError where it is none (``inf`` and ``nan`` are none)."""
    try:
        return finite(float(text), what)
    except ValueError:
        raise WorkloadError(f"the output of {what} is no number: {last_words(text[:_DEEPEST_SHOWN])!r}") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which is no number")


def _first_line(error: Exception) -> str:
    return last_words((str(error).splitlines() or [type(error).__name__])[0])


def _end_of(text: str) -> str:
    return f"it ends: {last_words(text[-200:])}" if text.strip() else "it is empty"
