"""The figures of a page: what stands first, what a section draws, and what is not drawn because it says nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import html5lib
import pytest

from nicbench.core.result import Bounded, Result
from nicbench.report.drawing.charts import NARROW, WIDE, Format
from nicbench.report.drawing.plots import plot_chart
from nicbench.report.drawing.svg import svg
from nicbench.report.section import Section
from nicbench.report.tables import sections

from . import _documents

_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def soaked(interval: int | str, loss: float = 0.0, size: str = "64") -> Result:
    values: dict[str, Any] = {
        "interval": interval,
        "load_frames_per_s": 49_900.0,
        "loss_percent": loss,
        "latency_mean_us": 20.0,
        "latency_p99_9_us": 900.0,
        "latency_maximum_us": 4_057.0,
    }
    return Result(id=f"soak/{size}/{interval}", method="soak", parameters={"size": size}, values=values)


def bursts(size: str, frames: float | None) -> Result:
    value = Bounded(value=frames, lower=frames, upper=frames)
    values: dict[str, Any] = {"back_to_back_frames": value, "minimum_frames": frames, "maximum_frames": frames}
    return Result(id=f"bursts/{size}", method="back-to-back", parameters={"size": size}, values=values)


def section_of(*results: Result) -> Section:
    (section,) = sections(results, {})
    return section


def drawings(section: Section, form: Format = WIDE) -> list[str]:
    charts = [plot_chart(plot, section, form) for plot in section.table.plots]
    return [svg(chart, 1, "a chart") for chart in charts if chart is not None]


def texts_of(drawing: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]+)</text>", drawing)


@pytest.mark.parametrize("form", [WIDE, NARROW])
def test_a_soak_draws_its_latency_over_the_intervals_on_an_axis_with_a_unit(form: Format) -> None:
    (drawing,) = drawings(section_of(*map(soaked, range(1, 6)), soaked("all")), form)
    texts = texts_of(drawing)
    assert {"Latency [µs]", "Interval", "mean", "p99.9", "maximum", "10\u202f000"} <= set(texts)
    assert "all" not in texts


def test_loss_that_never_came_is_not_drawn_and_loss_that_came_is() -> None:
    quiet, lossy = (drawings(section_of(*(soaked(n, loss) for n in range(1, 6)))) for loss in (0.0, 0.5))
    assert (len(quiet), len(lossy)) == (1, 2)
    assert "Loss [%]" in texts_of(lossy[1])


def test_hundreds_of_intervals_have_labels_that_do_not_run_into_each_other() -> None:
    (drawing, *_) = drawings(section_of(*map(soaked, range(1, 721))), NARROW)
    assert 2 <= sum(text.isdigit() for text in texts_of(drawing)) < 40


def test_a_soak_of_several_sizes_has_lines_of_each() -> None:
    both = [soaked(n, size=size) for size in ("64", "1518") for n in (1, 2, 3)]
    assert "p99.9, 1518 bytes" in texts_of(drawings(section_of(*both))[0])


def test_a_value_of_one_frame_size_alone_and_one_that_nobody_knows_are_no_chart() -> None:
    assert drawings(section_of(bursts("64", 4495.3))) == []
    assert drawings(section_of(bursts("64", None), bursts("1518", None))) == []
    (drawing,) = drawings(section_of(bursts("64", 4495.3), bursts("1518", 900.0)))
    assert "Back-to-back value [frames]" in texts_of(drawing)


def first_figure(page: str) -> str:
    return page.partition("<figure>")[2].partition("</figure>")[0]


def page_of(run: Any) -> str:
    return _documents.page_of(run.finish())


def test_the_trials_of_a_search_stand_first_where_there_is_one_frame_size(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    run.measure((64,), disturbed_size=64)
    figure = first_figure(page_of(run))
    assert {"load [kpps]", "frames lost [%]", "trial that met NDR", "invalid trial", "NDR", "PDR"} <= set(
        texts_of(figure)
    )
    assert "Every trial of the search at 64 bytes" in figure


def test_a_search_shows_the_least_loss_that_decides_it_and_marks_differ_in_shape(
    synthetic_run: Callable[..., Any],
) -> None:
    run = synthetic_run()
    run.measure((64,), disturbed_size=64)
    drawing = first_figure(page_of(run))
    assert {"0", "0.1", "10"} <= set(texts_of(drawing))  # decades, from 0 on
    shapes = re.findall(r'role-legend-symbol.*?<path[^>]* d="([^"]+)"', drawing, re.DOTALL)[:3]
    assert len(set(shapes)) == 3  # of trials that met the goal, of others, and of invalid ones


def test_rates_stand_first_where_there_are_several_frame_sizes(page: str) -> None:
    assert "frame rate [kpps]" in texts_of(first_figure(page))


def test_without_a_throughput_the_first_figure_of_the_first_section_stands_in_the_answer(
    synthetic_run: Callable[..., Any],
) -> None:
    run = synthetic_run()
    for number in (1, 2, 3):
        run.publish("soak", soaked(number))
    page = page_of(run)
    assert page.index('id="answer"') < page.index("<figure>") < page.index(">Soak</h3>")
    assert page.count("Latency in each interval") == 1


def test_no_chart_of_a_page_is_empty_or_holds_what_is_no_number(page: str) -> None:
    for drawing in re.findall(r'<svg role="img".*?</svg>', page, flags=re.DOTALL):
        marks = [path for path in re.findall(r'<path[^>]* d="([^"]*)"', drawing) if len(_NUMBERS.findall(path)) > 2]
        assert marks
        assert not re.search(r"NaN|undefined|Infinity|null", drawing)
        assert any("[" in text or "frames" in text for text in texts_of(drawing))  # a unit


def test_tables_that_everybody_shall_see_are_printed_even_where_they_are_folded(page: str) -> None:
    style = str(html5lib.parse(page, namespaceHTMLElements=False).find(".//style").text)
    assert "details:not(.many)::details-content{content-visibility:visible" in style
    assert 'class="many"' not in page
