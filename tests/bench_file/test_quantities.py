"""Quantities: with a unit in a bench file, plain numbers in Python."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from nicbench.core.quantity import (
    UNITS_REQUIRED,
    BitsPerSecond,
    Bytes,
    FrameBytes,
    FramesPerSecond,
    Percent,
    Ratio,
    Seconds,
)

IN_A_BENCH_FILE = {UNITS_REQUIRED: True}


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        (Seconds, "200 ms", 0.2),
        (Seconds, 0, 0.0),
        (Ratio, "0.5 %", 0.005),
        (Percent, "50 %", 50.0),
        (FramesPerSecond, "1.5 Mpps", 1_500_000.0),
        (BitsPerSecond, "10 Gb/s", 1e10),
        (Bytes, "512 MiB", 512 * 2**20),
        (FrameBytes, 64, 64),
    ],
)
def test_a_quantity_is_read_into_its_base_unit(kind: Any, written: object, value: float) -> None:
    assert TypeAdapter(kind).validate_python(written, context=IN_A_BENCH_FILE) == value


@pytest.mark.parametrize("kind", [Seconds, Ratio, Percent, FramesPerSecond, BitsPerSecond, Bytes])
@pytest.mark.parametrize("bare", [5, 0.25, "5", "1e3", " 7 "])
def test_a_bench_file_must_write_the_unit(kind: Any, bare: object) -> None:
    with pytest.raises(ValidationError, match="has no unit"):
        TypeAdapter(kind).validate_python(bare, context=IN_A_BENCH_FILE)


def test_python_may_leave_the_unit_out() -> None:
    assert TypeAdapter(Seconds).validate_python(0.2) == 0.2


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, None, [1], "50 kpps"])
def test_nonsense_is_no_duration(value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Seconds).validate_python(value)


def test_a_share_of_the_line_rate_is_no_frame_rate() -> None:
    with pytest.raises(ValidationError, match="share of the line rate"):
        TypeAdapter(FramesPerSecond).validate_python("50 %")


def test_half_a_byte_is_no_size() -> None:
    with pytest.raises(ValidationError, match="whole number of bytes"):
        TypeAdapter(Bytes).validate_python("1.5 B")
