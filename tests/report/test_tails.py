"""The long tail's table and chart, of measured results and of a published comparison of two adapters."""

from __future__ import annotations

import csv
from pathlib import Path

from nicbench.core.result import Result
from nicbench.methods._tail import BINS_S, tail_values
from nicbench.report.drawing import charts
from nicbench.report.drawing.plots import bins_chart
from nicbench.report.model import Report
from nicbench.report.tails import tail_tables

PUBLISHED = Path(__file__).parents[2] / "src/nicbench/importing/reference/data" / "netxtreme25_2018_findings.csv"
LOSSLESS = "RFC 2544, 100M frames at lossless rate"


def published() -> list[Result]:
    """What the report says of each adapter's 100 million frames, as results of two configurations."""
    with PUBLISHED.open() as file:
        rows = [row for row in csv.DictReader(file) if row["test"] == LOSSLESS and row["metric"].startswith("frames")]
    values: dict[str, dict[str, float]] = {}
    for row in rows:
        bound_ns = int(row["metric"].split()[2]) * 1000
        values.setdefault(row["device"], {})[f"outside_{bound_ns}_ns_per_100_million"] = float(row["value"])
    return [
        Result(
            id=f"latency/{device}",
            method="latency",
            configuration=device,
            parameters={"frame_bytes": 64, "load_of": "NDR", "load_percent": 100.0},
            values={**found, "timed_frames": 100_000_000},
        )
        for device, found in values.items()
    ]


def test_the_published_comparison_is_rendered_by_the_same_table() -> None:
    (table,) = tail_tables(published(), {})
    assert table.bounds == ("10", "20", "120")
    assert [(row.name, row.frames) for row in table.rows] == [
        ("NetXtreme P225p 25GbE, 64 bytes", "100\u202f000\u202f000"),
        ("ConnectX-4 Lx 25GbE, 64 bytes", "100\u202f000\u202f000"),
    ]
    nothing = ("\u2013", "\u2013")
    assert table.rows[0].outside == (nothing, ("35\u202f000", "0.0350 %"), nothing)
    assert table.rows[1].outside == (("1\u202f300\u202f000", "1.30 %"), nothing, ("145\u202f000", "0.145 %"))


def test_a_measured_tail_has_a_row_for_each_size_and_every_frame_in_one_bin(view: Report) -> None:
    assert [table.load for table in view.tails] == ["100 % of the NDR", "50 % of the NDR"]
    table = view.tails[0]
    assert table.bins == (
        "to 10",
        "10 to 20",
        "20 to 40",
        "40 to 60",
        "60 to 80",
        "80 to 100",
        "100 to 120",
        "over 120",
    )
    assert [row.name for row in table.rows][:2] == ["64 bytes", "128 bytes"]
    assert table.what == "frames"
    for row in table.rows:
        assert sum(count for _, count in row.counts) == row.result.values["timed_frames"] < 1e8


def test_the_bins_are_those_of_the_histogram(view: Report) -> None:
    trials = {trial.id: trial for group in view.groups for trial in group.trials}
    for row in view.tails[0].rows:
        latency = trials[row.result.trials[0]].reading.latency
        assert tail_values(latency, BINS_S).items() <= row.result.values.items()


def test_the_chart_is_logarithmic_and_empty_bins_have_no_bar(view: Report) -> None:
    for form in (charts.WIDE, charts.NARROW):
        chart = bins_chart(view.tails[0], form)
        assert chart is not None
        assert chart["encoding"]["y"]["scale"] == {"type": "log", "domain": [1.0, 1e6], "nice": False}
        points = next(iter(chart["datasets"].values())) if "datasets" in chart else chart["data"]["values"]
        assert all(point["frames"] > 0 for point in points)
        assert {point["row"] for point in points} == {row.name for row in view.tails[0].rows}


def test_results_of_another_version_have_no_tail() -> None:
    old = published()[0].replace(values={"latency_p50_ns": 5_000})
    assert tail_tables([old], {}) == ()


def test_the_page_shows_both(page: str) -> None:
    assert "Long tail at 100 % of the NDR" in page
    assert "frames outside (and their share)" in page
