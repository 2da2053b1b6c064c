"""Statistics on the page: the published study of frames against independent arithmetic, the sections, and drift."""

from __future__ import annotations

import csv
import html
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from nicbench import report
from nicbench.compare.claims import Basis
from nicbench.compare.points import seed_of
from nicbench.core.result import Result, ResultVerdict, Summary
from nicbench.importing.reference.data_sets import data_set, results_of
from nicbench.report.editors import compared_sentences, studies
from nicbench.report.sections.statistics import within
from nicbench.report.statistics import StatisticsView, statistics_view
from nicbench.stats.intervals import IntervalSpec

from . import _editors

RUN_ID = "2026-11-22T120000Z-published"
DATA = Path(__file__).parents[2] / "src/nicbench/importing/reference/data"


def view_of(results: tuple[Result, ...], configurations: tuple[str, ...] = ()) -> StatisticsView:
    summary = Summary(title="x", verdict=ResultVerdict.VALID, results=results, configurations=configurations)
    return statistics_view(summary, {}, None, RUN_ID)


@pytest.fixture(scope="module")
def published() -> tuple[Result, ...]:
    return tuple(results_of(data_set("frametest-sums")).results)


@pytest.fixture(scope="module")
def view(published: tuple[Result, ...]) -> StatisticsView:
    return view_of(published)


def printed(configuration: str, direction: str, instances: int) -> list[float]:
    """Straight from the published table."""
    with (DATA / "frametest_r750_2022_sums.csv").open() as file:
        return [
            float(row["fps_sum"])
            for row in csv.DictReader(file)
            if (row["configuration"], row["direction"], row["instances"]) == (configuration, direction, str(instances))
        ]


def test_the_sentences_of_the_published_study(published: tuple[Result, ...], view: StatisticsView) -> None:
    (study,) = studies(published, {})
    assert compared_sentences(study, view) == (
        "Reading, with 10 instances, “1x100” is 1.24 times faster than “4x25” [1.20, 1.43].",
        "Writing, with 10 instances, “1x100” is 1.43 times faster than “4x25” [1.26, 1.44].",
    )


@pytest.mark.parametrize(("direction", "instances"), [("read", 10), ("write", 10), ("read", 6), ("write", 8)])
def test_its_ratios_intervals_and_tests_are_those_of_scipy(
    view: StatisticsView, direction: str, instances: int
) -> None:
    one, other = printed("1x100", direction, instances), printed("4x25", direction, instances)
    assert len(one) == len(other) == 15
    (found,) = (
        each
        for each in view.differences
        if each.point.parameters == {"part": "runs", "direction": direction, "instances": instances}
    )
    effect, test, delta = found.comparison.effect, found.comparison.test, found.comparison.dominance
    assert effect.estimate == pytest.approx(np.median(one) / np.median(other), rel=1e-12)
    assert test is not None
    assert delta is not None
    assert effect.lower is not None
    assert effect.upper is not None
    ours = stats.mannwhitneyu(one, other, method="asymptotic")
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


def test_p_values_are_corrected_as_holm_does_it(view: StatisticsView) -> None:
    tested = [one for one in view.differences if one.p_corrected is not None]
    order = sorted(tested, key=lambda one: one.comparison.test.p if one.comparison.test else 1.0)
    least = 0.0
    for place, one in enumerate(order):
        assert one.comparison.test is not None
        least = max(least, min(1.0, (len(order) - place) * one.comparison.test.p))
        assert one.p_corrected == pytest.approx(least)


def test_the_arithmetic_names_its_seed_which_is_of_the_run(view: StatisticsView) -> None:
    assert view.seed == seed_of(RUN_ID)
    (one,) = (each for each in view.differences if each.point.circumstances == "reading, with 10 instances")
    assert one.arithmetic.startswith("median 234.0 fps of 15 runs of “1x100”; median ")
    assert f"95 % BCa bootstrap interval of 10,000 resamples (seed {view.seed}) [1.20, 1.43]" in one.arithmetic


def test_outliers_are_named_and_never_removed(view: StatisticsView) -> None:
    (test,) = view.tests
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
    assert drift is not None
    assert drift.sentence == "1 of 2 values drifts within a run (2 tests, corrected together by Holm's method at 95 %)."
    (one,) = drift.rows
    assert one.name == "soak: 64-byte frames, median latency"
    assert "from the first to the last of 20 intervals (Mann-Kendall, p < 0.0001 corrected)" in drift.words(one)
    many = tuple(result.replace(id=f"{result.id}/{part}", parameters={
        **result.parameters, "interval": str(20 * part + int(result.parameters["interval"]))},)
        for part in range(50) for result in results)  # fmt: skip
    thinned = view_of(many).drift_within
    assert thinned is not None
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
