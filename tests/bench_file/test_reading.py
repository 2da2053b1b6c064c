"""What a good bench file becomes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nicbench.bench_file import BenchFile, load
from nicbench.bench_file.frame_sizes import smallest_frame_bytes
from nicbench.bench_file.reader import Node
from nicbench.bench_file.reader import read as read_tree
from nicbench.core.errors import UsageError
from nicbench.core.frame_size import SizeSweep
from nicbench.core.traffic import Traffic

Read = Callable[[str | bytes], BenchFile]

SMALL = """\
nicbench: 1
title: A small one
lab: veth
dut: {kind: policer, rate: 150 kpps}
tests:
  - name: first
    method: throughput
    frame_bytes: [64]
    trial: {duration: 500 ms}
"""


def tree(text: str) -> Node:
    return read_tree(text.encode(), "b.yaml")


def test_quantities_are_in_the_base_unit(read: Read) -> None:
    bench = read(SMALL)
    assert bench.dut.options.model_dump()["rate"] == 150_000.0
    assert bench.tests[0].options.model_dump()["trial"]["duration"] == 0.5


def test_what_is_left_out_has_its_default(read: Read) -> None:
    bench = read(SMALL)
    assert bench.seed == 1
    assert bench.traffic.ip == 4
    assert bench.tester_kind().driver == "net_af_xdp"
    assert bench.thresholds == {}
    assert bench.description is None


def test_a_kind_without_options_may_stand_alone(read: Read) -> None:
    bench = read(SMALL)
    assert bench.lab is not None
    assert bench.lab.kind == "veth"


def test_minimum_and_maximum_are_the_extremes_of_the_frames_and_the_lab(read: Read) -> None:
    words = SMALL.replace("[64]", "[minimum, 512, maximum]").replace("lab: veth", "lab: {kind: veth, mtu: 2000}")
    assert read(words).tests[0].build().frame_sizes() == (64, 512, 2018)
    assert read(words + "traffic: {ip: 6, vlan: 7}\n").tests[0].build().frame_sizes() == (86, 512, 2018)


def test_a_sweep_takes_the_ends_that_it_leaves_out_from_the_frames_and_the_lab(read: Read) -> None:
    bench = read(SMALL.replace("[64]", "[every, some]") + "traffic: {mixes: {every: {step: 2}, some: {largest: 70}}}\n")
    assert bench.traffic.mixes["every"] == SizeSweep(smallest=64, largest=1518, step=2)
    some = bench.traffic.mix("some")
    assert some is not None
    assert (str(some), some.frame_bytes) == ("64 to 70 bytes in turn (mean 67.0)", 67.0)


def test_a_test_builds_its_method(read: Read) -> None:
    method = read(SMALL).tests[0].build()
    assert method.name == "first"
    assert method.frame_sizes() == (64,)


def test_the_source_is_kept_as_given(read: Read) -> None:
    assert read(SMALL).source == SMALL


def test_only_thresholds_that_were_given_are_overrides(read: Read) -> None:
    assert read(SMALL + "thresholds: {longest_gap_ms: 5}\n").thresholds == {"longest_gap_ms": 5.0}


def test_a_link_names_two_ports(read: Read) -> None:
    bench = read(
        "nicbench: 1\ntitle: x\ndut: {kind: kernel-forward}\ntests: [{name: t, method: throughput}]\n"
        "hosts: {tester: {kind: local}, dut: {kind: netns, namespace: n}}\n"
        "ports: {t0: {host: tester, address: 0000:03:00.0}, d0: {host: dut, device: e1}}\n"
        "links: [t0 <-> d0]\n"
    )
    assert bench.links == (("t0", "d0"),)
    assert bench.ports["t0"].address == "0000:03:00.0"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0000:03:00.0", "0000:03:00.0"),
        ("64:7", "64:7"),
        ("no", "no"),
        ("on", "on"),
        ("2026-01-31", "2026-01-31"),
        ("1_000", "1_000"),
        ('"010"', "010"),
        ("00:15:5d:00:01:02", "00:15:5d:00:01:02"),
        ("0", 0),
        ("-0.5", -0.5),
        ("0.25", 0.25),
        ("0o10", 8),
        ("0x10", 16),
        ("true", True),
        ("~", None),
        ("1e3", 1000.0),
        (".inf", ".inf"),
        ("'7'", "7"),
        ('"true"', "true"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(written: str, value: object) -> None:
    assert tree(f"a: {written}\n").plain() == {"a": value}


@pytest.mark.parametrize("written", ["010", "0100", "-007", "00", "01.5", "00e3", "0100 ms", "{b: [1, 064]}"])
def test_a_number_that_begins_with_a_zero_is_octal_to_some_and_refused(written: str, read: Read) -> None:
    with pytest.raises(UsageError, match=r"begins with a zero(.|\n)*write") as refused:
        read(SMALL.replace("500 ms", written))
    assert ":9:" in str(refused.value.place)


def test_a_key_of_digits_is_a_name(read: Read) -> None:
    assert tree("007: 1\n").plain() == {"007": 1}


def test_an_alias_repeats_a_value() -> None:
    assert tree("a: &x {b: 1}\nc: *x\n").plain() == {"a": {"b": 1}, "c": {"b": 1}}


def test_a_byte_order_mark_is_no_part_of_the_file(read: Read) -> None:
    assert read(b"\xef\xbb\xbf" + SMALL.encode()).title == "A small one"


def test_windows_line_ends_are_fine(read: Read) -> None:
    assert read(SMALL.replace("\n", "\r\n")).title == "A small one"


def test_the_smallest_frame_holds_the_headers_and_the_signature() -> None:
    assert smallest_frame_bytes(Traffic(ip=4)) == 64
    assert smallest_frame_bytes(Traffic(ip=6)) == 82


def test_a_file_that_does_not_exist_says_where_examples_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file") as refused:
        load(tmp_path / "none.yaml")
    assert "nicbench init" in str(refused.value)


def test_an_example_that_is_not_here_is_run_and_copied_from_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file") as refused:
        load(tmp_path / "examples" / "simulated.yaml")
    assert "`nicbench demo simulated` runs the example of this name" in str(refused.value)
    copied = str(refused.value).partition("`cp ")[2].partition(" .`")[0]
    assert load(Path(copied)).title == "A simulated DUT"


def test_a_folder_is_no_bench_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        load(tmp_path)


def test_what_is_declared_is_kept_as_it_was_typed(read: Read) -> None:
    text = "declared:\n  switch: {model: Arista 7060CX-32S, ports: 32, flow control: off}\n  cables: two of 3 m\n"
    bench = read(SMALL + text + "redact: true\n")
    assert bench.declared == {
        "switch": {"model": "Arista 7060CX-32S", "ports": 32, "flow control": "off"},
        "cables": "two of 3 m",
    }
    assert bench.redact
