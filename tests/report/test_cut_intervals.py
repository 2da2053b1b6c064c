"""An interval that would squeeze the other points of a chart is cut, marked, and told whole."""

from __future__ import annotations

import re
from typing import Any

import pytest

from nicbench.core.result import Bounded, LimitedBy, Result
from nicbench.report.drawing.charts import (
    NARROW,
    WIDE,
    Format,
    cut_intervals,
    points_of,
    rates_by_size_caption,
    rates_by_size_chart,
)
from nicbench.report.drawing.svg import numbers_behind, read, svg
from nicbench.report.section import Section
from nicbench.report.tables import sections


def searched(size: int, lower: float, value: float, upper: float) -> Result:
    rate = Bounded(value=value, lower=lower, upper=upper, limited_by=LimitedBy.DUT, n=8)
    values: dict[str, Any] = {"ndr_frames_per_s": rate, "line_rate_frames_per_s": 1e7, "ceiling_frames_per_s": 1e6}
    return Result(id=f"t/{size}", method="throughput", parameters={"frame_bytes": size}, values=values)


def section_of(*results: Result) -> Section:
    (section,) = sections(results, {})
    return section


WILD = section_of(searched(64, 57e3, 60e3, 480e3), searched(128, 96e3, 98e3, 99e3), searched(256, 95e3, 97e3, 98e3))
TAME = section_of(searched(64, 57e3, 60e3, 110e3), searched(128, 96e3, 98e3, 99e3))


def test_a_tall_interval_leaves_the_other_points_their_room() -> None:
    points = points_of(WILD)
    assert points is not None
    assert points.top < 1.5 * 98
    assert [point["rate"] for point in points.rates] == [60.0, 98.0, 97.0]


@pytest.mark.parametrize("form", [WIDE, NARROW])
def test_what_is_cut_has_its_real_end_beside_it_and_its_whole_interval_in_the_table(form: Format) -> None:
    chart = rates_by_size_chart(WILD, form)
    assert chart is not None
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", svg(chart, 1, "rates"))
    assert "to 480" in texts
    spans = [row.span for one in read(chart) for row in one.rows]
    assert "57 to 480" in spans
    assert numbers_behind(chart, "rates", "summary.json") is not None


def test_the_ends_of_two_goals_at_one_size_stand_beneath_each_other() -> None:
    both = searched(64, 57e3, 60e3, 480e3)
    wide = Bounded(value=61e3, lower=58e3, upper=470e3, limited_by=LimitedBy.DUT, n=8)
    section = section_of(both.replace(values={**both.values, "pdr_frames_per_s": wide}))
    chart = rates_by_size_chart(section, WIDE)
    assert chart is not None
    places = dict(re.findall(r"<text[^>]*translate\(([^)]*)\)[^>]*>(to [^<]+)</text>", svg(chart, 1, "rates")))
    heights = {words: float(place.split(",")[1]) for place, words in places.items()}
    assert heights["to 470"] - heights["to 480"] > 8


def test_the_caption_says_that_an_interval_goes_on() -> None:
    assert "goes on to the number beside it" in rates_by_size_caption(WILD)
    assert "goes on" not in rates_by_size_caption(TAME)


def test_an_interval_that_squeezes_nothing_is_drawn_whole() -> None:
    points = points_of(TAME)
    assert points is not None
    assert points.cut == ()
    assert points.top > 110


def test_a_lone_rate_and_no_rate_are_no_special_cases() -> None:
    assert cut_intervals([], "rate") == ([], [])
    drawn, cut = cut_intervals([{"rate": 10.0, "lower": 9.0, "upper": 80.0}], "rate")
    assert drawn[0]["upper"] < 80.0
    assert drawn[0]["range"] == "9 to 80"
    assert cut[0]["words"] == "to 80"
