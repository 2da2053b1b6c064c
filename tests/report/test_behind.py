"""Behind each chart stands a table with its numbers, under heads that have their units."""

from __future__ import annotations

import re
from typing import Any

import altair as alt
import html5lib

from nicbench.report.drawing.charts import WIDE, finish_chart, rates_by_size_chart
from nicbench.report.drawing.svg import number
from nicbench.report.drawing.svg import numbers_behind as folded_numbers
from nicbench.report.html import fragment
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN

from ._sections import rate_of, searched

SUMMARY = "summary.json"


def chart(rows: list[dict[str, Any]]) -> dict[str, Any]:
    drawn = alt.Chart(alt.InlineData(values=rows)).mark_line()
    encoded = drawn.encode(
        x=alt.X("size:N", title="frame size [bytes, with FCS]"),
        y=alt.Y("rate:Q", title="frame rate [Mpps]"),
        color=alt.Color("goal:N"),
    )
    return finish_chart(encoded, WIDE)


def numbers_behind(specification: dict[str, Any], label: str, source: str) -> str:
    found = folded_numbers(specification, label, source)
    return fragment(found) if found else ""


def table_of(html: str) -> list[list[str]]:
    tree = html5lib.parseFragment(html, namespaceHTMLElements=False)
    return [[" ".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


def test_series_that_share_their_keys_stand_side_by_side() -> None:
    rows = [{"size": size, "rate": rate, "goal": goal} for goal, rate in (("NDR", 0.4), ("PDR", 0.5)) for size in "ab"]
    html = numbers_behind(chart(rows), "Rates <by> size", SUMMARY)

    assert table_of(html) == [
        ["", "frame rate [Mpps]"],
        ["frame size [bytes, with FCS]", "NDR", "PDR"],
        ["a", "0.4", "0.5"],
        ["b", "0.4", "0.5"],
    ]
    assert "Rates &lt;by&gt; size</caption>" in html
    assert html.startswith('<details class="numbers"><summary>The numbers of this chart</summary>')


def test_a_cell_of_which_nothing_is_known_is_no_zero() -> None:
    rows = [
        {"size": size, "rate": 1.0, "goal": goal} for goal, sizes in (("NDR", "abc"), ("PDR", "ab")) for size in sizes
    ]

    assert table_of(numbers_behind(chart(rows), "Rates", SUMMARY))[-1] == ["c", "1", UNKNOWN]


def test_series_with_keys_of_their_own_stand_below_one_another() -> None:
    rows = [{"size": f"{goal}{place}", "rate": 1.0, "goal": goal} for goal in "AB" for place in range(3)]
    table = table_of(numbers_behind(chart(rows), "Rates", SUMMARY))

    assert table[0] == ["Series", "frame size [bytes, with FCS]", "frame rate [Mpps]"]
    assert table[1] == ["A", "A0", "1"]
    assert len(table) == 7


def test_of_thousands_of_points_some_are_listed_and_the_file_of_all_is_named() -> None:
    rows = [{"size": str(place), "rate": place, "goal": ""} for place in range(5000)]
    html = numbers_behind(chart(rows), "Tail", "latency.hlog")
    table = table_of(html)

    assert len(table) == 141
    assert table[-1] == ["4999", "4\u202f999"], "the last is kept"
    assert "140 of 5\u202f000 points, evenly chosen. The run folder has all, in latency.hlog." in html


def test_a_chart_that_says_nothing_has_no_table() -> None:
    silent = chart([{"size": "64", "rate": 1.0, "goal": "NDR"}])
    silent["mark"]["aria"] = False

    assert numbers_behind(silent, "Nothing", SUMMARY) == ""


def test_the_table_has_what_the_results_have(view: Report) -> None:
    specification = rates_by_size_chart(searched(view), WIDE)
    assert specification is not None
    cells = {cell for row in table_of(numbers_behind(specification, "Rates", SUMMARY)) for cell in row}

    for row in searched(view).rows:
        rate = rate_of(row)
        assert rate.value is not None
        assert rate.lower is not None
        assert rate.upper is not None
        spans = f"{number(rate.lower / 1e3)} to {number(rate.upper / 1e3)}"
        assert rate.limited_by is not None
        noted = f"{row.result.verdict.value}, limited by the {rate.limited_by.words}"
        assert f"{number(rate.value / 1e3)} {spans} {noted}" in cells


def test_every_figure_of_a_page_has_its_numbers_behind_it(page: str) -> None:
    figures = re.findall(r"<figure>.*?</figure>", page, flags=re.DOTALL)

    assert figures
    assert all(figure.count('<details class="numbers">') == 1 for figure in figures)
