"""Badges: what they say, to the eye and to a reader of screens, and that no text breaks out of them."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from nicbench.compare.history.figures import Figure, Measure, Told
from nicbench.export.formats.badge import badge, badge_of

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
        (Figure(14_200.0, "disturbed"), "14.20 kpps (disturbed)"),
    ],
)
def test_a_badge_says_value_unit_and_a_verdict_that_is_not_valid(figure: Figure, shown: str) -> None:
    assert texts(badge_of(measure(), figure)) == ["NDR, 64 bytes", shown]


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
