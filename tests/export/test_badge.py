"""Badges: what they say, to the eye and to a reader of screens, and that no text breaks out of them."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from tests.web._history import FIRST, facts, make_finished, result

from nicbench.compare.history.figures import Figure, Measure, Told, median_figure
from nicbench.core.result import Bounded, LimitedBy, ResultVerdict
from nicbench.export.formats.reports import BadgeFormat, badge, badge_of
from nicbench.store.folder import RunFolder

SVG = "{http://www.w3.org/2000/svg}"
NDR = Told("ndr_frames_per_s", "NDR", "Mpps", True, True)


def texts(svg: str) -> list[str]:
    """What is seen of a badge, from left to right."""
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def measure(given: str = '{"frame_bytes": 64}', told: Told = NDR) -> Measure:
    return Measure("throughput", "throughput", "default", "per port", given, told)


@pytest.mark.parametrize(
    ("figure", "shown"),
    [
        (Figure(14_200_000.0, "valid", 14_200_000.0, 14_250_000.0, "dut"), "14.20 Mpps"),
        (Figure(14_200_000.0, "valid", 14_200_000.0, None, "tester"), "at least 14.20 Mpps"),
        (Figure(14_880_952.0, "valid", 14_880_952.0, None, "line_rate"), "14.88 Mpps"),
        (Figure(0.0, "valid", None, 1000.0, "dut"), "0 Mpps"),
        (Figure(None, "valid", None, 12_341.0, "dut"), "< 12.35 kpps"),
        (Figure(14_200.0, "disturbed"), "14.20 kpps (disturbed)"),
    ],
)
def test_a_badge_says_value_unit_and_a_verdict_that_is_not_valid(figure: Figure, shown: str) -> None:
    assert texts(badge_of(measure(), figure)) == ["NDR, 64 bytes", shown]


def test_the_badge_of_a_run_whose_main_value_is_only_known_as_a_bound_shows_the_bound(tmp_path: Path) -> None:
    below = Bounded(value=None, upper=12_000.0, limited_by=LimitedBy.DUT, reason_null="no load that was tried passed")
    values = [{"ndr_frames_per_s": below, "pdr_frames_per_s": 200e3}, {"ndr_frames_per_s": 80e3}]
    results = [result("throughput", 64 + place, each, ResultVerdict.VALID) for place, each in enumerate(values)]
    folder = RunFolder.open(make_finished(tmp_path, "2026-01-31T120000Z-one", FIRST, "One", results, facts("25G", 1)))
    written = io.BytesIO()
    BadgeFormat().write(SimpleNamespace(folder=folder), "", written)  # type: ignore[arg-type]
    assert texts(written.getvalue().decode()) == ["NDR, 64 bytes", "< 12.00 kpps"]


def test_a_badge_has_a_title_with_its_verdict() -> None:
    told = Told("latency_p50_ns", "median latency", "µs", True, False)
    svg = badge_of(measure('{"frame_bytes": 64, "load_of": "NDR", "load_percent": 50}', told), Figure(5290.0, "valid"))
    root = ElementTree.fromstring(svg)
    said = "median latency, 64 bytes, 50 % of NDR: 5.290 µs, valid"
    assert (root.findtext(f"{SVG}title"), root.get("aria-label"), root.get("role")) == (said, said, "img")
    assert "style" not in svg


def test_texts_of_strangers_stay_texts() -> None:
    svg = badge('<script>alert(1)</script>" onload="x', "1 & 2\x00", "valid")
    assert texts(svg)[0] == '<script>alert(1)</script>" onload="x'
    assert [each.tag for each in ElementTree.fromstring(svg).iter() if "script" in each.tag] == []
    assert len(texts(badge("x" * 500, "1", "valid"))[0]) == 60


def test_the_badge_of_several_runs_shows_their_median_and_the_worst_verdict(tmp_path: Path) -> None:
    rates = [(80e3, ResultVerdict.VALID), (120e3, ResultVerdict.DISTURBED), (100e3, ResultVerdict.VALID)]
    results = [
        result("throughput", 64, {"ndr_frames_per_s": rate}, verdict).replace(
            run=run, id=f"bare/{run}/throughput/64", configuration="bare"
        )
        for run, (rate, verdict) in enumerate(rates, 1)
    ]
    folder = RunFolder.open(make_finished(tmp_path, "2026-01-31T120000Z-one", FIRST, "One", results, facts("25G", 1)))
    written = io.BytesIO()
    BadgeFormat().write(SimpleNamespace(folder=folder), "", written)  # type: ignore[arg-type]
    assert texts(written.getvalue().decode()) == ["bare: NDR, 64 bytes", "100.0 kpps (disturbed)"]


@pytest.mark.parametrize(
    ("figures", "shown"),
    [
        ([Figure(0.0, "valid", None, 10.0), Figure(5e6, "valid", 5e6, 5.1e6, "dut"), Figure(6e6, "valid", 6e6, 6.1e6)],
         "5.000 Mpps"),
        ([Figure(None, "valid", None, 1000.0), Figure(None, "valid", None, 2000.0), Figure(5e6, "valid", 5e6, 5.1e6)],
         "< 2.000 kpps"),
        ([Figure(5e6, "valid", 5e6, None, "tester")] * 2, "at least 5.000 Mpps"),
    ],
)  # fmt: skip
def test_the_median_of_runs_is_a_bound_where_those_in_the_middle_are(figures: list[Figure], shown: str) -> None:
    assert texts(badge_of(measure(), median_figure(figures)))[1] == shown
