"""The charts of estimated rates: every trial against the share of its core that others used, and the fitted line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.result import Bounded, number_of
from nicbench.export.reading import document_of
from nicbench.report.answer.sentences import answers_of
from nicbench.report.drawing.charts import NARROW, WIDE, Format, rates_by_size_caption, rates_by_size_chart
from nicbench.report.drawing.fits import CLOCK, SHARE, SMALL, Covariate, fit_caption, fit_chart
from nicbench.report.fits import RateFit, rate_fits
from nicbench.report.gather import gather
from nicbench.report.section import Section
from nicbench.search import fit_line
from nicbench.search._simulated import SimulatedDut, SimulatedMachine
from nicbench.search._simulated_neighbour import SimulatedNeighbour
from nicbench.search.base import NDR, Limits
from nicbench.store import RunFolder

from . import _documents, _estimated


@pytest.fixture(scope="module")
def shared_run(synthetic: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two frame sizes on a core that others used, and one on a quiet one."""
    run = synthetic.SyntheticRun(tmp_path_factory.mktemp("runs")).start()
    busy = {64: _estimated.machine(3), 1518: _estimated.machine(5, capacity=300_000.0)}
    _estimated.estimate(run, {**busy, 512: _estimated.machine(1, busy=False)})
    path: Path = run.finish()
    return path


def section_of(path: Path) -> Section:
    (section,) = gather(RunFolder.open(path)).sections
    return section


@pytest.fixture(scope="module")
def shared_section(shared_run: Path) -> Section:
    return section_of(shared_run)


def fits_over_share(section: Section) -> list[RateFit]:
    return [fit for fit in rate_fits(section) if SHARE.varies(fit)]


def points_of(fit: RateFit, form: Format = SMALL, over: Covariate = SHARE) -> list[dict[str, Any]]:
    chart = fit_chart(fit, form, over=over)
    assert chart is not None
    return [point for points in chart["datasets"].values() for point in points]


def test_only_frame_sizes_whose_core_was_shared_are_drawn(shared_section: Section) -> None:
    assert [fit.row.cells[0] for fit in fits_over_share(shared_section)] == ["64", "1518"]


@pytest.mark.parametrize("form", [SMALL, WIDE, NARROW])
def test_every_trial_is_a_dot_and_those_without_loss_say_at_least(shared_section: Section, form: Format) -> None:
    for fit in fits_over_share(shared_section):
        dots = [point for point in points_of(fit, form) if point["what"] in ("lost frames", "lost none")]
        assert len(dots) == len(fit.row.result.trials)
        assert all(("words" in dot) == (dot["what"] == "lost none") for dot in dots)
        assert all(dot["words"].startswith("at least ") for dot in dots if "words" in dot)


def test_the_line_begins_at_the_rate_and_the_interval_of_the_table(shared_section: Section) -> None:
    for fit in fits_over_share(shared_section):
        for goal in ("NDR", "PDR"):
            stated = fit.row.result.values[f"{goal.lower()}_frames_per_s"]
            assert isinstance(stated, Bounded)
            first = next(point for point in points_of(fit) if point["what"] == goal and point["x"] == 0.0)
            drawn = [first[name] * 1e3 for name in ("lower", "y", "upper")]
            assert drawn == pytest.approx([stated.lower, stated.value, stated.upper])


def test_the_axis_shows_the_stated_intervals_whole(shared_section: Section) -> None:
    for fit in fits_over_share(shared_section):
        chart = fit_chart(fit, SMALL, over=SHARE)
        assert chart is not None
        low, high = chart["layer"][1]["encoding"]["y"]["scale"]["domain"]
        stated = [point for point in points_of(fit) if point["x"] == 0.0 and "upper" in point]
        assert low <= min(point["lower"] for point in stated)
        assert high >= max(point["upper"] for point in stated)


def test_the_line_falls_with_the_share_and_stays_within_its_band(shared_section: Section) -> None:
    for fit in fits_over_share(shared_section):
        line = [point for point in points_of(fit) if point["what"] == "NDR"]
        rates = [point["y"] for point in sorted(line, key=lambda point: point["x"])]
        assert rates == sorted(rates, reverse=True)
        assert rates[-1] < rates[0]
        assert all(point["lower"] <= point["y"] <= point["upper"] for point in line)


@pytest.fixture(scope="module")
def changing_section(synthetic: Any, tmp_path_factory: pytest.TempPathFactory) -> Section:
    """A frame size whose core changed its clock and was shared, and one whose core did neither."""
    run = synthetic.SyntheticRun(tmp_path_factory.mktemp("runs")).start()
    changing = _estimated.machine(3, clocks=(1.0, 0.95, 0.88))
    _estimated.estimate(run, {64: changing, 512: _estimated.machine(1, busy=False)})
    return section_of(run.finish())


def test_a_clock_that_changed_has_a_chart_of_its_own(changing_section: Section) -> None:
    (fit,) = (fit for fit in rate_fits(changing_section) if CLOCK.varies(fit))
    stated = fit.row.result.values["ndr_frames_per_s"]
    assert isinstance(stated, Bounded)
    points = points_of(fit, over=CLOCK)
    clocks = sorted(fit.clocks_hz)
    dots = [point for point in points if point["what"] in ("lost frames", "lost none")]
    assert sorted(dot["x"] * 1e9 for dot in dots) == pytest.approx(clocks)
    line = sorted((point for point in points if point["what"] == "NDR"), key=lambda point: point["x"])
    assert line[-1]["x"] == pytest.approx(4.0, rel=0.01)
    assert [line[-1][name] * 1e3 for name in ("lower", "y", "upper")] == pytest.approx(
        [stated.lower, stated.value, stated.upper]
    )
    assert line[0]["y"] / line[-1]["y"] == pytest.approx(line[0]["x"] / line[-1]["x"], rel=0.01)


def test_the_sentence_says_what_an_estimated_rate_is_of_and_what_the_trials_passed(changing_section: Section) -> None:
    said = answers_of(changing_section, "The DUT")[0].replace("\u00a0", " ")
    half = number_of(changing_section.rows[0].result.values["ndr_borne_by_half_frames_per_s"])
    assert half is not None
    found = re.search(r"without loss on a core of its own at 4\.00 GHz \(NDR, .*?\); in this run half of the trials "
                      r"passed ([0-9.]+) kpps\.", said)  # fmt: skip
    assert found is not None, said
    assert float(found[1]) == pytest.approx(half / 1e3, rel=0.01)


@pytest.fixture(scope="module")
def slower_run(synthetic: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A size scaled to the highest clock, one whose core always ran slower, and two whose core ran at that clock."""
    run = synthetic.SyntheticRun(tmp_path_factory.mktemp("runs")).start()
    changing = _estimated.machine(3, clocks=(1.0, 0.95, 0.88))
    slower = _estimated.machine(1, busy=False, clocks=(0.9,))
    steady = {size: _estimated.machine(size, busy=False) for size in (1024, 1518)}
    _estimated.estimate(run, {64: changing, 512: slower, **steady})
    path: Path = run.finish()
    return path


def points_in(chart: dict[str, Any], goal: str) -> list[dict[str, Any]]:
    found = (point for points in chart["datasets"].values() for point in points)
    return [point for point in found if point["goal"] == goal and "note" in point]


def test_a_rate_that_is_not_scaled_to_the_clock_of_the_others_is_drawn_hollow_and_named(slower_run: Path) -> None:
    section = section_of(slower_run)
    chart = rates_by_size_chart(section, WIDE)
    assert chart is not None
    told = {point["size"]: "not scaled" in point["note"] for point in points_in(chart, "NDR")}
    assert told == {"64": False, "512": True, "1024": False, "1518": False}
    drawn = [layer for layer in chart["layer"] if layer["encoding"].get("color", {}).get("field") == "goal"]
    hollow = {layer["data"]["name"] for layer in drawn if layer["mark"].get("filled") is False}
    joined = {layer["data"]["name"] for layer in drawn if layer["mark"]["type"] == "line"}
    assert {point["size"] for name in hollow for point in chart["datasets"][name]} == {"512"}
    assert "512" not in {point["size"] for name in joined for point in chart["datasets"][name] if "note" in point}
    assert "A hollow point without an arrow" in rates_by_size_caption(section)
    assert "not to be compared with those that are: NDR at 512, PDR at 512" in section.table.caption


def test_exports_tell_which_rates_are_not_scaled(slower_run: Path) -> None:
    document = document_of(RunFolder.open(slower_run))
    told = {result.result: {value.name for value in result.values} for result in document.results}
    names = {name: "ndr_unscaled_clock_hz" in values for name, values in told.items()}
    assert names == {f"throughput/{size}": size == 512 for size in (64, 512, 1024, 1518)}


def test_notes_on_a_rate_that_no_trial_came_near_are_marked_as_such(
    synthetic: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = synthetic.SyntheticRun(tmp_path_factory.mktemp("runs")).start()
    always = SimulatedNeighbour(regimes=((0.004, 0.003),))
    _estimated.estimate(
        run,
        {
            64: SimulatedMachine(SimulatedDut(400_000), 3, neighbour=always),
            512: _estimated.machine(1, busy=False, clocks=(0.9,)),
        },
    )
    notes = section_of(run.finish()).search_notes
    assert {note.text.partition(":")[0]: note.is_extrapolated for note in notes} == {
        "Search at 64 bytes": True, "Search at 512 bytes": False}  # fmt: skip


def test_where_all_rates_are_of_one_clock_no_point_is_hollow(changing_section: Section) -> None:
    assert "hollow" not in rates_by_size_caption(changing_section)
    assert "scaled" not in changing_section.table.caption


def test_trials_that_lost_frames_lie_on_either_line_whatever_else_slowed_them(changing_section: Section) -> None:
    (fit,) = (fit for fit in rate_fits(changing_section) if CLOCK.varies(fit))
    for over in (SHARE, CLOCK):
        points = points_of(fit, over=over)
        line = fit.lines["NDR"]
        for dot in (point for point in points if point["what"] == "lost frames"):
            assert dot["y"] * 1e3 == pytest.approx(over.at(line, dot["x"]).middle, rel=0.02)
        assert f"scaled to {over.brought_to}" in fit_caption(over, [fit], changing_section)


def test_a_rate_that_is_no_estimate_has_no_line(shared_section: Section) -> None:
    fit = fits_over_share(shared_section)[0]
    rate = fit.row.result.values["ndr_frames_per_s"]
    assert isinstance(rate, Bounded)
    assert rate.value is not None
    limits = Limits(
        minimum_load_frames_per_s=1e3,
        maximum_load_frames_per_s=1e6,
        maximum_limited_by="line_rate",
        trial_duration_s=1.0,
        maximum_trials=20,
    )
    assert fit_line(fit.samples, NDR, limits, 0.95, rate) is not None
    for changed in (
        {"upper": None},
        {"value": None},
        {"value": 0.8 * rate.value, "lower": 0.79 * rate.value, "upper": 0.81 * rate.value},
    ):
        assert fit_line(fit.samples, NDR, limits, 0.95, rate.model_copy(update=changed)) is None
    dots = points_of(replace(fit, lines={}))
    assert {dot["what"] for dot in dots} == {"lost frames", "lost none"}


def test_the_page_shows_the_fits_side_by_side_and_explains_adjusted(shared_run: Path) -> None:
    page = _documents.page_of(shared_run)
    block = re.search(r'<div class="multiples">.*?</div>\s*<p class="caption">(.*?)</p>', page, re.DOTALL)
    assert block is not None
    assert block[0].count("<svg") == 2
    assert block[0].count("The numbers of this chart") == 2
    assert "Frame rate of each trial at 1518 bytes, against the share of the core that others used" in block[0]
    assert "Adjusted: others used the core" in block[1]


def test_a_quiet_machine_has_no_such_chart(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    _estimated.estimate(run, {64: _estimated.machine(1, busy=False)})
    page = _documents.page_of(run.finish())
    assert "that others used" not in page
    assert "Adjusted:" not in page
