"""What is said of results near the tester's own limits: in the result, where summary and report read it."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.result import Bounded, LimitedBy, NearLimit, Result
from nicbench.measure.completing import add_near_limits


def near(**values: Any) -> tuple[NearLimit, ...]:
    judged = add_near_limits(Result(id="t/64", method="any", parameters={"frame_bytes": 64}, values=values))
    assert judged.near_tester_limit is not None, "judged, also where there is nothing to say"
    return judged.near_tester_limit


def rate(frames_per_s: float | None) -> Bounded:
    return Bounded(value=frames_per_s, lower=frames_per_s, limited_by=LimitedBy.DUT)


def test_a_rate_within_five_percent_of_the_testers_ceiling_is_near_it() -> None:
    (found,) = near(ndr_frames_per_s=rate(0.90e6), pdr_frames_per_s=rate(0.96e6), ceiling_frames_per_s=1e6)
    assert (found.value, found.limit) == ("pdr_frames_per_s", "ceiling_frames_per_s")
    assert "960.0 kpps are 96 % of what the tester sends without a DUT (1.000 Mpps)" in found.text


def test_the_line_rate_is_no_rate_of_the_dut() -> None:
    assert near(ndr_frames_per_s=rate(0.5e6), line_rate_frames_per_s=14.88e6, ceiling_frames_per_s=1e6) == ()


@pytest.mark.parametrize("ceiling", [None, 2e6], ids=["unknown", "far away"])
def test_a_ceiling_that_is_unknown_or_far_away_is_not_spoken_of(ceiling: float | None) -> None:
    assert near(ndr_frames_per_s=rate(0.96e6), pdr_frames_per_s=rate(None), ceiling_frames_per_s=ceiling) == ()


def test_a_median_below_twice_the_testers_own_is_near_it() -> None:
    (found,) = near(latency_p50_ns=10_000, tester_latency_p50_ns=6_000)
    assert (found.value, found.limit) == ("latency_p50_ns", "tester_latency_p50_ns")
    assert "the median of 10 µs is less than twice the tester's own (6 µs)" in found.text


@pytest.mark.parametrize(("median_ns", "own_ns"), [(10_000, 4_000), (10_000, None), (None, 6_000)])
def test_a_median_far_from_the_testers_own_or_unknown_is_not_spoken_of(
    median_ns: int | None, own_ns: int | None
) -> None:
    assert near(latency_p50_ns=median_ns, tester_latency_p50_ns=own_ns) == ()
