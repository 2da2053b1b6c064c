"""OTG's patterns of header fields: a constant, or a program of values that the engine goes through frame by frame.

Frame n of a flow takes value n mod count of each field: the patterns of a flow advance together, each with its own
modulus. An increment is ``{"first", "step", "count"}`` modulo 2 to the power of the field's bits; so is a decrement.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

from nicbench.otg.refusals import Problems

MOST_VALUES: Final = 65_536
"""Values of a list, and different values of a random pattern."""
_WIDEST_NUMBER: Final = 64
"""Fields of more bits are sent to the engine as hexadecimal digits."""


class Kind(Enum):
    """How values of a field are written."""

    NUMBER = "number"
    MAC = "MAC address"
    IPV4 = "IPv4 address"
    IPV6 = "IPv6 address"


Values = dict[str, Any]
"""A program of values, as the engine's protocol has it: ``{"list": [...]}``, ``{"first", "step", "count"}``."""


def _mac(text: str) -> int:
    digits = text.replace("-", ":").split(":")
    if len(digits) != 6:
        raise ValueError(text)
    return int.from_bytes(bytes(int(pair, 16) for pair in digits), "big")


_READERS: Final[Mapping[Kind, Callable[[Any], int]]] = {
    Kind.NUMBER: int,
    Kind.MAC: _mac,
    Kind.IPV4: lambda text: int(ipaddress.IPv4Address(text)),
    Kind.IPV6: lambda text: int(ipaddress.IPv6Address(text)),
}


class Pattern:
    """Reads one pattern of a message. A problem is reported with ``path``, and the default is used."""

    def __init__(self, path: str, bits: int, kind: Kind, problems: Problems) -> None:
        self._path = path
        self._bits = bits
        self._kind = kind
        self._problems = problems

    def read(self, pattern: Mapping[str, Any] | None, default: int, auto: int | None = None) -> int | Values:
        """Returns the constant or the values of a pattern; ``auto`` is what the server chooses where it is to."""
        server = default if auto is None else auto
        if not pattern:
            return server
        if pattern.get("metric_tags"):
            self._problems.not_implemented(f"{self._path}.metric_tags", "metrics by tag are not kept: leave it out")
        choice = pattern.get("choice") or next((key for key in _CHOICES if key in pattern), "auto")
        if choice == "value":
            return (self._number(pattern["value"], "value") or 0) if "value" in pattern else default
        if choice == "values":
            return self._list(pattern.get("values") or [])
        if choice in ("increment", "decrement"):
            return self._counter(pattern.get(choice) or {}, choice, default)
        if choice == "random":
            return self._random(pattern.get("random") or {})
        if isinstance(pattern.get("auto"), Mapping):  # of an address: a protocol of the model would find it
            self._problems.not_implemented(f"{self._path}.auto", "addresses are not obtained by DHCP: give a value")
        return server

    def _list(self, given: list[Any]) -> int | Values:
        if not given:
            self._problems.invalid(f"{self._path}.values", "has no value")
            return 0
        if len(given) > MOST_VALUES:
            self._problems.invalid(f"{self._path}.values", f"has {len(given)} values, of at most {MOST_VALUES}")
            return 0
        if len(given) > 1 and not self._problems.has_room(f"{self._path}.values", len(given)):
            return 0
        numbers = [self._number(value, f"values[{index}]") or 0 for index, value in enumerate(given)]
        return numbers[0] if len(numbers) == 1 else {"list": [self._sent(number) for number in numbers]}

    def _counter(self, given: Mapping[str, Any], choice: str, default: int) -> int | Values:
        start = self._number(given["start"], f"{choice}.start") if "start" in given else default
        step = self._number(given["step"], f"{choice}.step") if "step" in given else 1
        count = int(given.get("count", 1))
        if count < 1:
            self._problems.invalid(f"{self._path}.{choice}.count", "is at least 1")
        if start is None or step is None or count < 1:
            return 0
        if count == 1 or step == 0:
            return start
        signed = step if choice == "increment" else -step
        return {"first": self._sent(start), "step": self._sent(signed % (1 << self._bits)), "count": count}

    def _random(self, given: Mapping[str, Any]) -> int | Values:
        lowest = self._number(given["min"], "random.min") if "min" in given else 0
        highest = self._number(given["max"], "random.max") if "max" in given else (1 << self._bits) - 1
        count = int(given.get("count", 1))
        if lowest is None or highest is None:
            return 0
        if lowest > highest:
            self._problems.invalid(f"{self._path}.random", "min is above max")
        elif not 1 <= count <= MOST_VALUES:
            self._problems.invalid(f"{self._path}.random.count", f"is 1 to {MOST_VALUES}")
        elif self._problems.has_room(f"{self._path}.random.count", count):
            draw = random.Random(int(given.get("seed", 1)))  # noqa: S311 - the client gives the seed to repeat it
            numbers = [draw.randint(lowest, highest) for _ in range(count)]
            return numbers[0] if count == 1 else {"list": [self._sent(number) for number in numbers]}
        return 0

    def _number(self, value: Any, key: str) -> int | None:
        """Reads one value of the field; None, with a problem told, where it is none."""
        try:
            number = _READERS[self._kind](value)
        except (ValueError, TypeError):
            self._problems.invalid(f"{self._path}.{key}", f"{str(value)[:60]!r} is no {self._kind.value}")
            return None
        if not 0 <= number < 1 << self._bits:
            self._problems.invalid(f"{self._path}.{key}", f"{number} does not fit into {self._bits} bits")
            return None
        return number

    def _sent(self, number: int) -> int | str:
        return number if self._bits <= _WIDEST_NUMBER else f"{number:0{self._bits // 4}x}"


_CHOICES: Final = ("value", "values", "increment", "decrement", "random", "auto")
