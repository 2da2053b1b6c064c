"""Main values over the axes of a study: a row for each value of the first axis, a column for each of the second."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nicbench.core.forms import SCALES, suitable_form
from nicbench.core.plan import Plan
from nicbench.core.registry import find_one
from nicbench.core.result import Result
from nicbench.core.table import Column
from nicbench.core.turn import combination_name, combinations
from nicbench.methods.base import Method
from nicbench.report.cells import factor_of, number_in, texts


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One combination: its value as a number and in words, in the unit of the column; None where it is not known."""

    row: str
    column: str
    number: float | None
    text: str | None


@dataclass(frozen=True, slots=True)
class HeatMap:
    """One value of one point of a test over one axis or two. ``about`` says which point, and of what further axes."""

    test: str
    shown: Column
    about: str
    rows: str
    columns: str | None
    cells: tuple[HeatCell, ...]

    @property
    def is_of_rate(self) -> bool:
        """Whether it is of frames or bits per second."""
        return self.shown.value.endswith(("_frames_per_s", "_bits_per_s"))

    @property
    def title(self) -> str:
        """What is shown, with the axes."""
        over = self.rows if self.columns is None else f"{self.rows} and {self.columns}"
        unit = f" [{self.shown.unit}]" if self.shown.unit else ""
        return f"{self.shown.head}{unit} over {over}{f', {self.about}' if self.about else ''}"


def heat_maps(results: Sequence[Result], tests: Mapping[str, str], plan: Plan | None) -> tuple[HeatMap, ...]:
    """Returns a map of each main value of each point; none where the bench file has no axes."""
    axes = plan.axes if plan is not None else {}
    if not axes:
        return ()
    points: dict[tuple[str, str, str], dict[str, Result]] = {}
    for result in results:
        what = json.dumps(result.parameters, sort_keys=True, default=str)
        by_name = points.setdefault((tests.get(result.id, ""), result.method, what), {})
        by_name[result.configuration] = result
    return tuple(
        found for (test, _, _), by_name in points.items() for found in _maps_of(test, by_name, axes) if _tells(found)
    )


def _in_one_unit(column: Column, results: Iterable[Result]) -> Column:
    """The column in the unit that suits the greatest value: kpps or Mpps."""
    most = max(
        (abs(number) for result in results if (number := number_in(result, column.value)) is not None), default=0.0
    )
    form = suitable_form(column.form, most)
    return column if form == column.form else column.replace(form=form, unit=SCALES[form].unit)


def _tells(found: HeatMap) -> bool:
    return sum(cell.number is not None for cell in found.cells) > 1


def _maps_of(test: str, by_name: Mapping[str, Result], axes: Mapping[str, Sequence[str]]) -> Iterator[HeatMap]:
    first = next(iter(by_name.values()))
    method = find_one("nicbench.methods", Method, first.method)
    if method is None:
        return
    rows, columns, *further = (*axes, None) if len(axes) == 1 else tuple(axes)
    circumstances = method.describe_circumstances(first.parameters)
    for name in method.main_values(first):
        declared = method.column_of(first, name)
        if declared is None:
            continue
        shown = _in_one_unit(declared, by_name.values())
        written = dict(zip(by_name, texts(shown, list(by_name.values())), strict=True))
        for fixed in combinations({axis: axes[axis] for axis in further if axis is not None}):
            also = [f"{axis} {value}" for axis, value in fixed.items()]
            cells = []
            for chosen in combinations({axis: axes[axis] for axis in (rows, columns) if axis is not None}):
                key = combination_name({axis: {**chosen, **fixed}[axis] for axis in axes})
                result = by_name.get(key)
                number = None if result is None else number_in(result, name)
                cells.append(
                    HeatCell(
                        row=chosen[str(rows)],
                        column=chosen[columns] if columns is not None else "",
                        number=None if number is None else number * factor_of(shown.form),
                        text=written.get(key),
                    )
                )
            about = ", ".join(text for text in (circumstances, *also) if text)
            yield HeatMap(test, shown, about, str(rows), columns, tuple(cells))
