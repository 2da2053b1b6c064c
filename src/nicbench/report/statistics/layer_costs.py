"""What each layer costs: configurations that differ only in their DUT, against the first of them.

A frame's cost is the time between two frames at the highest rate, 1 / rate; that of a layer is what it adds to that of
the first configuration. Where one core does all the work, it is the core's time. The latency that a layer adds is the
difference of the medians where the load was the same.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.core.plan import Difference
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.report.cells import number_in
from nicbench.report.rates import RateCell, RatesTable
from nicbench.report.section import Section
from nicbench.report.tables import configuration_of

_SAME_LOAD_RATIO: Final = 0.02
_LATENCY: Final = "latency_p50_ns"
_LOAD: Final = "load_frames_per_s"
_NS: Final = 1e9


@dataclass(frozen=True, slots=True)
class Cost:
    """What one configuration adds to the first, in ns a frame, from ``lower`` to ``upper``.

    ``doubtful`` is the first of the results behind it that is not valid.
    """

    size: str
    configuration: str
    added_ns: float
    lower_ns: float
    upper_ns: float
    doubtful: Result | None = None


@dataclass(frozen=True, slots=True)
class LayerCosts:
    """The costs of all but the first configuration, in their order: of time per frame by ``goal``, and of latency."""

    first: str
    names: tuple[str, ...]
    goal: str
    per_frame: tuple[Cost, ...]
    latency: tuple[Cost, ...]


def layer_costs(
    differences: Sequence[Difference], rates: Sequence[RatesTable], sections: Iterable[Section]
) -> LayerCosts | None:
    """Returns the costs; None where the configurations differ in more than their DUT, or not in its kind.

    ``sections`` have the results of every run that counts.
    """
    settings = {difference.setting for difference in differences}
    is_comparable = all(setting.partition(".")[0] == "dut" for setting in settings)
    if not is_comparable or "dut.kind" not in settings or not rates or len(rates[0].names) < 2:
        return None
    shown = rates[0]
    goal = shown.goals[-1]
    per_frame = tuple(cost for row in shown.rows for cost in _of_rates(row.size, row.cells[goal.value]))
    latency = tuple(cost for section in sections for cost in _of_latency(section, shown.names))
    if not per_frame and not latency:
        return None
    return LayerCosts(shown.names[0], shown.names[1:], goal.name, per_frame, latency)


def _of_rates(size: str, cells: Sequence[RateCell]) -> Iterable[Cost]:
    """Yields the costs at one frame size, of rates that are the DUT's own with both bounds known."""
    first = cells[0]
    for cell in cells[1:] if _is_of_the_dut(first) else ():
        if not _is_of_the_dut(cell):
            continue
        assert first.span is not None  # noqa: S101 - as asked above
        assert cell.span is not None  # noqa: S101 - as asked above
        added = _NS / (cell.rate_frames_per_s or math.inf) - _NS / (first.rate_frames_per_s or math.inf)
        least = _NS / cell.span.upper - _NS / first.span.lower
        most = _NS / cell.span.lower - _NS / first.span.upper
        yield Cost(size, cell.configuration, added, least, most, _find_doubtful((*first.results, *cell.results)))


def _is_of_the_dut(cell: RateCell) -> bool:
    """Whether the rate has two bounds: at the line rate, or at the tester's ceiling, the DUT could do more."""
    span = cell.span
    bounded = [value for result in cell.results for value in result.values.values() if isinstance(value, Bounded)]
    at_a_limit = any(value.is_line_rate or value.at_least for value in bounded)
    is_known = span is not None and span.lower > 0.0 and math.isfinite(span.upper)
    return bool(cell.rate_frames_per_s) and is_known and not at_a_limit


def _of_latency(section: Section, names: Sequence[str]) -> Iterable[Cost]:
    """Yields the costs of a section that timed frames of every configuration at the same load."""
    sizes: dict[str, dict[str, list[Result]]] = {}
    for row in section.rows:
        if number_in(row.result, _LATENCY) is not None and number_in(row.result, _LOAD) is not None:
            size = str(row.result.parameters.get("frame_bytes", ""))
            sizes.setdefault(size, {}).setdefault(configuration_of(row.result), []).append(row.result)
    for size, found in sizes.items():
        loads = [number_in(result, _LOAD) or 0.0 for results in found.values() for result in results]
        if names[0] not in found or max(loads) - min(loads) > _SAME_LOAD_RATIO * max(loads):
            continue
        first = _latencies(found[names[0]])
        for name in names[1:]:
            if own := _latencies(found.get(name, ())):
                added = statistics.median(own) - statistics.median(first)
                doubtful = _find_doubtful((*found[names[0]], *found[name]))
                yield Cost(size, name, added, min(own) - max(first), max(own) - min(first), doubtful)


def _find_doubtful(results: Iterable[Result]) -> Result | None:
    return next((result for result in results if result.verdict is not ResultVerdict.VALID), None)


def _latencies(results: Iterable[Result]) -> list[float]:
    return [value for result in results if (value := number_in(result, _LATENCY)) is not None]
