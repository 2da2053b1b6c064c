"""What the throughput chart shows: points with intervals, loads known only to be too high, and references nearby."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nicbench.core.result import Bounded, number_of
from nicbench.report.cells import factor_of, writer
from nicbench.report.numbers import only_below
from nicbench.report.section import Section

LINE_RATE = "line rate"
CEILING = "tester's ceiling"
_NEAR = 2.0  # of the highest rate: a reference further away would press the results into the floor
_HEADROOM = 1.06


@dataclass(frozen=True, slots=True)
class Points:
    """Rows for the chart, rates in ``unit``. ``below`` are rates of which only an upper bound is known."""

    rates: tuple[dict[str, Any], ...]
    below: tuple[dict[str, Any], ...]
    bounds: tuple[dict[str, Any], ...]
    top: float
    unit: str

    @property
    def references(self) -> tuple[str, ...]:
        """The references that are drawn, by name."""
        return tuple(dict.fromkeys(bound["goal"] for bound in self.bounds))

    @property
    def goals_with_a_line(self) -> tuple[str, ...]:
        """One point makes no line."""
        return _with_a_line(self.rates)


def points_of(section: Section, *, line_rate: bool = False) -> Points | None:
    """The searched rates of a section, the ``line_rate`` always among them or only where it is near."""
    searched = section.table.rates
    if searched is None:
        return None
    columns = {column.value: column for column in section.table.columns if column.aspect == "rate"}
    factor = max((factor_of(column.form) for column in columns.values()), default=1.0)
    unit = next((column.unit for column in columns.values() if factor_of(column.form) == factor), None)
    rates: list[dict[str, Any]] = []
    below: list[dict[str, Any]] = []
    bounds: list[dict[str, Any]] = []
    for row in section.rows:
        size = row.cells[0]
        for goal in searched.goals:
            value = row.result.values.get(goal.value)
            rate = value if isinstance(value, Bounded) else Bounded(value=number_of(value))
            point = {"size": size, "goal": goal.name}
            if only_below(rate) and rate.upper is not None:
                words = f"below {writer(columns[goal.value], [rate])(rate.upper)}"
                below.append({**point, "rate": rate.upper * factor, "words": words})
            elif rate.value is not None:
                lower = rate.lower if rate.lower is not None else rate.value
                upper = rate.upper if rate.upper is not None else rate.value
                ends = {"lower": lower * factor, "upper": upper * factor}
                rates.append({**point, "rate": rate.value * factor, **ends})
        for name, value_name in ((LINE_RATE, searched.line_rate), (CEILING, searched.ceiling)):
            bound = number_of(row.result.values.get(value_name))
            if bound is not None:
                bounds.append({"size": size, "goal": name, "rate": bound * factor})
    if not rates and not below:
        return None
    highest = max(*(point["upper"] for point in rates), *(point["rate"] for point in below), 0.0)
    near = [bound for bound in bounds if bound["rate"] <= _NEAR * highest or (line_rate and bound["goal"] == LINE_RATE)]
    top = max(highest, *(bound["rate"] for bound in near), 0.0) * _HEADROOM
    drawn = _with_a_line(near)
    return Points(
        tuple(rates), tuple(below), tuple(bound for bound in bounds if bound["goal"] in drawn), top, unit or ""
    )


def _with_a_line(points: tuple[dict[str, Any], ...] | list[dict[str, Any]]) -> tuple[str, ...]:
    """Names with two points at least."""
    names = [point["goal"] for point in points]
    return tuple(name for name in dict.fromkeys(names) if names.count(name) > 1)
