"""A share that was counted is told with its interval, or with its one end."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.result import Result
from nicbench.report.cells import known_within


def result(**values: Any) -> Result:
    return Result(id="t/64", method="impairments", scope="per port", parameters={}, values=values)


@pytest.mark.parametrize(
    ("values", "name", "told"),
    [
        ({"loss_percent": 100 * 19 / 247_000, "lost_frames": 19, "offered_frames": 247_000}, "loss_percent",
         " (0.00463 to 0.0120 %)"),
        ({"duplicated_percent": 0.0, "duplicated_frames": 0, "duplicated_of_frames": 20_000}, "duplicated_percent",
         " (at most 0.0184 %)"),
        ({"returned_percent": 100.0, "returned_frames": 20_000, "offered_frames": 20_000}, "returned_percent",
         " (at least 99.98"),
        # Other frames counted as well, and what no frame was counted for.
        ({"loss_percent": 1.0, "lost_frames": 19, "offered_frames": 247_000}, "loss_percent", ""),
        ({"loss_percent": 1.0}, "loss_percent", ""),
        ({"loss_percent": None, "lost_frames": 0, "offered_frames": 0}, "loss_percent", ""),
        ({"load_frames_per_s": 4.0, "sent_frames": 4}, "load_frames_per_s", ""),
    ],
)  # fmt: skip
def test_a_share_is_told_with_its_interval(values: dict[str, Any], name: str, told: str) -> None:
    found = known_within(result(**values), name)
    assert found.startswith(told) if told else found == ""


def test_another_confidence_is_that_of_the_test() -> None:
    values = {"lost_percent": 0.0, "lost_frames": 0, "lost_of_frames": 1000}
    wide = known_within(result(**values, confidence_percent=99.9), "lost_percent")
    assert wide != known_within(result(**values), "lost_percent")
