"""Whether the runs made so far are enough, and in words how near they are: of results over runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.model.frame_size import size_words
from nicbench.model.result import Result
from nicbench.model.runs import Runs, RunsMade
from nicbench.model.spread import MeanInterval, Spread
from nicbench.model.turn import DEFAULT

_OF_THE_SIZE: Final = frozenset({"frame_bytes", "mix", "size"})


@dataclass(frozen=True, slots=True)
class Awaited:
    """One main value of a result over runs; ``place`` tells the result from others: "fast: throughput, 64 bytes"."""

    result: Result
    place: str
    name: str
    spread: Spread
    of_mean: MeanInterval

    @property
    def width(self) -> str:
        """Of its interval, in words."""
        if self.spread.n < self.spread.runs:
            return f"only {self.spread.n} of {self.spread.runs} runs have a value"
        ratio = self.of_mean.width_ratio
        return "the mean is 0 and the runs differ" if ratio is None else f"the interval is {percent(ratio)} wide"

    @property
    def order(self) -> tuple[bool, float]:
        """The farther from what was asked, the greater."""
        ratio = self.of_mean.width_ratio
        return not self.of_mean.reached, math.inf if ratio is None else ratio


def awaited(over_runs: Iterable[Result]) -> tuple[Awaited, ...]:
    """Every main value, the one that is farthest from what was asked first."""
    results = tuple(over_runs)
    found = (
        Awaited(result, _place(result, results), name, value, value.of_mean)
        for result in results
        for name, value in result.values.items()
        if isinstance(value, Spread) and value.of_mean is not None
    )
    return tuple(sorted(found, key=lambda one: one.order, reverse=True))


def _place(result: Result, among: Sequence[Result]) -> str:
    """Configuration, test, and those parameters that tell it from other results of the test."""
    test = [other.parameters for other in among if other.test == result.test]
    telling = [
        f"{key.removesuffix('_percent')} {value:g} %" if key.endswith("_percent") else f"{key} {value}"
        for key, value in result.parameters.items()
        if key not in _OF_THE_SIZE and any(other.get(key) != value for other in test)
    ]
    whose = "" if result.configuration == DEFAULT else f"{result.configuration}: "
    size = [size_words(result.parameters)] if "frame_bytes" in result.parameters else []
    return f"{whose}{', '.join([result.test or result.method, *size, *telling])}"


def settled(over_runs: Iterable[Result]) -> bool:
    """Whether every main value is known as closely as was asked. One that no run has is not waited for."""
    return all(one.of_mean.reached for one in awaited(over_runs))


def runs_made(
    asked: Runs, results: Iterable[Result], over_runs: Iterable[Result], *, complete: bool
) -> RunsMade | None:
    """What a summary says of the runs; None where their number is fixed and none warms up: the results say it all."""
    if not asked.grows and not asked.warm_up:
        return None
    runs: dict[str, set[int | None]] = {}
    for result in results:
        if not result.warm_up:
            runs.setdefault(result.configuration, set()).add(result.run)
    made = min(map(len, runs.values()), default=0)
    reached = complete and settled(over_runs) if asked.grows else None
    return RunsMade(asked=asked, made=made, reached=reached)


def verdict_words(asked: Runs, made: int, over_runs: Iterable[Result]) -> str:
    """In a clause: "reached: the widest interval is 3.2 % wide after 7 runs; 5 % was asked"."""
    values = awaited(over_runs)
    wanted = f"{percent(asked.until_ratio or 0.0)} was asked"
    after = f"after {made} run{'' if made == 1 else 's'}"
    if not values:
        return f"no value has an interval {after}; {wanted}"
    worst = values[0]
    if worst.of_mean.reached:
        return f"reached: the widest interval is {percent(worst.of_mean.width_ratio or 0.0)} wide {after}; {wanted}"
    missed = sum(1 for one in values if not one.of_mean.reached)
    others = f", and of {missed - 1} other value{'' if missed == 2 else 's'}" if missed > 1 else ""
    return f"not reached: {worst.width} {after}; {wanted} ({worst.place}, {worst.name}{others})"


def percent(ratio: float) -> str:
    """A share in percent, three significant digits: "8.1 %"."""
    return f"{100.0 * ratio:.3g} %"
