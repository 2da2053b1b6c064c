"""What each layer costs: time per frame from rates with two bounds, and nothing where that is not comparable."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nicbench.core.plan import Difference
from nicbench.core.result import Result, ResultVerdict
from nicbench.report.comparison import _of_rates, layer_costs
from nicbench.report.rates import RateCell
from nicbench.report.sections.comparing import _cell
from nicbench.stats.sample import Span


def cell(name: str, rate: float, lower: float, upper: float) -> RateCell:
    return RateCell(name, rate, None, 1, "", "", "", "", "", Span(lower, upper), ())


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


@pytest.mark.parametrize("verdict", ResultVerdict)
def test_a_cost_of_a_result_that_is_not_valid_is_marked(verdict: ResultVerdict) -> None:
    bare = replace(cell("bare", 1e6, 0.8e6, 1.25e6), results=(result_of(ResultVerdict.VALID),))
    layer = replace(cell("nat", 0.5e6, 0.4e6, 0.625e6), results=(result_of(verdict),))
    for first, second in ((bare, layer), (layer, bare)):
        (cost,) = _of_rates("64", (first, second))
        assert ("*" in repr(_cell(cost, (cost,)))) is (verdict is not ResultVerdict.VALID)


def result_of(verdict: ResultVerdict) -> Result:
    return Result(id="t/64", method="throughput", scope="per port", parameters={}, values={}, verdict=verdict)


@pytest.mark.parametrize("settings", [("dut.filter_rules",), ("dut.kind", "traffic.flows"), ()])
def test_configurations_that_do_not_differ_in_their_dut_alone_are_not_compared(settings: tuple[str, ...]) -> None:
    differences = [Difference(setting=setting, values={}) for setting in settings]
    assert layer_costs(differences, (), ()) is None
