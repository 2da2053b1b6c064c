"""What two results must share to be of the same thing: test, method, scope and parameters, but for the run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, cast

from nicbench.methods.base import Method
from nicbench.model.result import Result, name_of_test
from nicbench.registry import find_one

_NOT_OF_A_POINT: Final = frozenset({"run"})
"""Of imported results, which number their runs there."""

_ALWAYS_TOLD: Final = frozenset(
    {"part", "frame_bytes", "mix", "load_percent", "load_of", "direction", "instances", "instance"}
)


@dataclass(frozen=True, slots=True)
class Point:
    """Of any configuration and run. ``given`` are the parameters as JSON with sorted keys, for it is a key."""

    test: str
    method: str
    scope: str
    given: str
    untold: tuple[str, ...] = field(default=(), compare=False)
    """Parameters that are the same at all points of the test, and so are not told."""

    @property
    def parameters(self) -> dict[str, Any]:
        """As results have them, but for the run."""
        return cast(dict[str, Any], json.loads(self.given))

    @property
    def circumstances(self) -> str:
        """To begin a sentence: "with 64-byte frames"; "" where there is nothing to tell."""
        return _circumstances(self.method, self.given, self.untold)

    @property
    def words(self) -> str:
        """In a table: "throughput: with 64-byte frames"."""
        return f"{self.test}: {self.circumstances}" if self.circumstances else self.test


def point_of(result: Result, tests: Mapping[str, str] | None = None) -> Point:
    """``tests`` maps the id of a result that is too old to say its test to the test's name."""
    given = {name: value for name, value in result.parameters.items() if name not in _NOT_OF_A_POINT}
    text = json.dumps(given, sort_keys=True, default=str)
    return Point(name_of_test(result, tests or {}), result.method, result.scope, text)


def telling(points: Iterable[Point]) -> dict[Point, Point]:
    """Each point as one that tells, beside frames, load and instances, only what differs among those of its test."""
    by_test: dict[tuple[str, str], list[Point]] = {}
    for point in dict.fromkeys(points):
        by_test.setdefault((point.test, point.method), []).append(point)
    found: dict[Point, Point] = {}
    for members in by_test.values():
        given = [member.parameters for member in members]
        alike = [
            name
            for name in dict.fromkeys(name for one in given for name in one)
            if name not in _ALWAYS_TOLD and len({json.dumps(one.get(name)) for one in given}) == 1
        ]
        found |= {member: replace(member, untold=tuple(alike)) for member in members}
    return found


@lru_cache(maxsize=4096)
def _circumstances(method: str, given: str, untold: tuple[str, ...]) -> str:
    known = find_one("nicbench.methods", Method, method)
    told = {name: value for name, value in json.loads(given).items() if name not in untold}
    return "" if known is None else known.circumstances(told)
