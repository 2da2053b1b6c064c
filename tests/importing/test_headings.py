"""Names and units of headings, as tables and testers write them."""

from __future__ import annotations

import pytest

from nicbench.importing.columns import parse_heading, parse_link, parse_number, parse_unit


@pytest.mark.parametrize(
    ("text", "name", "unit"),
    [
        ("Frame rate [Mpps]", "frame rate", "Mpps"),
        ("frame_rate_mpps", "frame rate", "Mpps"),
        ("Throughput (Gb/s) L1", "throughput", "Gb/s L1"),
        ("Throughput [Gbps L2]", "throughput", "Gb/s L2"),
        ("throughput_gbps", "throughput", "Gb/s"),
        ("Rate (MBps)", "rate", "MB/s"),
        ("Latency (µs)", "latency", "us"),
        ("p99.9 [us]", "p99.9", "us"),
        ("latency_p99_9_us", "latency p99 9", "us"),
        ("% of line rate", "percent of line rate", "% of line rate"),
        ("percent_of_line_rate", "percent of line rate", "% of line rate"),
        ("Tx Rate (% Line Rate)", "tx rate", "% of line rate"),
        ("Load [% of throughput]", "load", "% of throughput"),
        ("Loss %", "loss", "%"),
        ("Latency (min)", "latency min", None),
        ("offered frames", "offered frames", None),
        ("Frame size", "frame size", None),
    ],
)
def test_a_heading_is_a_name_and_the_unit_that_it_names(text: str, name: str, unit: str | None) -> None:
    heading = parse_heading(text)
    assert (heading.name, str(heading.unit) if heading.unit else None) == (name, unit)


@pytest.mark.parametrize("text", ["GBPS", "mm", "h", "min", "x/s", "ns L2", ""])
def test_what_is_no_unit_or_could_be_two_is_none(text: str) -> None:
    assert parse_unit(text) is None


@pytest.mark.parametrize(
    ("text", "decimal", "thousands", "value", "rounding"),
    [
        ("74.40", "point", None, "74.40", 0.005),
        ("74,40", "comma", None, "74.40", 0.005),
        ("1,300,000", "point", "comma", "1300000", 0.5),
        ("1.300.000,5", "comma", "point", "1300000.5", 0.05),
        ("1\u202f300", "point", "blank", "1300", 0.5),
        ("1.5e3", "point", None, "1.5e3", 50.0),
        ("99.9 %", "point", None, "99.9", 0.05),
        ("-0.5", "point", None, "-0.5", 0.05),
    ],
)  # fmt: skip
def test_a_number_keeps_its_digits_and_what_they_leave_open(
    text: str, decimal: str, thousands: str | None, value: str, rounding: float
) -> None:
    number = parse_number(text, decimal, thousands)  # type: ignore[arg-type]
    assert (number.text, float(number.value), float(number.rounding)) == (value, float(value), rounding)


@pytest.mark.parametrize(
    ("text", "decimal", "thousands", "hint"),
    [
        ("74,40", "point", None, "--decimal comma"),
        ("1.300,5", "comma", None, "--thousands point"),
        ("13,00", "point", "comma", "--decimal comma"),
        ("fast", "point", None, "write a number"),
        ("1 furlong", "point", None, "not a known unit"),
        ("9" * 50, "point", None, "write a number"),
        ("1e999", "point", None, "not a known unit"),
    ],
)
def test_what_is_no_number_says_what_to_do(text: str, decimal: str, thousands: str | None, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        parse_number(text, decimal, thousands)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "bits_per_s", "ports"),
    [("25GbE", 25e9, None), ("2x100GbE", 1e11, 2), ("4 x 25 Gb/s", 25e9, 4), ("400GE", 4e11, None)],
)  # fmt: skip
def test_a_link_is_the_speed_of_one_port_and_how_many(text: str, bits_per_s: float, ports: int | None) -> None:
    link = parse_link(text)
    assert (link.bits_per_s, link.ports) == (bits_per_s, ports)


@pytest.mark.parametrize("text", ["fast", "25", "0x10GbE", "0 Gb/s", "10 cars/s", "2.5", "0.88", "37.20"])
def test_what_is_no_speed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_link(text)
