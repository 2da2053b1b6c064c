"""The policer's arithmetic, without a kernel."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nicbench.core.quantity import UNITS_REQUIRED
from nicbench.testbed.duts.policer import Policer, PolicerOptions, expected_frames, pack_settings, unpack_bucket


def test_a_full_bucket_passes_rate_times_time_and_the_burst() -> None:
    assert expected_frames(200_000, 4000, 8.0) == 1_604_000


@given(rate=st.integers(1, 1_000_000_000))
def test_no_rate_drifts_because_the_remainder_of_the_interval_is_carried(rate: int) -> None:
    _, interval_ps, remainder, *_ = struct.unpack("=QQQQIIII", pack_settings(PolicerOptions(rate=rate), 2))
    assert interval_ps * rate + remainder == 10**12


def test_the_tolerance_lets_exactly_the_burst_through_at_once() -> None:
    _, interval_ps, _, tolerance_ps, device, *_ = struct.unpack(
        "=QQQQIIII", pack_settings(PolicerOptions(rate=200_000, burst=4000), 7)
    )
    at_once = sum(1 for frame in range(5000) if frame * interval_ps <= tolerance_ps)
    assert (at_once, device) == (4000, 7)


def test_a_bucket_is_read_back_as_the_program_lays_it_out() -> None:
    bucket = unpack_bucket(struct.pack("=IIQQQQQ", 0, 1, 123, 4, 56, 78, 9))
    assert (bucket.forwarded_frames, bucket.dropped_frames, bucket.marked_frames) == (56, 78, 9)


def test_a_rate_is_written_with_its_unit_in_a_bench_file() -> None:
    options = PolicerOptions.model_validate({"rate": "200 kpps"}, context={UNITS_REQUIRED: True})
    assert options.rate_frames_per_s == 200_000
    assert Policer(options).known_rate_frames_per_s(2.0) == 202_000


@pytest.mark.parametrize("wrong", [{"rate": "0.5 pps"}, {"rate": "1500.5 pps"}, {"burst": 0}, {"rat": "1 kpps"}])
def test_what_the_bucket_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PolicerOptions.model_validate(wrong)


def test_the_report_is_told_the_known_answer() -> None:
    told = Policer(PolicerOptions(rate=100_000, burst=2000)).disclosure()
    assert (told["rate_frames_per_s"], told["burst_frames"], told["bucket_full_again_after_s"]) == (100_000, 2000, 0.02)
