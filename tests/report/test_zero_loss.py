"""The zero-loss table: the published ones cell for cell by the code that prints ours, and line rates by our formula."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest

from nicbench.core.plan import Plan, PlannedTest
from nicbench.core.result import Bounded, LimitedBy, Result
from nicbench.core.units import line_rate_frames_per_s
from nicbench.report.drawing import charts
from nicbench.report.drawing.charts import LINE_RATE, points_of
from nicbench.report.drawing.plots import share_bars_chart, tells_something
from nicbench.report.model import Report
from nicbench.report.section import Further, RunKnowledge, Section
from nicbench.report.tables import sections

from ._sections import searched

PUBLISHED = Path(__file__).parents[2] / "src/nicbench/importing/reference/data" / "connectx5_dpdk1908_zero_loss.csv"
LINKS = {"2x25GbE": 50e9, "1x100GbE": 100e9}  # the sum of both ports, where there are two
# Printed rate, line rate and share of a row contradict each other in none of these tables.
ERRATA: set[str] = set()


def published() -> list[dict[str, str]]:
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
    rows = [row for row in published() if row["test"] == test]
    table = rendered([as_result(row) for row in rows], {"NDR": 0.0})
    assert table is not None
    columns = ("frame_bytes", "frame_rate_mpps", "line_rate_mpps", "percent_of_line_rate")
    assert [row.cells for row in table.rows] == [tuple(row[column] for column in columns) for row in rows]
    assert [f"{column.head} {column.unit or ''}".strip() for column in table.table.columns] == [
        "Frame size bytes",
        "Frame rate Mpps",
        "Line rate Mpps",
        "% of line rate",
    ]


@pytest.mark.parametrize("row", published(), ids=name)
def test_a_published_line_rate_is_ours_within_its_rounding(row: dict[str, str]) -> None:
    ours = line_rate_frames_per_s(LINKS[row["ports"]], int(row["frame_bytes"])) / 1e6
    assert abs(ours - float(row["line_rate_mpps"])) <= 0.005 + 1e-9


@pytest.mark.parametrize("row", published(), ids=name)
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
    assert table is not None
    assert table.rows[0].cells == ("64", "≥ 9.00", "14.88", "60.48")


def test_without_a_rate_that_loses_nothing_there_is_no_such_table(view: Report) -> None:
    results = [row.result for row in searched(view).rows]
    assert rendered(results, {"NDR": 0.001, "PDR": 0.005}) is None
    assert rendered(results, {"NDR": 0.0, "PDR": 0.005}) is not None


def test_the_bars_stand_beside_the_share_of_the_line_rate(view: Report) -> None:
    table = zero_loss(searched(view))
    for form in (charts.WIDE, charts.NARROW):
        chart = share_bars_chart(table, form)
        assert chart is not None
        bars, line = chart["layer"]
        assert (bars["encoding"]["y"]["title"], line["encoding"]["y"]["title"]) == (
            "frame rate [kpps]",
            "% of line rate",
        )


def test_the_graph_of_rfc_2544_has_the_line_rate_where_the_link_is_real(view: Report) -> None:
    section = searched(view)
    near, whole = points_of(section), points_of(section, line_rate=True)
    assert near is not None
    assert whole is not None
    highest = max(bound["rate"] for bound in whole.bounds if bound["goal"] == LINE_RATE)
    assert near.top < highest / 10  # a nominal rate, 30 times what was measured
    assert whole.top >= highest
    assert view.plan is not None
    real = view.plan.replace(link_is_nominal=False, simulated=False)
    assert "the line rate" in charts.rates_by_size_caption(dataclasses.replace(section, known=RunKnowledge(real)))


def test_bars_are_drawn_against_the_line_rate_of_a_real_link_and_not_of_a_nominal_one(view: Report) -> None:
    section = searched(view)
    assert view.plan is not None
    real = RunKnowledge(view.plan.replace(link_is_nominal=False))
    assert not tells_something(section)
    assert tells_something(dataclasses.replace(section, known=real))
    assert not tells_something(dataclasses.replace(section, rows=section.rows[:1], known=real))
