"""Quantities as people write them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core import units
from nicbench.core.units import Percent


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_duration_s, "1 s", 1.0),
        (units.parse_duration_s, "200 ms", 0.2),
        (units.parse_duration_s, "50us", 50e-6),
        (units.parse_duration_s, "50 us", 50e-6),
        (units.parse_duration_s, "2 min", 120.0),
        (units.parse_duration_s, "5m", 300.0),
        (units.parse_duration_s, 0.1, 0.1),
        (units.parse_duration_s, "0.1", 0.1),
        (units.parse_rate, "200 kpps", 200_000.0),
        (units.parse_rate, "1.5 Mpps", 1_500_000.0),
        (units.parse_rate, "200_000 fps", 200_000.0),
        (units.parse_rate, 200_000, 200_000.0),
        (units.parse_rate, "95 %", Percent(95.0)),
        (units.parse_rate, "100%", Percent(100.0)),
        (units.parse_bits_per_s, "10 Gb/s", 1e10),
        (units.parse_bits_per_s, "10Gbit/s", 1e10),
        (units.parse_bits_per_s, "96 Mbps", 96e6),
        (units.parse_bytes, "64 MiB", 64 * 1024 * 1024),
        (units.parse_bytes, "64 MB", 64_000_000),
        (units.parse_bytes, "1.5 kB", 1500),
        (units.parse_bytes, 1518, 1518),
        (units.parse_ratio, "0.5 %", 0.005),
        (units.parse_ratio, 0.005, 0.005),
        (units.parse_ratio, "100 ppm", 0.0001),
        (units.parse_ratio, "0 %", 0.0),
    ],
)
def test_what_people_write_is_understood(parse: Callable[[object], object], text: object, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "says"),
    [
        (units.parse_duration_s, "fast", '"200 ms"'),
        (units.parse_duration_s, "1 fortnight", "unknown unit 'fortnight'"),
        (units.parse_duration_s, "-1 s", "not negative"),
        (units.parse_duration_s, float("nan"), "finite"),
        (units.parse_duration_s, True, "not a duration"),
        (units.parse_duration_s, None, "not a duration"),
        (units.parse_duration_s, "1e400 s", "out of all proportion"),
        (units.parse_duration_s, "0100 ms", "begins with a zero"),
        (units.parse_bytes, "064", "begins with a zero"),
        (units.parse_rate, "10 Gb/s", '"1.5 Mpps"'),
        (units.parse_rate, "120 %", "at most 100 %"),
        (units.parse_rate, "0 %", "above 0"),
        (units.parse_rate, "x %", "not a rate"),
        (units.parse_bits_per_s, "10 GB/s", '"10 Gb/s"'),
        (units.parse_bytes, "1.5", "whole number"),
        (units.parse_bytes, "64 mb", '"64 MiB"'),
        (units.parse_ratio, "150 %", "exceeds 1"),
        (units.parse_ratio, 5, "exceeds 1"),
        (units.parse_ratio, "", "not a ratio"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_forms_that_can(
    parse: Callable[[object], object], text: object, says: str
) -> None:
    with pytest.raises(ValueError, match="is not a") as refused:
        parse(text)
    assert says in str(refused.value)


@given(st.text(max_size=40))
def test_no_text_does_worse_than_a_value_error(text: str) -> None:
    for parse in (units.parse_duration_s, units.parse_rate, units.parse_bytes, units.parse_ratio):
        try:
            parse(text)
        except ValueError as refused:
            assert "is not a" in str(refused)  # noqa: PT017


# RFC 2544 appendix B and methods' own example: 64 bytes at 50 Gb/s are 74.40 Mpps.
@pytest.mark.parametrize(
    ("link_bits_per_s", "frame_bytes", "frames_per_s"),
    [(10e6, 64, 14_880), (10e6, 1518, 812), (100e6, 512, 23_496), (10e9, 64, 14_880_952), (50e9, 64, 74_404_761)],
)
def test_the_line_rate_is_that_of_the_published_tables(
    link_bits_per_s: float, frame_bytes: int, frames_per_s: int
) -> None:
    assert int(units.line_rate_frames_per_s(link_bits_per_s, frame_bytes)) == frames_per_s


def test_line_rate_fills_the_link_on_layer_1_and_less_of_it_on_layer_2() -> None:
    rate = units.line_rate_frames_per_s(10e9, 64)
    assert units.l1_bits_per_s(rate, 64) == pytest.approx(10e9)
    assert units.l2_bits_per_s(rate, 64) == pytest.approx(10e9 * 64 / 84)


def test_a_percentage_is_of_the_line_rate() -> None:
    assert Percent(95.0).of(14_880_952.0) == pytest.approx(14_136_904.4)
    assert str(Percent(95.0)) == "95 %"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (units.format_rate(1_500_000), "1.500 Mpps"),
        (units.format_rate(200_000), "200.0 kpps"),
        (units.format_rate(950), "950 pps"),
        (units.format_duration_s(0.2), "200 ms"),
        (units.format_duration_s(1.0), "1 s"),
        (units.format_duration_s(50e-6), "50 µs"),
        (units.format_duration_s(1e-7), "100 ns"),
        (units.format_duration_s(171), "2 min 51 s"),
        (units.format_duration_s(0.0), "0 s"),
        (units.format_duration_s(30_240), "8 h 24 min"),
        (units.format_duration_s(7200), "2 h"),
        (units.format_bits_per_s(10e9), "10 Gb/s"),
        (units.format_ratio(0.005), "0.5 %"),
        (units.format_ratio(7.95e-7), "0.0000795 %"),
        (units.format_ratio(0.999996), "99.9996 %"),
        (units.format_ratio(1.0), "100 %"),
        (units.format_digits(1234.5), "1230"),
        (units.format_digits(2e-5, sign="+"), "+0.00002"),
        (units.format_digits(21.95), "22"),
        (units.figures(2.675, 3), "2.68"),
        (units.format_fixed(21.95, 1), "22.0"),
        (units.format_rate(1.0005e6), "1.001 Mpps"),
    ],
)
def test_quantities_are_printed_in_the_unit_that_suits_them(text: str, printed: str) -> None:
    assert text == printed
