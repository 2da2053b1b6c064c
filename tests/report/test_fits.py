"""The charts of estimated rates: every trial against the share of its core that others used, and the fitted line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nicbench.core.result import Bounded
from nicbench.report.drawing.charts import NARROW, WIDE, Format
from nicbench.report.drawing.fits import SHARE, SMALL, fit_chart, fits_over_share
from nicbench.report.fits import RateFit
from nicbench.report.gather import gather
from nicbench.report.section import Section
from nicbench.search import fit_line
from nicbench.search.base import NDR, Limits
from nicbench.store import RunFolder

from . import _documents, _estimated


@pytest.fixture(scope="module")
def shared_section(synthetic: Any, tmp_path_factory: pytest.TempPathFactory) -> Section:
    """Two frame sizes on a core that others used, and one on a quiet one."""
    run = synthetic.SyntheticRun(tmp_path_factory.mktemp("runs")).start()
    busy = {64: _estimated.machine(3), 1518: _estimated.machine(5, capacity=300_000.0)}
    _estimated.estimate(run, {**busy, 512: _estimated.machine(1, busy=False)})
    (section,) = gather(RunFolder.open(run.finish())).sections
    return section


def points_of(fit: RateFit, form: Format = SMALL) -> list[dict[str, Any]]:
    chart = fit_chart(fit, form, over=SHARE)
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


def test_the_line_falls_with_the_share_and_stays_within_its_band(shared_section: Section) -> None:
    for fit in fits_over_share(shared_section):
        line = [point for point in points_of(fit) if point["what"] == "NDR"]
        rates = [point["y"] for point in sorted(line, key=lambda point: point["x"])]
        assert rates == sorted(rates, reverse=True)
        assert rates[-1] < rates[0]
        assert all(point["lower"] <= point["y"] <= point["upper"] for point in line)


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


def test_the_page_shows_the_fits_side_by_side_and_explains_adjusted(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    _estimated.estimate(run, {64: _estimated.machine(3), 1518: _estimated.machine(5)})
    page = _documents.page_of(run.finish())
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
