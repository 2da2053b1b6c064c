"""What a good bench file becomes."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tests.bench_file.conftest import Read

from nicbench.bench_file import WrongBenchFileError, load, parse
from nicbench.bench_file.frame_sizes import smallest_frame_bytes
from nicbench.bench_file.reader import LARGEST_FILE_BYTES, Node
from nicbench.bench_file.reader import read as read_tree
from nicbench.core.errors import Problem, UsageError
from nicbench.core.frame_size import SizeSweep
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
from nicbench.core.traffic import Traffic

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
    assert bench.lab.kind == "veth"


def test_minimum_and_maximum_are_the_extremes_of_the_frames_and_the_lab(read: Read) -> None:
    words = SMALL.replace("[64]", "[minimum, 512, maximum]").replace("lab: veth", "lab: {kind: veth, mtu: 2000}")
    assert read(words).tests[0].build().frame_sizes() == (64, 512, 2018)
    assert read(words + "traffic: {ip: 6, vlan: 7}\n").tests[0].build().frame_sizes() == (86, 512, 2018)


def test_a_sweep_takes_the_ends_that_it_leaves_out_from_the_frames_and_the_lab(read: Read) -> None:
    bench = read(SMALL.replace("[64]", "[every, some]") + "traffic: {mixes: {every: {step: 2}, some: {largest: 70}}}\n")
    assert bench.traffic.mixes["every"] == SizeSweep(smallest=64, largest=1518, step=2)
    some = bench.traffic.mix("some")
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


MEBIBYTE = 2**20

BOMB = 'a: &a ["x", "x", "x", "x", "x", "x", "x", "x", "x"]\n' + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)

HOSTILE = {
    "a bomb of aliases": (BOMB, "expands to more than"),
    "an alias inside what it names": ("a: &a [*a]\n", "is inside the value that it names"),
    "ten thousand lists in a list": ("a: " + "[" * 10_000 + "]" * 10_000, "levels are nested"),
    "ten thousand mappings in a mapping": ("a: " + "{a: " * 10_000, "levels are nested"),
    "ten thousand levels of dashes": ("- " * 10_000 + "x", "levels are nested"),
    "a scalar larger than any bench file": (b"title: " + b"x" * (LARGEST_FILE_BYTES + 1), "larger than"),
    "a list of very many values": ("a: [" + "1," * 20_000 + "1]", "expands to more than"),
    "a number of a thousand digits": ("seed: " + "9" * 1000, "too long"),
    "a number of astronomic size": ("seed: 1e9999", "1e9999 is too large a number"),
    "a NUL byte": (b"nicbench: \x001", "U+0000"),
    "an escape character": (b"title: \x1b[31mred", "U+001B"),
    "an escape character that is written as one": (b'title: "\\e[31mred"', "b.yaml:1:8: the character U+001B"),
    "a NUL byte that is written as an escape": (b'"a\\0b": 1', "b.yaml:1:1: the character U+0000"),
    "half a pair of surrogates": (b'declared: {switch: "\\ud800"}', "b.yaml:1:20: the character U+D800"),
    "a number that overflows": ("declared: {switch: 1e400}", "b.yaml:1:20: 1e400 is too large a number"),
    "a Python object": ("a: !!python/object/apply:os.system ['true']", "tag"),
    "a tag of one's own": ("a: !secret x", "tag"),
    "UTF-16": ("nicbench: 1\n".encode("utf-16"), "not UTF-8"),
    "half a character": (b"title: \xc3", "not UTF-8"),
    "a key that is a mapping": ("? {a: b}\n: c", "a key must be a word"),
}


@pytest.mark.parametrize(("content", "message"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_file_is_refused_in_bounded_memory(content: str | bytes, message: str, read: Read) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(WrongBenchFileError, match=re.escape(message)):
            read(content)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 64 * MEBIBYTE


def test_a_message_about_a_huge_value_stays_short(read: Read) -> None:
    with pytest.raises(WrongBenchFileError) as refused:
        read("nicbench: " + "x" * 100_000)
    assert len(refused.value.message) < 200


def test_many_problems_are_told_in_a_bounded_message(read: Read) -> None:
    with pytest.raises(WrongBenchFileError) as refused:
        read("".join(f"key{number}: 1\n" for number in range(500)))
    assert len(refused.value.problems) > 500
    assert len(str(refused.value).splitlines()) < 60
    assert "more problems" in str(refused.value)


EXAMPLE = (Path(__file__).parents[2] / "examples" / "kernel-forward.yaml").read_text()
LINES = EXAMPLE.splitlines()
SCRAPS = st.sampled_from(
    [*":-[]{},&*!|>'\"%@`#?\t\n ~<", "<<", "&a ", "*a", "---", "1e9", "null", "- ", ": ", "0x", "\u2028"]
)


def problems_of(content: bytes) -> tuple[Problem, ...]:
    try:
        parse(content, Path("b.yaml"))
    except WrongBenchFileError as error:
        return error.problems
    return ()


def understood_or_refused(content: bytes) -> None:
    lines = content.count(b"\n") + content.count(b"\r") + 2
    for problem in problems_of(content):
        assert 1 <= problem.position.line <= lines
        assert problem.position.column >= 1
        assert problem.message


@settings(max_examples=150)
@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf")
@example(b"\r")
@example(b"? ")
@example(b"- - -\n- ? : ")
def test_any_bytes(content: bytes) -> None:
    understood_or_refused(content)


@settings(max_examples=150)
@given(st.lists(SCRAPS | st.sampled_from(LINES), max_size=30).map("".join))
def test_scraps_of_yaml(text: str) -> None:
    understood_or_refused(text.encode())


@settings(max_examples=100)
@given(st.integers(0, len(EXAMPLE) - 1), st.integers(0, 40), SCRAPS)
def test_an_example_with_a_piece_replaced(start: int, length: int, scrap: str) -> None:
    understood_or_refused((EXAMPLE[:start] + scrap + EXAMPLE[start + length :]).encode())
