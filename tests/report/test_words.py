"""Numbers and facts read as a person would write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from nicbench.core.described import Shape, shape_of
from nicbench.core.result import Bounded, LimitedBy, LossFloor, Queue, Result
from nicbench.core.table import Column
from nicbench.report import numbers
from nicbench.report.answer.of_run import brief
from nicbench.report.answer.sentences import answers_of
from nicbench.report.cells import known_within, text_of, texts
from nicbench.report.drawing.charts import cut_intervals, points_of, rates_by_size_caption, rates_by_size_chart
from nicbench.report.drawing.kit import NARROW, WIDE, Format
from nicbench.report.drawing.svg import read, svg
from nicbench.report.facts import columns, facts, label_of, method_shapes, plain, spans, traffic_shapes
from nicbench.report.numbers import basis_words
from nicbench.report.section import Section
from nicbench.report.tables import sections
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
    column = Column("x_frames_per_s", "Rate", aspect="rate")
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
    ids=[
        "closed",
        "open above",
        "rounded down",
        "open below",
        "rounded up",
        "never below 0",
        "off by an error of the arithmetic",
        "unknown",
    ],
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


DUT = LimitedBy.DUT
SHARP = Bounded(value=200_420.0, lower=200_420.0, upper=200_880.0, limited_by=DUT)
ZONE = Bounded(
    value=41_300.0, lower=41_300.0, upper=57_600.0, limited_by=DUT, some=55_200.0, half=47_100.0, shared_core=True
)
FAR = ZONE.replace(value=100_400.0, lower=100_400.0, upper=1_670_000.0, some=103_400.0, half=101_100.0)
OPEN = Bounded(value=41_300.0, lower=41_300.0, limited_by=LimitedBy.TESTER, some=55_200.0, half=50_000.0)
FLOOR = Bounded(
    value=6_900.0,
    lower=6_520.0,
    upper=7_300.0,
    loss_floor=LossFloor(
        ratio=1.0e-4, lower=0.97e-4, upper=1.03e-4, trials=40, trial_s=1.0, up_to_frames_per_s=136_000.0
    ),
)
NEVER_SURE = Bounded(value=None, upper=57_600.0, some=55_200.0, limited_by=DUT, reason_null="frames were lost")
LOSSY = Bounded(value=None, reason_null="too much is lost", loss_floor=FLOOR.loss_floor)
QUEUED = Bounded(
    value=100_000.0,
    lower=100_000.0,
    upper=100_500.0,
    limited_by=DUT,
    queue=Queue(frames=10_000, burst_frames_per_s=109_700.0, trial_s=1.0),
)


def searched(*rates: Bounded, goal: str = "ndr", **more: Any) -> Section:
    """The table of a throughput test with a rate of each frame size."""
    results = [
        Result(
            id=f"t/{64 * 2**place}",
            test="t",
            method="throughput",
            scope="per port",
            parameters={"frame_bytes": 64 * 2**place},
            values={f"{goal}_frames_per_s": rate, "line_rate_frames_per_s": 1.488e7, **more},
        )
        for place, rate in enumerate(rates)
    ]
    (section,) = sections(results, {})
    return section


def said(section: Section) -> list[str]:
    return [text.replace("\u00a0", " ").replace("\u202f", " ") for text in answers_of(section, "It")]


LIMITED = " Limited by the device under test (DUT)."


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (
            SHARP,
            f"It passes 200.4 kpps of 64-byte frames at the NDR, and no load from 200.9 kpps on (NDR).{LIMITED}",
        ),
        (
            ZONE,
            (
                "It passes 41 to 58 kpps of 64-byte frames at the NDR: every trial up to 41 kpps, none above 58 kpps, "
                f"by what other programs leave of the CPU; half of the trials passed at 47 kpps (NDR).{LIMITED}"
            ),
        ),
        (
            OPEN,
            (
                "It passes at least 41.3 kpps of 64-byte frames at the NDR: every trial up to 41.3 kpps, some up to "
                "55.2 kpps; half of the trials passed at 50.0 kpps (NDR). Limited by the tester: the DUT may do more."
            ),
        ),
        (
            FLOOR,
            (
                "It loses 0.0100 % (0.0097 to 0.0103 %) of the 64-byte frames at any load up to 136.0 kpps; a rate at "
                "the NDR then depends on the length of the trial: half of the 1 s trials lose nothing at 6.9 kpps "
                "(NDR)."
            ),
        ),
        (
            NEVER_SURE,
            (
                "It passes no load of 64-byte frames at the NDR in every trial: some up to 55.2 kpps, none above 57.6 "
                f"kpps (NDR).{LIMITED}"
            ),
        ),
        (LOSSY, "It loses 0.0100 % (0.0097 to 0.0103 %) of the 64-byte frames at any load (no NDR)."),
        (
            QUEUED,
            (
                "It passes 100.0 kpps of 64-byte frames at the NDR and without a growing queue, and no load from 100.5 "
                f"kpps on (NDR); a queue of 10 000 frames let 109.7 kpps through 1 s without loss.{LIMITED}"
            ),
        ),
    ],
    ids=[
        "sharp",
        "zone",
        "zone without an end",
        "loss at any load",
        "zone from 0",
        "loss at any load, no rate",
        "queue",
    ],
)
def test_a_sentence_says_what_trials_showed(rate: Bounded, words: str) -> None:
    assert said(searched(rate)) == [words]


@pytest.mark.parametrize(
    ("rate", "cells"),
    [
        (SHARP, ("200.4", "200.4 to 200.9", "DUT", "200.4 .. 200.9")),
        (ZONE, ("41 to 58", "half at 47, some to 55", "DUT", "41 to 58")),
        (ZONE.replace(half=41_300.0), ("41 to 58", "some to 55", "DUT", "41 to 58")),
        (FAR, ("100 to 1670", "half at 101.1, some to 103.4", "DUT", "100 to 1670")),
        (OPEN, ("≥ 41.3", "half at 50.0, some to 55.2", "tester", "≥ 41.3")),
        (FLOOR, ("6.9", "6.5 to 7.3; 0.0100 % lost", "loss at any load", "")),
        (NEVER_SURE, ("< 57.6", "some to 55.2", "DUT", "< 57.6")),
        (QUEUED, ("100.0", "100.0 to 100.5; 109.7 for 1 s", "DUT", "100.0 .. 100.5")),
    ],
    ids=[
        "sharp",
        "zone",
        "half at its lower end",
        "wide zone",
        "zone without an end",
        "loss at any load",
        "zone from 0",
        "queue",
    ],
)
def test_cells_have_the_zone_and_as_many_digits_as_it_gives(rate: Bounded, cells: tuple[str, ...]) -> None:
    section = searched(rate)
    (row,) = section.rows
    shown = [cell.replace("\u202f", " ") for cell in row.cells[1:4]]
    span = next(column for column in section.table.overview if column.aspect == "span")
    assert (*shown, text_of(span.replace(form="kpps", unit="kpps"), row.result)) == (
        *cells[:3],
        cells[3] or "6.5 .. 6.9 .. 7.3",
    )


def test_larger_frames_have_their_zone_too_and_a_list_of_runs_has_it_of_the_smallest() -> None:
    section = searched(ZONE, ZONE)
    assert said(section)[1] == "With 128-byte frames it passes 41 to 58 kpps at the NDR."
    assert brief([section]) == "NDR 41 to 58 kpps at 64 bytes"
    assert said(searched(SHARP, FLOOR))[1].startswith("It loses 0.0100 % (0.0097 to 0.0103 %) of the 128-byte frames")


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (100_000.0, 120_000.0, "100 to 120"),
        (123_000.0, 148_000.0, "120 to 150"),
        (2.0 - 1e-8, 3.0 + 1e-8, "2.0 to 3.0"),
        (120.99999999, 121.60000001, "121.0 to 121.6"),
        (430.7, 433.1, "430 to 434"),
        (1_999_000.0, 2_001_000.0, "1.999 to 2.001"),
    ],
)
def test_a_bound_is_rounded_outwards_and_never_for_an_error_of_the_arithmetic(
    lower: float, upper: float, text: str
) -> None:
    (row,) = searched(Bounded(value=lower, lower=lower, upper=upper, limited_by=DUT)).rows
    assert row.cells[2] == text


def cut_search(size: int, lower: float, value: float, upper: float) -> Result:
    rate = Bounded(value=value, lower=lower, upper=upper, limited_by=LimitedBy.DUT, n=8)
    values = {"ndr_frames_per_s": rate, "line_rate_frames_per_s": 1e7, "ceiling_frames_per_s": 1e6}
    return Result(id=f"t/{size}", method="throughput", parameters={"frame_bytes": size}, values=values)


def section_of(*results: Result) -> Section:
    (section,) = sections(results, {})
    return section


WILD = section_of(
    cut_search(64, 57e3, 60e3, 480e3), cut_search(128, 96e3, 98e3, 99e3), cut_search(256, 95e3, 97e3, 98e3)
)
TAME = section_of(cut_search(64, 57e3, 60e3, 110e3), cut_search(128, 96e3, 98e3, 99e3))


def test_a_tall_interval_leaves_the_other_points_their_room() -> None:
    points = points_of(WILD)
    assert points.top < 1.5 * 98
    assert [point["rate"] for point in points.rates] == [60.0, 98.0, 97.0]


@pytest.mark.parametrize("form", [WIDE, NARROW])
def test_what_is_cut_has_its_real_end_beside_it_and_its_whole_interval_in_words(form: Format) -> None:
    chart = rates_by_size_chart(WILD, form)
    assert chart is not None
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", svg(chart, 1, "rates"))
    assert "to 480" in texts
    spans = [row.span for one in read(chart) for row in one.rows]
    assert "57 to 480" in spans


def test_the_ends_of_two_goals_at_one_size_stand_beneath_each_other() -> None:
    both = cut_search(64, 57e3, 60e3, 480e3)
    wide = Bounded(value=61e3, lower=58e3, upper=470e3, limited_by=LimitedBy.DUT, n=8)
    section = section_of(both.replace(values={**both.values, "pdr_frames_per_s": wide}))
    chart = rates_by_size_chart(section, WIDE)
    assert chart is not None
    places = dict(re.findall(r"<text[^>]*translate\(([^)]*)\)[^>]*>(to [^<]+)</text>", svg(chart, 1, "rates")))
    heights = {words: float(place.split(",")[1]) for place, words in places.items()}
    assert heights["to 470"] - heights["to 480"] > 8


def test_the_caption_says_that_an_interval_goes_on() -> None:
    assert "goes on to the number beside it" in rates_by_size_caption(WILD)
    assert "goes on" not in rates_by_size_caption(TAME)


def test_an_interval_that_squeezes_nothing_is_drawn_whole() -> None:
    points = points_of(TAME)
    assert points.cut == ()
    assert points.top > 110


def test_a_lone_rate_and_no_rate_are_no_special_cases() -> None:
    assert cut_intervals([], "rate") == ([], [])
    drawn, cut = cut_intervals([{"rate": 10.0, "lower": 9.0, "upper": 80.0}], "rate")
    assert drawn[0]["upper"] < 80.0
    assert drawn[0]["range"] == "9 to 80"
    assert cut[0]["words"] == "to 80"
