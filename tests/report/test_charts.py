"""The figures of a page: what stands first, what a section draws, and what is not drawn because it says nothing."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import html5lib
import pytest

from nicbench.compare.points import Side, match_sides, scale_units
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.methods._tail import BINS_S, tail_values
from nicbench.report.answer.of_comparison import _of_each
from nicbench.report.drawing.kit import NARROW, WIDE, Format, bar_colours
from nicbench.report.drawing.plots import bars_chart, bins_chart, plot_chart, slowest_chart
from nicbench.report.drawing.svg import SERIES, svg
from nicbench.report.model import Report
from nicbench.report.section import Section
from nicbench.report.tables import sections, side_by_side
from nicbench.report.tails import SLOWEST_OF, tail_tables
from nicbench.stats.runs import summarise_over_runs

from . import _documents

_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def soaked(interval: int | str, loss: float = 0.0, size: str = "64") -> Result:
    values = {
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
    values = {"back_to_back_frames": value, "minimum_frames": frames, "maximum_frames": frames}
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


def stream(configuration: str, client: str, bits_per_s: float) -> Result:
    return Result(
        id=f"{configuration}/{client}",
        test="streams",
        method="stream",
        configuration=configuration,
        parameters={"mode": "TCP to the server", "part": "clients", "client": client, "beside": "each port alone"},
        values={"throughput_bits_per_s": bits_per_s},
        verdict=ResultVerdict.VALID,
        trials=(),
    )


def test_bars_of_configurations_stand_beside_each_other() -> None:
    results = [stream(name, "c0", rate) for name, rate in (("port", 82e6), ("function", 143e6))]
    (section,) = side_by_side(results, {result.id: "streams" for result in results})
    drawn = bars_chart(section, WIDE)
    (points,) = drawn["datasets"].values()
    assert sorted((point["line"].rpartition(", ")[2], round(point["y"], 3)) for point in points) == [
        ("function", 0.143),
        ("port", 0.082),
    ]


def test_more_bars_than_colours_are_told_apart_by_strength() -> None:
    names = [str(number) for number in range(2 * len(SERIES))]
    looks = bar_colours("line", names, None)
    colours, strengths = (looks[channel]["scale"]["range"] for channel in ("color", "opacity"))
    assert len(set(zip(colours, strengths, strict=True))) == len(names)
    assert "opacity" not in bar_colours("line", names[: len(SERIES)], None)


MODES = ("TCP to the server", "TCP from the server")


def streamed(configuration: str, run: int, mode: str, **values: Any) -> Result:
    parameters = {"part": "ports", "port": "s0", "mode": mode, "at_once": "s0 alone", "beside": "each port alone"}
    return Result(
        id=f"{configuration}/{run}/tcp/{mode}",
        method="stream",
        test="tcp",
        configuration=configuration,
        run=run,
        parameters=parameters,
        values={"throughput_bits_per_s": 1e9 + run, "limit": "the link was full", **values},
    )


def ports_of(results: list[Result]) -> Section:
    (section,) = side_by_side(summarise_over_runs(results), {}, results)
    return section


RESULTS = [streamed(name, run, mode) for name in ("one", "two") for run in (1, 2) for mode in MODES]


def test_each_configuration_has_a_bar_of_its_own_beside_the_others_of_its_way() -> None:
    chart = bars_chart(ports_of(RESULTS), WIDE)
    names = [f"{mode}, {name}" for mode in MODES for name in ("one", "two")]
    assert chart["encoding"]["xOffset"]["scale"]["domain"] == names
    assert all(name in svg(chart, 1, "bars") for name in names)


def notes_of(results: list[Result]) -> list[str]:
    return list(map(str, ports_of(results).notes))


def test_a_note_that_all_share_is_said_once_and_another_with_whose_it_is() -> None:
    assert notes_of(RESULTS) == ["Limit: the link was full"]
    slow = [
        one.replace(values={**one.values, "limit": "a CPU was full"})
        if (one.configuration, one.parameters["mode"]) == ("two", MODES[1])
        else one
        for one in RESULTS
    ]
    assert notes_of(slow) == [
        f"Limit: the link was full ({MODES[0]}, “one”; {MODES[1]}, “one”; {MODES[0]}, “two”)",
        f"Limit: a CPU was full ({MODES[1]}, “two”)",
    ]


def test_what_runs_tell_differently_is_told_of_each_and_of_many_runs_not_at_length() -> None:
    bond = [streamed("one", 1, MODES[0]), streamed("one", 2, MODES[0])]
    bond += [streamed("two", run, MODES[0], bond=f"c{run} was alone") for run in (1, 2)]
    notes = notes_of(bond)
    assert notes[1:] == ["Bond, “two”, run 1: c1 was alone", "Bond, “two”, run 2: c2 was alone"]
    bond += [streamed("two", run, MODES[0], bond=f"c{run} was alone") for run in range(3, 12)]
    *_, last, rest = notes_of(bond)
    assert (last, rest) == (
        "Bond, “two”, run 8: c8 was alone",
        "3 more notes stand with each run by itself, below",
    )


def test_statistics_of_slow_streams_are_in_the_unit_of_their_tables() -> None:
    side = Side("one", tuple(one.replace(values={"throughput_bits_per_s": 9e6}) for one in RESULTS))
    (to, _) = scale_units(match_sides([side]))
    assert (to.value.quantity.unit, to.numbers("one")[0]) == ("Mb/s", 9.0)
    (to, _) = scale_units(match_sides([Side("one", tuple(RESULTS))]))
    assert to.value.quantity.unit == "Gb/s"


def test_of_many_configurations_the_answer_has_the_first_and_says_where_the_others_are() -> None:
    names = ("one", "two", "three", "four", "five")
    few, many = (
        _of_each(ports_of([streamed(name, run, mode) for name in part for run in (1, 2) for mode in MODES]))
        for part in (names[:4], names)
    )
    assert [said.split()[0] for said in few] == ["“one”", "“two”", "“three”", "“four”"]
    assert many == [few[0], "The tables below have the other 4 configurations."]


PUBLISHED = Path(__file__).parents[2] / "src/nicbench/importing/reference/data" / "netxtreme25_2018_findings.csv"
LOSSLESS = "RFC 2544, 100M frames at lossless rate"


def published() -> list[Result]:
    """What the report says of each adapter's 100 million frames, as results of two configurations."""
    with PUBLISHED.open() as file:
        rows = [row for row in csv.DictReader(file) if row["test"] == LOSSLESS and row["metric"].startswith("frames")]
    values = {}
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


def test_the_slowest_of_several_follows_from_published_counts_alone() -> None:
    """35,000 of 100 million frames outside 20 µs; 145,000 outside 120 µs."""
    (table,) = tail_tables(published(), {})
    first, second = (row.slowest for row in table.rows)
    assert [chances[0] for chances in first] == [None, None, None]
    assert [chances[1].value for chances in first] == pytest.approx([0.99965**number for number in SLOWEST_OF])
    assert second[2][2].value == pytest.approx(0.99855**1000)
    assert second[2][2].lower == pytest.approx(second[2][2].upper, rel=0.02)


def test_where_nothing_was_slower_the_chance_has_a_lower_end_alone() -> None:
    """Of a thousand frames none: the 95 % interval of a share of 0 begins at 0.025^(1/1000) in time."""
    values = {"outside_10000_ns_frames": 0, "timed_frames": 1000}
    (table,) = tail_tables([published()[0].replace(values=values)], {})
    (chance,) = table.rows[0].slowest[0]
    assert (chance.value, chance.upper) == (1.0, 1.0)
    assert chance.lower == pytest.approx(0.025 ** (10 / 1000), rel=1e-6)


def test_the_chart_of_the_slowest_has_a_line_for_each_number(view: Report) -> None:
    (whole, few) = (view.tails[0], view.tails[0]._replace(rows=view.tails[0].rows[:2]))
    assert slowest_chart(whole, WIDE) is None  # too many lines
    chart = slowest_chart(few, WIDE)
    (points,) = chart["datasets"].values()
    assert {point["number"] for point in points} == {"of 10", "of 100", "of 1,000"}
    assert all(0 <= point["chance"] <= 100 for point in points)


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
    trials = view.known_trials
    for row in view.tails[0].rows:
        latency = trials[row.result.trials[0]].reading.latency
        assert tail_values(latency, BINS_S).items() <= row.result.values.items()


def test_the_chart_is_logarithmic_and_empty_bins_have_no_bar(view: Report) -> None:
    for form in (WIDE, NARROW):
        chart = bins_chart(view.tails[0], form)
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
    assert "chance that all come within" in page
