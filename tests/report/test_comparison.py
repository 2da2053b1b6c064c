"""Configurations beside each other in the report: told apart only where their intervals tell, old runs as they were."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nicbench.compare.claims import Basis
from nicbench.core.plan import Difference, Plan
from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy, Result, ResultVerdict, Spread, Summary
from nicbench.methods.base import main_values
from nicbench.report.answer import of_comparison
from nicbench.report.comparison import Comparison, _of_rates, comparison, heat_maps, layer_costs
from nicbench.report.drawing import kit
from nicbench.report.drawing.kit import WIDE
from nicbench.report.drawing.plots import bins_chart, curve_chart, heat_chart
from nicbench.report.drawing.rates import has_cut_intervals, rate_multiples, rates_chart
from nicbench.report.drawing.svg import identifiers, svg
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN
from nicbench.report.rates import RateCell, change_of
from nicbench.report.sections.comparing import _cell
from nicbench.report.sections.statistics import verdict_of
from nicbench.report.statistics import statistics_view
from nicbench.stats.runs import summarise_over_runs
from nicbench.stats.sample import Span

Interval = tuple[float, float | None]


def throughput(configuration: str, run: int, size: int, interval: Interval) -> Result:
    lower, upper = interval
    rate = Bounded(value=lower * 1e6, lower=lower * 1e6, upper=upper and upper * 1e6, limited_by=LimitedBy.DUT)
    return Result(
        id=f"{configuration}/{run}/throughput/{size}",
        test="throughput",
        method="throughput",
        configuration=configuration,
        run=run,
        scope="per port",
        parameters={"frame_bytes": size},
        values={"ndr_frames_per_s": rate, "ndr_percent_of_line_rate": 100 * lower / 14.88},
    )


def compare(results: Sequence[Result], names: Sequence[str] = ("fast", "slow")) -> Comparison:
    summary = Summary(
        title="x",
        verdict=ResultVerdict.VALID,
        results=tuple(results),
        configurations=tuple(names),
        over_runs=summarise_over_runs(results),
    )
    found = comparison(summary, {}, None, statistics_view(summary, {}, None, "a run"))
    assert found is not None
    return found


def sentence(*intervals: Interval, names: Sequence[str] = ("fast", "slow")) -> str:
    results = [throughput(name, 1, 64, interval) for name, interval in zip(names, intervals, strict=True)]
    return of_comparison.headline(compare(results, names)).replace("\u00a0", " ")


def test_intervals_that_do_not_overlap_are_a_difference() -> None:
    said = sentence((0.40, 0.41), (0.20, 0.21))
    assert said.startswith("With 64-byte frames, “fast” passes 400 kpps and “slow” passes 200 kpps")
    assert said.endswith("“fast” passes 1.90 to 2.05 times as much as “slow”; their intervals do not overlap.")
    assert "“slow” passes 1.90 to 2.05 times as much as “fast”" in sentence((0.20, 0.21), (0.40, 0.41))
    assert "“fast” passes 1.002 to 1.051 times as much as “slow”" in sentence((0.401, 0.41), (0.39, 0.40))
    assert "“fast” passes at least 1.002 times as much as “slow”" in sentence((0.401, None), (0.39, 0.40))


@pytest.mark.parametrize(
    "intervals", [((0.40, 0.42), (0.41, 0.43)), ((0.40, 0.41), (0.41, 0.42)), ((0.40, None), (0.5, 0.6))]
)
def test_intervals_that_touch_or_have_no_end_are_no_difference(intervals: tuple[Interval, Interval]) -> None:
    assert "“fast” and “slow” show no difference: their intervals overlap" in sentence(*intervals)


@pytest.mark.parametrize("runs", [1, 5])
@pytest.mark.parametrize("disturbed", ["fast", "slow"])
def test_of_a_disturbed_result_no_difference_is_claimed_anywhere(runs: int, disturbed: str) -> None:
    """Neither the answer, nor the column next to the rate, nor the table claims what intervals and runs would show."""
    each = [
        throughput(name, run, 64, interval)
        for run in range(1, runs + 1)
        for name, interval in (("fast", (0.40 + run / 1000, 0.41)), ("slow", (0.20 + run / 1000, 0.21)))
    ]
    last = (disturbed, runs)
    found = compare(
        [one.replace(verdict=ResultVerdict.DISTURBED) if (one.configuration, one.run) == last else one for one in each]
    )
    row = found.rates[0].rows[0]
    (told,) = row.told["ndr_frames_per_s"]
    answer = of_comparison.headline(found).replace("\u00a0", " ")
    against, difference = row.cells["ndr_frames_per_s"][1].against_first, verdict_of(told)
    assert f"no difference can be claimed: results of “{disturbed}” were disturbed." in answer
    assert "times" not in answer
    assert answer.endswith("Not reliable: some of the trials were disturbed.")
    assert (against, difference) == ("disturbed", "disturbed")


def test_of_three_each_two_are_compared() -> None:
    said = sentence((0.40, 0.41), (0.405, 0.42), (0.10, 0.11), names=("a", "b", "c"))
    assert "“a” and “b” show no difference" in said
    assert "“a” passes 3.64 to 4.10 times as much as “c”" in said
    assert "“b” passes 3.68 to 4.20 times as much as “c”" in said


def test_of_five_each_is_compared_with_the_first() -> None:
    intervals = ((0.40, 0.41), (0.405, 0.42), (0.10, 0.11), (0.39, 0.405), (0.8, 0.9))
    said = sentence(*intervals, names=("a", "b", "c", "d", "e"))
    assert "“a” passes 400 kpps, “b” 405 kpps, “c” 100 kpps, “d” 390 kpps and “e” 800 kpps" in said.replace(
        "\u00a0", " "
    )
    assert "“a” passes 3.64 to 4.10 times as much as “c”" in said
    assert "“e” passes 1.95 to 2.25 times as much as “a”" in said
    assert said.count("do not overlap") == 2
    assert said.endswith("For “b” and “d” no difference from “a” is shown: the intervals overlap.")


def test_runs_that_lie_apart_take_a_difference_away() -> None:
    """One run each would have told them apart; the second runs lie the other way round."""
    fast = [throughput("fast", 1, 64, (0.40, 0.41)), throughput("fast", 2, 64, (0.30, 0.31))]
    slow = [throughput("slow", 1, 64, (0.35, 0.36)), throughput("slow", 2, 64, (0.36, 0.37))]
    found = compare([*fast, *slow])
    (cell, other) = found.rates[0].rows[0].cells["ndr_frames_per_s"]
    assert (cell.text, cell.within, other.against_first) == ("350", "300 to 400", "no difference shown")
    assert "show no difference" in of_comparison.headline(found)
    assert "median of 2 runs" in of_comparison.headline(found)


def test_medians_are_of_the_runs_that_have_the_value() -> None:
    """Three runs were made of each, and one of “slow” found no rate; then none but one did."""
    fast = [throughput("fast", run, 64, (0.40, 0.41)) for run in (1, 2, 3)]
    slow = [throughput("slow", run, 64, (0.20, 0.21)) for run in (1, 2, 3)]
    lost = [found.replace(values={"ndr_frames_per_s": Bounded(value=None)}) for found in slow]
    said = of_comparison.headline(compare([*fast, slow[0], slow[1], lost[2]]))
    assert "(NDR, medians: 3 runs of “fast” and 2 runs of “slow”)" in said
    found = compare([*fast, slow[0], lost[1], lost[2]])
    assert "(NDR, medians: 3 runs of “fast” and 1 run of “slow”)" in of_comparison.headline(found)
    assert found.rates[0].rows[0].cells["ndr_frames_per_s"][1].within == "1 of 3 runs"
    both = compare([fast[0], fast[1], lost[2].replace(configuration="fast"), slow[0], slow[1], lost[2]])
    assert "(NDR, median of 2 of 3 runs)" in of_comparison.headline(both)


def test_tables_statistics_and_summary_count_runs_of_a_dead_device_alike() -> None:
    fast = [throughput("fast", run, 64, (0.50, 0.51)) for run in range(1, 6)]
    slow = [throughput("slow", run, 64, (0.50 + run / 1000, 0.51)) for run in range(1, 6)]
    dead = Bounded(value=None, upper=1000.0, reason_null=f"{PASSES_NOTHING}: no frame came back", passes_nothing=True)
    values = {"ndr_frames_per_s": dead, "ndr_percent_of_line_rate": 0.0}
    slow[1:4] = [one.replace(values=values) for one in slow[1:4]]
    results = (*fast, *slow)
    cell = compare(results).rates[0].rows[0].cells["ndr_frames_per_s"][1]
    assert (cell.rate_frames_per_s, cell.measured, cell.text, cell.within) == (0.0, 5, "0", "0 to 505")
    assert cell.percent_of_line_rate == "0"
    summary = Summary(title="x", verdict=ResultVerdict.VALID, results=results, configurations=("fast", "slow"))
    (test,) = statistics_view(summary, {}, None, "a run").tests
    (told,) = (row for row in test.rows if row.configuration == "slow")
    over = next(one for one in summarise_over_runs(results, main=main_values, seed=1) if one.configuration == "slow")
    spread = over.values["ndr_frames_per_s"]
    assert isinstance(spread, Spread)
    in_unit = (told.found.n, told.found.median, told.found.minimum, told.found.mean)
    assert in_unit == (5, 0.0, 0.0, pytest.approx(spread.statistics.mean / 1e3))
    assert (spread.n, spread.median, spread.minimum, spread.statistics.n) == (5, 0.0, 0.0, 5)


def test_a_bound_is_rounded_up_to_three_digits_whatever_stands_beside_it() -> None:
    narrow = throughput("fast", 1, 64, (1.41231, 1.41239))
    bound = Bounded(value=None, upper=1.2431e6, limited_by=LimitedBy.DUT, reason_null="no trial was left")
    below = throughput("slow", 1, 64, (0, 0)).replace(values={"ndr_frames_per_s": bound})
    found = compare([narrow, below])
    assert found.rates[0].rows[0].cells["ndr_frames_per_s"][1].text == "< 1.25"
    assert "“slow” passes less than 1.25 Mpps" in of_comparison.headline(found).replace("\u00a0", " ")


def test_the_change_against_the_first_comes_from_the_ends_of_the_intervals() -> None:
    found = compare([throughput("fast", 1, 64, (0.40, 0.50)), throughput("slow", 1, 64, (0.20, 0.25))])
    assert [cell.against_first for cell in found.rates[0].rows[0].cells["ndr_frames_per_s"]] == [
        "",
        "\u221260 % to \u221237.5 %",
    ]


def test_a_size_that_one_does_not_have_is_left_empty() -> None:
    found = compare([throughput("fast", 1, 64, (0.4, 0.5)), throughput("slow", 1, 512, (0.2, 0.3))])
    assert [[cell.text for cell in row.cells["ndr_frames_per_s"]] for row in found.rates[0].rows] == [
        ["400", UNKNOWN],
        [UNKNOWN, "200"],
    ]


def test_the_chart_has_a_group_of_bars_for_each_size() -> None:
    sizes = (64, 512)
    found = compare([throughput(name, 1, size, (0.4, 0.5)) for name in ("fast", "slow") for size in sizes])
    table = found.rates[0]
    for form in (kit.WIDE, kit.NARROW):
        chart = rates_chart(table, table.goals[0], form)
        bars = chart["layer"][0]
        assert bars["encoding"]["xOffset"]["scale"]["domain"] == ("fast", "slow")
        points = [point for data in chart["datasets"].values() for point in data]
        assert {(point["size"], point["name"]) for point in points} == {
            (str(size), name) for size in sizes for name in ("fast", "slow")
        }


@pytest.mark.parametrize("count", [2, 9])
def test_an_interval_that_would_squeeze_the_bars_is_cut_and_its_end_told(count: int) -> None:
    names = [f"setting {number}" for number in range(count)]
    results = [throughput(name, 1, 64, (0.4, 0.41)) for name in names[1:]]
    table = compare([throughput(names[0], 1, 64, (0.3, 2.5)), *results], names).rates[0]
    chart = rates_chart(table, table.goals[0], kit.WIDE)
    drawings = [svg(chart, 1, "rates")] if chart else []
    drawings += [panel.drawing.svg for panel in rate_multiples(table, table.goals[0], identifiers())]
    (drawing,) = drawings
    assert ">to 2\u202f500<" in drawing
    assert "300 to 2\u202f500" in drawing
    assert has_cut_intervals(table, table.goals[0])


def tail(configuration: str, outside: float) -> Result:
    bins = {"bin_to_10000_ns": 1e8 - outside, "bin_over_10000_ns": outside, "outside_10000_ns": outside}
    return Result(
        id=f"{configuration}/1/latency/64/100",
        test="latency",
        method="latency",
        configuration=configuration,
        run=1,
        parameters={"frame_bytes": 64, "load_of": "NDR", "load_percent": 100.0},
        values={f"{name}_per_100_million": value for name, value in bins.items()} | {"latency_p50_ns": 5000},
    )


def test_the_long_tails_stand_beneath_each_other_on_one_logarithmic_axis() -> None:
    found = compare([tail("slow", 145_000.0), tail("fast", 35_000.0)])
    (table,) = found.tails
    assert [row.name for row in table.rows] == ["fast, 64 bytes", "slow, 64 bytes"]
    assert [row.outside[0][0] for row in table.rows] == ["35\u202f000", "145\u202f000"]
    chart = bins_chart(table, kit.WIDE)
    assert chart["encoding"]["y"]["scale"]["type"] == "log"
    assert chart["encoding"]["xOffset"]["scale"]["domain"] == ["fast, 64 bytes", "slow, 64 bytes"]
    assert [row.cells[:2] for row in found.sections[0].rows] == [("64", "fast"), ("64", "slow")]
    assert (
        of_comparison.headline(found)
        .replace("\u00a0", " ")
        .endswith("pass within 5.00 µs (“fast”) and 5.00 µs (“slow”).")
    )


def loss(configuration: str, percent: float, lost: float) -> Result:
    return Result(
        id=f"{configuration}/1/loss/64/{percent:g}",
        test="loss",
        method="frame-loss",
        configuration=configuration,
        run=1,
        parameters={"frame_bytes": 64, "size": "64", "load_of": "line rate", "load_percent": percent},
        values={"loss_percent": lost},
    )


def test_curves_of_all_configurations_are_in_one_chart() -> None:
    points = ((100.0, 40.0), (90.0, 30.0))
    found = compare([loss(name, percent, lost) for name in ("fast", "slow") for percent, lost in points])
    (section,) = found.sections
    assert section.grids[0].heads == (("64 bytes", "64 bytes"), ("fast", "slow"))
    chart = curve_chart(section, kit.WIDE)
    assert chart["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["fast", "slow"]


def test_a_run_of_one_configuration_has_no_comparison(view: Report) -> None:
    assert view.comparison is None


def test_of_runs_in_which_no_load_passed_only_the_intervals_tell() -> None:
    """To leave them out would compare the best runs of one side with all of the other."""
    runs = [
        *(throughput("fast", run, 64, (0.40 + run / 1000, 0.41)) for run in range(1, 8)),
        *(throughput("slow", run, 64, (0.50 + run / 1000, 0.51)) for run in range(1, 5)),
    ]
    below = Bounded(value=None, upper=0.1e6, limited_by=LimitedBy.DUT, reason_null="frames were lost at 100 kpps")
    for run in range(5, 8):
        one = throughput("slow", run, 64, (0.5, 0.51))
        runs.append(one.replace(values={"ndr_frames_per_s": below}))
    (told,) = compare(runs).rates[0].rows[0].told["ndr_frames_per_s"]
    assert told.claim.basis is Basis.INTERVALS_OVERLAP
    (told,) = compare([*runs[:7], *runs[11:]]).rates[0].rows[0].told["ndr_frames_per_s"]
    assert (told.claim.basis, told.claim.higher) == (Basis.INTERVALS, "fast")


@pytest.mark.parametrize("runs", [1, 5])
def test_what_the_slower_of_two_lacks_at_least_is_a_bound_above_its_change(runs: int) -> None:
    each = [
        throughput(name, run, 64, interval)
        for run in range(1, runs + 1)
        for name, interval in (("fast", (0.40 + run / 1000, None)), ("slow", (0.20 + run / 1000, 0.21)))
    ]
    (told,) = compare(each).rates[0].rows[0].told["ndr_frames_per_s"]
    assert change_of("slow", told).startswith("at most \u2212")
    assert change_of("fast", told).startswith("at least +")


AXES = {"queues": ("1", "2"), "cores": ("1", "4")}


def plan(axes: dict[str, tuple[str, ...]]) -> Plan:
    return Plan(run_id="r", title="t", nicbench_version="0", seed=1, axes=axes)


def result(configuration: str, rate: float | None) -> Result:
    return Result(
        id=f"throughput/64 {configuration}",
        method="throughput",
        configuration=configuration,
        parameters={"frame_bytes": 64, "size": "64"},
        values={"ndr_frames_per_s": Bounded(value=rate, lower=rate, upper=rate)},
    )


RESULTS = [
    result("queues-2_cores-4", 40_000.0),
    result("queues-1_cores-1", 10_000.0),
    result("queues-1_cores-4", None),
    result("queues-2_cores-1", 19_000.0),
]


def test_a_rate_stands_in_the_field_of_its_combination() -> None:
    (found,) = heat_maps(RESULTS, {each.id: "throughput" for each in RESULTS}, plan(AXES))
    assert [(*place, number) for place, (number, _) in found.cells.items()] == [
        ("1", "1", 10.0),
        ("1", "4", None),
        ("2", "1", 19.0),
        ("2", "4", 40.0),
    ]
    assert found.title == "NDR [kpps] over queues and cores, with 64-byte frames"
    assert found.is_of_rate
    drawn = heat_chart(found, WIDE)
    assert drawn is not None
    (points,) = drawn["datasets"].values() if "datasets" in drawn else (drawn["layer"][0]["data"]["values"],)
    assert sorted(point["text"] for point in points) == ["10.0", "19.0", "40.0"]


def test_a_third_axis_has_a_map_for_each_of_its_values() -> None:
    axes = {**AXES, "mtu": ("1500", "9000")}
    every = [
        result(f"queues-{queues}_cores-{cores}_mtu-{mtu}", 1000.0 * int(queues))
        for mtu in ("1500", "9000")
        for queues in ("1", "2")
        for cores in ("1", "4")
    ]
    found = heat_maps(every, {}, plan(axes))
    assert [shown.about for shown in found] == ["with 64-byte frames, mtu 1500", "with 64-byte frames, mtu 9000"]


def test_without_axes_there_is_no_map() -> None:
    assert heat_maps(RESULTS, {}, plan({})) == ()


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
    bare = cell("bare", 1e6, 0.8e6, 1.25e6)._replace(results=(result_of(ResultVerdict.VALID),))
    layer = cell("nat", 0.5e6, 0.4e6, 0.625e6)._replace(results=(result_of(verdict),))
    for first, second in ((bare, layer), (layer, bare)):
        (cost,) = _of_rates("64", (first, second))
        assert ("*" in repr(_cell(cost, (cost,)))) is (verdict is not ResultVerdict.VALID)


def result_of(verdict: ResultVerdict) -> Result:
    return Result(id="t/64", method="throughput", scope="per port", parameters={}, values={}, verdict=verdict)


@pytest.mark.parametrize("settings", [("dut.filter_rules",), ("dut.kind", "traffic.flows"), ()])
def test_configurations_that_do_not_differ_in_their_dut_alone_are_not_compared(settings: tuple[str, ...]) -> None:
    differences = [Difference(setting=setting, values={}) for setting in settings]
    assert layer_costs(differences, (), ()) is None
