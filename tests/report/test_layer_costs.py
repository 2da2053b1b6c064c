"""What each layer costs: time per frame from rates with two bounds, and nothing where that is not comparable."""

from __future__ import annotations

import pytest

from nicbench.core.plan import Difference
from nicbench.report.rates import RateCell
from nicbench.report.statistics.layer_costs import _of_rates, layer_costs
from nicbench.stats.sample import Span


def cell(name: str, rate: float, lower: float, upper: float) -> RateCell:
    return RateCell(name, rate, None, 1, "", "", "", "", Span(lower, upper), ())


def test_a_frame_costs_the_difference_of_the_times_between_frames() -> None:
    bare, layer = cell("bare", 1e6, 0.8e6, 1.25e6), cell("nat", 0.5e6, 0.4e6, 0.625e6)
    (cost,) = _of_rates("64", (bare, layer))
    assert (cost.size, cost.configuration) == ("64", "nat")
    # 2000 ns against 1000; at the least 1600 against 1250, at the most 2500 against 800.
    assert (cost.added_ns, cost.lower_ns, cost.upper_ns) == pytest.approx((1000.0, 350.0, 1700.0))


def test_a_rate_without_an_upper_bound_has_no_cost() -> None:
    bare, layer = cell("bare", 1e6, 0.8e6, 1.25e6), cell("nat", 0.5e6, 0.4e6, float("inf"))
    assert list(_of_rates("64", (bare, layer))) == []
    assert list(_of_rates("64", (layer, bare))) == []


@pytest.mark.parametrize("settings", [("dut.filter_rules",), ("dut.kind", "traffic.flows"), ()])
def test_configurations_that_do_not_differ_in_their_dut_alone_are_not_compared(settings: tuple[str, ...]) -> None:
    differences = [Difference(setting=setting, values={}) for setting in settings]
    assert layer_costs(differences, (), ()) is None
