"""Statistics on the page: the published study of frames against independent arithmetic, the sections, and drift."""

from __future__ import annotations

import csv
import dataclasses
import html
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import scipy

from nicbench import report
from nicbench.compare.claims import Basis
from nicbench.compare.points import seed_of
from nicbench.core.plan import Plan, PlannedTest
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict, Summary
from nicbench.core.units import line_rate_frames_per_s
from nicbench.importing.reference.data_sets import data_set, results_of
from nicbench.report.drawing import kit
from nicbench.report.drawing.charts import LINE_RATE, points_of, rates_by_size_caption
from nicbench.report.drawing.plots import share_bars_chart, tells_something
from nicbench.report.editors import compared_sentences, studies
from nicbench.report.model import Report
from nicbench.report.section import Further, RunKnowledge, Section
from nicbench.report.sections.statistics import within
from nicbench.report.statistics import StatisticsView, statistics_view
from nicbench.report.tables import sections
from nicbench.stats.bootstrap import IntervalSpec

from . import _editors
from ._sections import searched

RUN_ID = "2026-11-22T120000Z-published"
DATA = Path(__file__).parents[2] / "src/nicbench/importing/reference/data"


def view_of(results: tuple[Result, ...], configurations: tuple[str, ...] = ()) -> StatisticsView:
    summary = Summary(title="x", verdict=ResultVerdict.VALID, results=results, configurations=configurations)
    return statistics_view(summary, {}, None, RUN_ID)


@pytest.fixture(scope="module")
def published() -> tuple[Result, ...]:
    return tuple(results_of(data_set("frametest-sums")).results)


@pytest.fixture(scope="module")
def studied(published: tuple[Result, ...]) -> StatisticsView:
    return view_of(published)


def printed(configuration: str, direction: str, instances: int) -> list[float]:
    """Straight from the published table."""
    with (DATA / "frametest_r750_2022_sums.csv").open() as file:
        return [
            float(row["fps_sum"])
            for row in csv.DictReader(file)
            if (row["configuration"], row["direction"], row["instances"]) == (configuration, direction, str(instances))
        ]


def test_the_sentences_of_the_published_study(published: tuple[Result, ...], studied: StatisticsView) -> None:
    (study,) = studies(published, {})
    assert compared_sentences(study, studied) == (
        "Reading, with 10 instances, “1x100” is 1.24 times as fast as “4x25” [1.20, 1.43].",
        "Writing, with 10 instances, “1x100” is 1.43 times as fast as “4x25” [1.26, 1.44].",
    )


@pytest.mark.parametrize(("direction", "instances"), [("read", 10), ("write", 10), ("read", 6), ("write", 8)])
def test_its_ratios_intervals_and_tests_are_those_of_scipy(
    studied: StatisticsView, direction: str, instances: int
) -> None:
    one, other = printed("1x100", direction, instances), printed("4x25", direction, instances)
    assert len(one) == len(other) == 15
    (found,) = (
        each
        for each in studied.differences
        if each.point.parameters == {"part": "runs", "direction": direction, "instances": instances}
    )
    effect, test, delta = found.comparison.effect, found.comparison.test, found.comparison.dominance
    assert effect.estimate == pytest.approx(np.median(one) / np.median(other), rel=1e-12)
    assert effect.lower is not None
    assert effect.upper is not None
    ours = scipy.stats.mannwhitneyu(one, other, method="asymptotic")
    assert test.statistic == ours.statistic
    higher = sum(x > y for x in one for y in other) - sum(x < y for x in one for y in other)
    assert delta.delta == pytest.approx(higher / 225)
    draws = np.random.default_rng(5)
    ratios = [
        np.median(draws.choice(one, 15)) / np.median(draws.choice(other, 15)) for _ in range(4000)
    ]  # a percentile interval, which BCa corrects a little: the ends lie where the resamples do
    assert np.quantile(ratios, 0.001) <= effect.lower <= np.quantile(ratios, 0.2)
    assert np.quantile(ratios, 0.8) <= effect.upper <= np.quantile(ratios, 0.999)
    assert (found.claim.basis, found.better) == (Basis.RUNS, "1x100")


def test_p_values_are_corrected_as_holm_does_it(studied: StatisticsView) -> None:
    tested = [one for one in studied.differences if one.p_corrected is not None]
    order = sorted(tested, key=lambda one: one.comparison.test.p if one.comparison.test else 1.0)
    least = 0.0
    for place, one in enumerate(order):
        least = max(least, min(1.0, (len(order) - place) * one.comparison.test.p))
        assert one.p_corrected == pytest.approx(least)


def test_the_arithmetic_names_its_seed_which_is_of_the_run(studied: StatisticsView) -> None:
    assert studied.seed == seed_of(RUN_ID)
    (one,) = (each for each in studied.differences if each.point.circumstances == "reading, with 10 instances")
    assert one.arithmetic.startswith("median 234.0 fps of 15 runs of “1x100”; median ")
    assert f"95 % BCa bootstrap interval of 10,000 resamples (seed {studied.seed}) [1.20, 1.43]" in one.arithmetic


def test_outliers_are_named_and_never_removed(studied: StatisticsView) -> None:
    (test,) = studied.tests
    for row in test.rows:
        said = row.of.point.parameters
        values = printed(row.configuration, said["direction"], said["instances"])
        if (row.configuration, said["direction"], said["instances"]) == ("4x25", "read", 1):
            continue  # of which a cell is an erratum
        lower, upper = np.percentile(values, [25, 75])
        reach = 1.5 * (upper - lower)
        far = [run for run, value in enumerate(values, start=1) if not lower - reach <= value <= upper + reach]
        assert [one.run for one in row.found.outliers] == far
        assert (row.found.n, row.found.maximum) == (15, max(values))
        assert row.found.mean == pytest.approx(np.mean(values))


def test_the_page_says_how_and_how_often_was_compared(tmp_path: Path) -> None:
    found = _editors.results(instances=(2, 9, 10), runs=6)
    page = html.unescape(report.build(_editors.write(tmp_path, found, ("1x100", "4x25"))).read_text())
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    for words in (
        "Statistics over runs: frames",
        "Sample standard deviation",
        "Population standard deviation",
        "Tukey's fences",
        "Differences between configurations",
        "comparisons were tested; if nothing differed",
        "corrected for all of them together (Holm)",
        "Drift",
        "corrected together by Holm's method",
    ):
        assert words in text, words
    assert page.count('class="multiples of-runs"') == 1
    assert f"seed {seed_of(re.findall('run ([^ <]+)</p>', page)[0])}" in text


def test_a_soak_that_grows_slower_is_a_drift_within_the_run() -> None:
    results = tuple(
        Result(
            id=f"soak/64/{number}",
            test="soak",
            method="soak",
            parameters={"frame_bytes": 64, "interval": str(number), "load_percent": 90, "load_of": "line rate"},
            values={"loss_percent": 0.0, "latency_p50_us": 1.0 + 0.01 * number},
        )
        for number in range(1, 21)
    )
    drift = view_of(results).drift_within
    assert drift.sentence == "1 of 2 values drifts within a run (2 tests, corrected together by Holm's method at 95 %)."
    (one,) = drift.rows
    assert one.name == "soak: 64-byte frames, median latency"
    assert "from the first to the last of 20 intervals (Mann-Kendall, p < 0.0001 corrected)" in drift.words(one)
    many = tuple(result.replace(id=f"{result.id}/{part}", parameters={
        **result.parameters, "interval": str(20 * part + int(result.parameters["interval"]))},)
        for part in range(50) for result in results)  # fmt: skip
    thinned = view_of(many).drift_within
    assert {one.n for one in thinned.found.all} == {200}


def test_one_run_has_no_statistics() -> None:
    assert view_of(tuple(_editors.results(instances=(2,), runs=1)), ("1x100", "4x25")).is_empty


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (1.2345, 1.3456, "[1.23, 1.35]"),
        (99.0, 99.0, "[99.00, 99.00]"),
        (12_345.6, 23_456.7, "[12\u202f346, 23\u202f457]"),
    ],
)
def test_an_interval_has_two_digits_of_its_width(lower: float, upper: float, text: str) -> None:
    assert within(lower, upper) == text
    assert within(None, upper) == "–"


def test_of_a_test_only_what_differs_is_told() -> None:
    results = tuple(
        Result(id=f"{run}/{load}", test="a", method="load-sweep", run=run, values={"returned_percent": 90.0 + run},
               parameters={"frame_bytes": 64, "size": "64", "ports": 2, "load_percent": load, "load_of": "line rate"})
        for run in (1, 2) for load in (50, 100)
    )  # fmt: skip
    (test,) = view_of(results).tests
    assert [row.point for row in test.rows] == [
        "With 64-byte frames at 50 % of the line rate",
        "With 64-byte frames at 100 % of the line rate",
    ]
    assert IntervalSpec(seed=seed_of(RUN_ID)).seed == test.rows[0].found.mean_interval.seed


PUBLISHED = Path(__file__).parents[2] / "src/nicbench/importing/reference/data" / "connectx5_dpdk1908_zero_loss.csv"
LINKS = {"2x25GbE": 50e9, "1x100GbE": 100e9}  # the sum of both ports, where there are two
# Printed rate, line rate and share of a row contradict each other in none of these tables.
ERRATA = set()


def zero_loss_published() -> list[dict[str, str]]:
    with PUBLISHED.open() as file:
        return list(csv.DictReader(file))


def name(row: Mapping[str, str]) -> str:
    return f"test {row['test']}-{row['frame_bytes']}"


def as_result(row: Mapping[str, str]) -> Result:
    """A line of a published table as the method would have given it."""
    rate = float(row["frame_rate_mpps"]) * 1e6
    return Result(
        id=f"test {row['test']}/{row['frame_bytes']}",
        method="throughput",
        configuration=row["scope"],
        scope="sum of 2 ports" if row["ports"].startswith("2x") else "per port",
        parameters={"frame_bytes": int(row["frame_bytes"])},
        values={
            "ndr_frames_per_s": Bounded(value=rate, lower=rate, limited_by=LimitedBy.LINE_RATE),
            "ndr_percent_of_line_rate": float(row["percent_of_line_rate"]),
            "line_rate_frames_per_s": float(row["line_rate_mpps"]) * 1e6,
        },
    )


def plan_of(goals: Mapping[str, float]) -> Plan:
    options = {"search": {"goals": dict(goals)}}
    test = PlannedTest(name="t", method="throughput", description="", options=options, points=1, estimate_s=0.0)
    return Plan(run_id="x", title="x", nicbench_version="0", seed=0, tests=(test,))


def rendered(results: list[Result], goals: Mapping[str, float]) -> Further | None:
    """The zero-loss table; None where the section has none."""
    named = [result.replace(test="t") for result in results]
    (section,) = sections(named, {}, known=RunKnowledge(plan_of(goals)))
    return next((further for further in section.further if further.table.title == "Zero packet loss"), None)


def zero_loss(section: Section) -> Further:
    return next(further for further in section.further if further.table.bars is not None)


@pytest.mark.parametrize("test", ["1", "2", "5"])
def test_a_published_table_is_rendered_cell_for_cell(test: str) -> None:
    rows = [row for row in zero_loss_published() if row["test"] == test]
    table = rendered([as_result(row) for row in rows], {"NDR": 0.0})
    columns = ("frame_bytes", "frame_rate_mpps", "line_rate_mpps", "percent_of_line_rate")
    assert [row.cells for row in table.rows] == [tuple(row[column] for column in columns) for row in rows]
    assert [f"{column.head} {column.unit or ''}".strip() for column in table.table.columns] == [
        "Frame size bytes",
        "Frame rate Mpps",
        "Line rate Mpps",
        "% of line rate",
    ]


@pytest.mark.parametrize("row", zero_loss_published(), ids=name)
def test_a_published_line_rate_is_ours_within_its_rounding(row: dict[str, str]) -> None:
    ours = line_rate_frames_per_s(LINKS[row["ports"]], int(row["frame_bytes"])) / 1e6
    assert abs(ours - float(row["line_rate_mpps"])) <= 0.005 + 1e-9


@pytest.mark.parametrize("row", zero_loss_published(), ids=name)
def test_a_published_share_is_that_of_its_rates_within_their_rounding(row: dict[str, str]) -> None:
    ours = line_rate_frames_per_s(LINKS[row["ports"]], int(row["frame_bytes"])) / 1e6
    share = 100.0 * float(row["frame_rate_mpps"]) / ours
    rounding = 100.0 * 0.005 / ours + 0.5 * 10.0 ** -len(row["percent_of_line_rate"].partition(".")[2])
    assert (abs(share - float(row["percent_of_line_rate"])) <= rounding) is (name(row) not in ERRATA)


def test_a_rate_that_the_tester_limited_is_at_least_that() -> None:
    rate = Bounded(value=9e6, lower=9e6, limited_by=LimitedBy.TESTER)
    values = {"ndr_frames_per_s": rate, "ndr_percent_of_line_rate": 60.48, "line_rate_frames_per_s": 14.88e6}
    result = Result(id="t/64", method="throughput", parameters={"frame_bytes": 64}, values=dict(values))
    table = rendered([result], {"NDR": 0.0})
    assert table.rows[0].cells == ("64", "≥ 9.00", "14.88", "60.48")


def test_without_a_rate_that_loses_nothing_there_is_no_such_table(view: Report) -> None:
    results = [row.result for row in searched(view).rows]
    assert rendered(results, {"NDR": 0.001, "PDR": 0.005}) is None
    assert rendered(results, {"NDR": 0.0, "PDR": 0.005}) is not None


def test_the_bars_stand_beside_the_share_of_the_line_rate(view: Report) -> None:
    table = zero_loss(searched(view))
    for form in (kit.WIDE, kit.NARROW):
        chart = share_bars_chart(table, form)
        bars, line = chart["layer"]
        assert (bars["encoding"]["y"]["title"], line["encoding"]["y"]["title"]) == (
            "frame rate [kpps]",
            "% of line rate",
        )


def test_the_graph_of_rfc_2544_has_the_line_rate_where_the_link_is_real(view: Report) -> None:
    section = searched(view)
    real = RunKnowledge(view.plan.replace(link_is_nominal=False, simulated=False))
    of_real_link = dataclasses.replace(section, known=real)
    near, whole = points_of(section), points_of(of_real_link)
    highest = max(bound["rate"] for bound in whole.bounds if bound["goal"] == LINE_RATE)
    assert near.top < highest / 10  # a nominal rate, 30 times what was measured
    assert whole.top >= highest
    assert "the line rate" in rates_by_size_caption(of_real_link)


def test_bars_are_drawn_against_the_line_rate_of_a_real_link_and_not_of_a_nominal_one(view: Report) -> None:
    section = searched(view)
    real = RunKnowledge(view.plan.replace(link_is_nominal=False))
    assert not tells_something(section)
    assert tells_something(dataclasses.replace(section, known=real))
    assert not tells_something(dataclasses.replace(section, rows=section.rows[:1], known=real))
