"""What the throughput chart shows: points with intervals, loads known only to be too high, and references nearby."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nicbench.report.model import ThroughputTable
from nicbench.report.numbers import mpps, only_below

LINE_RATE = "line rate"
CEILING = "tester's ceiling"
_NEAR = 2.0  # of the highest rate: a reference further away would press the results into the floor
_HEADROOM = 1.06


@dataclass(frozen=True, slots=True)
class Points:
    """Rows for the chart, rates in Mpps. ``below`` are rates of which only an upper bound is known."""

    rates: tuple[dict[str, Any], ...]
    below: tuple[dict[str, Any], ...]
    bounds: tuple[dict[str, Any], ...]
    top: float

    @property
    def references(self) -> tuple[str, ...]:
        """The references that are drawn, by name."""
        return tuple(dict.fromkeys(bound["goal"] for bound in self.bounds))

    @property
    def goals_with_a_line(self) -> tuple[str, ...]:
        """One point makes no line."""
        return _with_a_line(self.rates)


def points_of(table: ThroughputTable, *, line_rate: bool = False) -> Points | None:
    """The points of a table, the ``line_rate`` always among them or only where it is near; None without any rate."""
    names = {goal.key: goal.name for goal in table.goals}
    rates: list[dict[str, Any]] = []
    below: list[dict[str, Any]] = []
    bounds: list[dict[str, Any]] = []
    for row in table.rows:
        size = row.size
        for key, rate in row.rates.items():
            point = {"size": size, "goal": names.get(key, key)}
            if only_below(rate) and rate.upper is not None:
                below.append({**point, "rate": rate.upper / 1e6, "words": f"below {mpps(rate.upper)}"})
            elif rate.value is not None:
                lower = rate.lower if rate.lower is not None else rate.value
                upper = rate.upper if rate.upper is not None else rate.value
                rates.append({**point, "rate": rate.value / 1e6, "lower": lower / 1e6, "upper": upper / 1e6})
        for name, bound in ((LINE_RATE, row.line_rate_frames_per_s), (CEILING, row.ceiling_frames_per_s)):
            if bound is not None:
                bounds.append({"size": size, "goal": name, "rate": bound / 1e6})
    if not rates and not below:
        return None
    highest = max(*(point["upper"] for point in rates), *(point["rate"] for point in below), 0.0)
    near = [bound for bound in bounds if bound["rate"] <= _NEAR * highest or (line_rate and bound["goal"] == LINE_RATE)]
    top = max(highest, *(bound["rate"] for bound in near), 0.0) * _HEADROOM
    drawn = _with_a_line(near)
    return Points(tuple(rates), tuple(below), tuple(bound for bound in bounds if bound["goal"] in drawn), top)


def _with_a_line(points: tuple[dict[str, Any], ...] | list[dict[str, Any]]) -> tuple[str, ...]:
    """Names with two points at least."""
    names = [point["goal"] for point in points]
    return tuple(name for name in dict.fromkeys(names) if names.count(name) > 1)
