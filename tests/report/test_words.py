"""Numbers and facts read as a person would write them."""

from __future__ import annotations

import pytest

from nicbench.model.rate import Bounded
from nicbench.report import numbers
from nicbench.report.facts import columns, facts, label_of, plain, spans
from nicbench.report.numbers import basis_words


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.3921, "0.392"), (14.88, "14.9"), (123.4, "123"), (12345.6, "12\u202f346"), (0.00000012, "0.000000")],
)
def test_three_digits_and_whole_numbers_in_full(value: float, text: str) -> None:
    assert numbers.significant(value) == text


def test_a_column_has_the_digits_its_smallest_rate_and_its_intervals_need() -> None:
    wide = Bounded(value=0.39e6, lower=0.39e6, upper=0.41e6)
    narrow = Bounded(value=0.2005e6, lower=0.2005e6, upper=0.2006e6)

    assert numbers.bounds_decimals([wide]) == 3
    assert numbers.bounds_decimals([wide, narrow]) == 4
    assert numbers.bounds_decimals([]) == 2


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (Bounded(value=1e6, lower=1e6, upper=1.01e6), "1.00 to 1.01"),
        (Bounded(value=1e6, lower=1e6), "at least 1.00"),
        (Bounded(value=None, upper=1e6), "below 1.00"),
        (Bounded(value=None), "\u2013"),
    ],
    ids=["closed", "open above", "open below", "unknown"],
)
def test_an_interval_says_which_ends_it_has(rate: Bounded, text: str) -> None:
    assert numbers.interval(rate, 2) == text


def test_unknown_is_never_zero() -> None:
    assert {numbers.mpps(None), numbers.whole(None), numbers.microseconds(None), numbers.percent(None)} == {"\u2013"}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("memory_bytes", 8 * 2**30, "8 GiB"),
        ("mtu_bytes", 1500, "1\u202f500 bytes"),
        ("frame_bytes", [64, 1024, 1518], "64, 1\u202f024, 1\u202f518 bytes"),
        ("hz", 2.596e9, "2.596 GHz"),
        ("link_bits_per_s", 10e9, "10 Gb/s"),
        ("rate_frames_per_s", 200000, "200.0 kpps"),
        ("duration", 0.2, "200 ms"),
        ("bins", [10e-6, 20e-6], "10, 20 µs"),
        ("of", 400e3, "400.0 kpps"),
        ("of", "line_rate", "line_rate"),
        ("goals", {"NDR": 0.0, "PDR": 0.005}, "NDR 0 %, PDR 0.5 %"),
        ("anything", None, "unknown"),
        ("forwarding", True, "yes"),
        ("queues", [], "none"),
        ("resolution_ns", 0.38518, "0.385 ns"),
        ("memory", 512 * 2**20, "512 MiB"),
        ("catch_up", 0.001, "1 ms"),
        ("rps_cpus", "2", "mask 2 (CPU 1)"),
        ("rps_cpus", "00000001,00000003", "mask 00000001,00000003 (CPUs 0, 1, 32)"),
        ("rps_cpus", "0", "mask 0 (off)"),
        ("cpus_by_node", {"0": "0-1"}, "node 0: CPUs 0-1"),
        ("dpdk", "DPDK 22.11.11", "22.11.11"),
        ("rings", None, "\u2013"),
    ],
)
def test_a_fact_carries_the_unit_of_its_name(name: str, value: object, text: str) -> None:
    assert plain(name, value) == text


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("rps_cpus", "RPS CPUs"),
        ("eal_arguments", "EAL arguments"),
        ("memory_bytes", "Memory"),
        ("net.ipv4.ip_forward", "net.ipv4.ip_forward"),
        ("--no-huge", "--no-huge"),
        ("dut", "DUT"),
        ("ipv6", "IPv6"),
        ("hz", "Frequency"),
        ("tester_gro", "Tester's GRO"),
        ("reasons_null", "Why a fact is unknown"),
    ],
)
def test_a_name_becomes_a_label(name: str, label: str) -> None:
    assert label_of(name) == label


def test_arguments_of_one_command_stand_on_one_line_and_commands_on_a_line_each() -> None:
    arguments, commands = facts({"eal_arguments": ["--no-pci", "-m", "512"], "commands": ["ip link", "tc qdisc"]})

    assert arguments.code == ("--no-pci -m 512",)
    assert commands.code == ("ip link", "tc qdisc")


def test_facts_nest_two_levels_and_name_the_rest_by_its_path() -> None:
    (fact,) = facts({"throughput": {"search": {"kind": "mlr", "mac": {"a": 1, "b": 2}}, "x": 1}})

    assert [(child.label, child.text) for child in fact.children] == [
        ("Search, kind", "mlr"),
        ("Search, MAC, a", "1"),
        ("Search, MAC, b", "2"),
        ("X", "1"),
    ]


def test_ports_stand_side_by_side() -> None:
    (fact,) = facts({"ports": [{"name": "t0", "mac": "02:1"}, {"name": "t1", "mac": "02:2"}]})

    assert (fact.heads, fact.rows) == (("t0", "t1"), (("MAC", ("02:1", "02:2")),))


def test_equal_hosts_share_a_column_and_different_ones_do_not() -> None:
    kernel = {"kernel": "6.1"}

    assert columns({"tester": kernel, "dut": dict(kernel)}, label_of)[0] == ("Tester and DUT",)
    assert columns({"tester": kernel, "dut": {"os": "x"}})[1] == (
        ("Kernel", ("6.1", "\u2013")),
        ("OS", ("\u2013", "x")),
    )


def test_a_path_of_labels_says_no_word_twice() -> None:
    assert columns({"tester": {"cpu": {"cpus": 2, "cpus_isolated": "none"}}})[1] == (
        ("CPUs", ("2",)),
        ("Isolated CPUs", ("none",)),
    )


def test_what_machines_beside_each_other_have_in_common_is_said_once() -> None:
    assert spans(["6.1", "6.1", "6.18", None, None]) == (("6.1", 2), ("6.18", 1), (None, 2))


@pytest.mark.parametrize(
    ("scope", "said"),
    [("per port", "per port"), ("sum of 2 ports", "the sum of 2 ports"), ("one connection", "of one connection")],
)
def test_what_rates_are_of_ends_a_sentence(scope: str, said: str) -> None:
    assert basis_words(scope) == said
