"""Configurations: overlays over a bench file, merged and checked as if they had been written out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError
from nicbench.bench_file.overlays import list_differences

Read = Callable[[str | bytes], BenchFile]

BASE = """\
nicbench: 1
title: Compared
lab: {kind: simulated, capacity: 40 kpps, loss: 1 %}
dut: simulated
tests:
  - name: first
    method: throughput
    frame_bytes: [64, 512]
    search: {kind: mlr, precision: 2 %}
  - {name: second, method: latency, at: first, frame_bytes: [64]}
configurations:
"""


def options(bench: BenchFile, configuration: str, section: str) -> dict[str, object]:
    (each,) = (each for each in bench.configurations if each.configuration == configuration)
    content: dict[str, object] = getattr(each, section).options.model_dump()
    return content


def test_keys_are_merged_null_takes_away_and_anything_else_replaces(read: Read) -> None:
    bench = read(BASE + "  a:\n  b: {lab: {capacity: 20 kpps, loss: null}, tests: {first: {frame_bytes: [128, 64]}}}\n")
    assert [each.configuration for each in bench.configurations] == ["a", "b"]
    assert (options(bench, "a", "lab")["capacity"], options(bench, "a", "lab")["loss"]) == (40_000.0, 0.01)
    assert (options(bench, "b", "lab")["capacity"], options(bench, "b", "lab")["loss"]) == (20_000.0, 0.0)
    sizes = [each.tests[0].build().frame_sizes() for each in bench.configurations]
    assert sizes == [(64, 512), (128, 64)]
    assert [test.name for test in bench.configurations[1].tests] == ["first", "second"]
    searches = [each.tests[0].options.search.precision for each in bench.configurations]  # type: ignore[attr-defined]
    assert searches == [0.02, 0.02]


def test_a_section_of_another_kind_replaces_the_whole(read: Read) -> None:
    text = BASE.replace("lab: {kind: simulated, capacity: 40 kpps, loss: 1 %}\ndut: simulated", "lab: veth")
    overlays = "  a: {dut: {kind: policer, rate: 100 kpps}}\n  b: {dut: kernel-forward, lab: {mtu: 3000}}\n"
    bench = read(text + overlays)
    assert [each.dut.kind for each in bench.configurations] == ["policer", "kernel-forward"]
    assert options(bench, "b", "lab")["mtu"] == 3000
    search = "  a:\n  b: {tests: {first: {search: {kind: step-down}}}}\n"
    (_, b) = read(BASE + search).configurations
    assert b.tests[0].options.search.precision == 0.005  # type: ignore[attr-defined]  # the default, not 2 %


def test_the_rest_of_the_file_need_not_be_whole(read: Read) -> None:
    text = BASE.replace("dut: simulated\n", "")
    assert len(read(text + "  a: {dut: simulated}\n  b: {dut: simulated, lab: {delay: 1 ms}}\n").configurations) == 2


def test_what_differs_is_listed_with_the_values_as_they_were_written(read: Read) -> None:
    overlays = "  a: {lab: {capacity: 20 kpps}}\n  b: {lab: {delay: 1 ms}, tests: {second: {loads: [50 %]}}}\n"
    rows = {row.setting: row.values for row in list_differences(read(BASE + overlays))}
    assert rows == {
        "lab.capacity": {"a": "20 kpps", "b": "40 kpps"},
        "lab.delay": {"a": None, "b": "1 ms"},
        "tests.second.loads": {"a": None, "b": '["50 %"]'},
    }


def test_a_file_without_configurations_is_the_only_one(read: Read) -> None:
    bench = read(BASE.removesuffix("configurations:\n") + "runs: 3\n")
    assert bench.configurations == (bench,)
    assert [str(turn) for turn in bench.turns] == ["default, run 1", "default, run 2", "default, run 3"]
    assert list_differences(bench) == ()


@pytest.mark.parametrize(
    ("overlays", "place", "message"),
    [
        ("  a:\n  b: {lab: {capacty: 1 kpps}}\n", "13:13", "configuration `b`: unknown key `lab.capacty`"),
        ("  a:\n  b: {lab: {capacity: fast}}\n", "13:23", "configuration `b`: `lab.capacity`"),
        ("  a:\n  b: {labs: {}}\n", "13:7", "unknown key `configurations.b.labs`"),
        ("  a:\n  b: {title: B}\n", "13:7", "`title` cannot differ between configurations: they share one report"),
        ("  a:\n  b: {thresholds: {}}\n", "13:7", "`thresholds` cannot differ"),
        ("  a:\n  b: {tests: {first: {method: latency}}}\n", "13:23", "`method` cannot differ"),
        ("  a:\n  b: {tests: {first: {name: x}}}\n", "13:23", "`name` cannot differ"),
        ("  a:\n  b: {tests: {fist: {}}}\n", "13:15", "there is no test `fist`"),
        ("  a:\n  b: {tests: [{name: first}]}\n", "13:14", "the tests of a configuration are given by their names"),
        ("  a:\n", "11:1", "needs two or more"),
        ("  default:\n  b:\n", "12:3", "`default` is the name of the configuration of a file without `configurations`"),
        ("  a:\n  b c: {}\n", "13:8", "`configurations.b c"),
        ("  a:\n  b: {dut: null}\n", "1:1", "configuration `b`: `dut` is missing"),
        ("  a:\n  b: {tests: {first: {frame_bytes: [512]}}}\n", "10:61", "configuration `b`: `first` does not measure"),
    ],
)
def test_what_is_wrong_is_told_where_it_was_written(read: Read, overlays: str, place: str, message: str) -> None:
    with pytest.raises(WrongBenchFileError) as refused:
        read(BASE + overlays)
    (problem,) = refused.value.list_errors()
    assert problem.place == f"b.yaml:{place}"
    assert message in problem.message


def test_what_is_wrong_in_all_of_them_is_told_once(read: Read) -> None:
    with pytest.raises(WrongBenchFileError) as refused:
        read(BASE.replace("loss: 1 %", "los: 1 %") + "  a:\n  b: {lab: {delay: 1 ms}}\n")
    (problem,) = refused.value.list_errors()
    assert problem.message == "unknown key `lab.los`"
