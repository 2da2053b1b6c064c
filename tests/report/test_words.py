"""Numbers and facts read as a person would write them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nicbench.core.described import Shape, shape_of
from nicbench.core.result import Bounded, Result
from nicbench.core.table import Column
from nicbench.report import numbers
from nicbench.report.cells import texts
from nicbench.report.facts import columns, facts, label_of, method_shapes, plain, spans, traffic_shapes
from nicbench.report.numbers import basis_words
from nicbench.testbed.labs.veth import VethLab
from nicbench.testbed.testers.packets import Packets

_LAB = shape_of(VethLab.Options).fields
_TESTER = shape_of(Packets.Options).fields


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.3921, "0.392"), (14.88, "14.9"), (123.4, "123"), (12345.6, "12\u202f346"), (0.00000012, "0.000000")],
)
def test_three_digits_and_whole_numbers_in_full(value: float, text: str) -> None:
    assert numbers.significant(value) == text


def test_a_rate_has_the_digits_that_its_interval_gives() -> None:
    wide = Bounded(value=0.39e6, lower=0.39e6, upper=0.41e6)
    narrow = Bounded(value=0.2005e6, lower=0.2005e6, upper=0.2006e6)

    results = [
        Result(id="a", method="throughput", parameters={}, values={"x_frames_per_s": one}) for one in (wide, narrow)
    ]
    column = Column(value="x_frames_per_s", head="Rate", aspect="rate")
    assert texts(column, results) == ["0.39", "0.20050"]
    assert texts(column, []) == []


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (Bounded(value=1e6, lower=1e6, upper=1.01e6), "1.00 to 1.01"),
        (Bounded(value=1e6, lower=1e6), "at least 1.00"),
        (Bounded(value=1.009e6, lower=1.009e6), "at least 1.00"),
        (Bounded(value=None, upper=1e6), "below 1.00"),
        (Bounded(value=None, upper=1.001e6), "below 1.01"),
        (Bounded(value=None, upper=10.0), "below 0.01"),
        (Bounded(value=0.99999999e6, lower=0.99999999e6, upper=1.01000001e6), "1.00 to 1.01"),
        (Bounded(value=None), "\u2013"),
    ],
    ids=["closed", "open above", "rounded down", "open below", "rounded up", "never below 0", "off by an error of the arithmetic", "unknown"],
)
def test_an_interval_says_which_ends_it_has(rate: Bounded, text: str) -> None:
    assert numbers.interval(rate, numbers.Writer(lambda value: f"{value / 1e6:.2f}", 1e-6)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1e-7, "0.0000001"), (50.0, "50.0"), (99.96, "99.96"), (99.99999, "99.99999"), (100.0, "100")],
)
def test_a_percentage_is_100_or_0_only_where_it_is(value: float, text: str) -> None:
    assert numbers.percent(value) == text


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
        ("anything", None, "unknown"),
        ("forwarding", True, "yes"),
        ("queues", [], "none"),
        ("resolution_ns", 0.38518, "0.385 ns"),
        ("rps_cpus", "2", "mask 2 (CPU 1)"),
        ("rps_cpus", "00000001,00000003", "mask 00000001,00000003 (CPUs 0, 1, 32)"),
        ("rps_cpus", "0", "mask 0 (off)"),
        ("dpdk", "DPDK 22.11.11", "22.11.11"),
        ("numa_node", None, "\u2013"),
    ],
)
def test_a_fact_carries_the_unit_of_its_name(name: str, value: object, text: str) -> None:
    assert plain(name, value) == text


@pytest.mark.parametrize(
    ("shapes", "name", "value", "text"),
    [
        (method_shapes("latency")["trial"].fields, "duration", 0.2, "200 ms"),
        (method_shapes("latency"), "bins", [10e-6, 20e-6], "10, 20 µs"),
        (method_shapes("latency"), "of", "NDR", "NDR"),
        (method_shapes("frame-loss"), "of", 400e3, "400.0 kpps"),
        (method_shapes("frame-loss"), "of", "line_rate", "the line rate"),
        (method_shapes("back-to-back"), "rate", "highest", "the highest load"),
        (method_shapes("throughput")["search"].fields, "goals", {"NDR": 0.0, "PDR": 0.005}, "NDR 0 %, PDR 0.5 %"),
        (method_shapes("stream"), "rate", 1e9, "1 Gb/s"),
        (_TESTER, "memory", 512 * 2**20, "512 MiB"),
        (_TESTER, "catch_up", 0.001, "1 ms"),
        (_LAB, "txqueuelen", 1000, "1\u202f000 frames"),
        (traffic_shapes(), "unheard_of_s", 2.0, "2 s"),
    ],
)
def test_an_option_carries_the_unit_of_its_declaration(
    shapes: Mapping[str, Shape], name: str, value: object, text: str
) -> None:
    assert plain(name, value, shapes.get(name)) == text


def test_what_a_search_of_the_plan_lets_choose_is_declared_by_that_search() -> None:
    search = {"kind": "step-down", "precision": 0.005, "start": 1.0, "minimum_load": 1000.0}
    (fact,) = facts({"search": search}, method_shapes("throughput"))

    assert [(child.label, child.text) for child in fact.children] == [
        ("Kind", "step-down"),
        ("Precision", "0.5 %"),
        ("Start", "100 %"),
        ("Minimum load", "1.000 kpps"),
    ]


def test_a_fact_is_shown_as_it_is_declared() -> None:
    nodes = {"cpus_by_node": {"0": "0-1", "1": "2-3"}, "node_by_interface": {"p0": 1, "p1": None}}
    masks = {"p0 rx-0": "2"}

    assert columns({"tester": {"numa": nodes, "rings": None, "rps_cpu_masks": masks}})[1] == (
        ("NUMA", ("node 0: CPUs 0-1; node 1: CPUs 2-3",)),
        ("NUMA, node by interface", ("p0 1, p1 \u2013",)),
        ("Rings", ("\u2013",)),
        ("RPS CPU masks", ("p0 rx-0 mask 2 (CPU 1)",)),
    )


def test_a_fact_of_another_version_says_its_unit_by_its_name() -> None:
    assert columns({"tester": {"cpu": {"cpus": 2, "cache_bytes": 2**20}, "aether": {"drag_percent": 3.0}}})[1] == (
        ("CPUs", ("2",)),
        ("CPU, cache", ("1 MiB",)),
        ("Aether", ("Drag 3 %",)),
    )


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
