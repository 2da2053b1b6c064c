"""Configurations: overlays over a bench file, merged and checked as if they had been written out."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench_file.conftest import Read

from nicbench.bench_file import BenchFile, WrongBenchFileError, parse
from nicbench.bench_file.overlays import list_differences
from nicbench.core.turn import Runs

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
    return getattr(each, section).options.model_dump()


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


BENCH = """
nicbench: 1
title: A study
lab: {kind: veth}
dut: {kind: policer, burst: 100}
AXES
tests: [{name: spread, method: receive-spread, rate: 1 kpps}]
"""
TWO = """
axes:
  queues: {1: {lab: {queues: 1}}, 4: {lab: {queues: 4}, dut: {per_queue: true}}}
  core: {slow: {dut: {rate: 1 kpps}}, fast: {dut: {rate: 2 kpps}}}
"""


def read(axes: str) -> list[tuple[str, int, float]]:
    bench = parse(BENCH.replace("AXES", axes).encode(), Path("study.yaml"))
    return [
        (each.configuration, each.lab.options.model_dump()["queues"], each.dut.options.model_dump()["rate"])
        for each in bench.configurations
        if each.lab is not None
    ]


def test_every_combination_is_a_configuration_with_both_overlays() -> None:
    assert read(TWO) == [
        ("queues-1_core-slow", 1, 1000.0),
        ("queues-1_core-fast", 1, 2000.0),
        ("queues-4_core-slow", 4, 1000.0),
        ("queues-4_core-fast", 4, 2000.0),
    ]
    bench = parse(BENCH.replace("AXES", TWO).encode(), Path("study.yaml"))
    assert bench.axes == {"queues": ("1", "4"), "core": ("slow", "fast")}


def test_axes_have_names_as_people_write_them() -> None:
    text = BENCH.replace(
        "AXES", "axes: {ports: {2 ports: , 4 ports: }, link mode: {'100 Mb/s, full duplex': , half: }}"
    )
    bench = parse(text.encode(), Path("study.yaml"))
    assert bench.axes == {"ports": ("2 ports", "4 ports"), "link mode": ("100 Mb/s, full duplex", "half")}
    assert bench.configurations[0].configuration == "ports-2-ports_link-mode-100-Mb-s-full-duplex"


@pytest.mark.parametrize(
    ("axes", "why"),
    [
        ("axes: {queues: {1: {lab: {queues: 1}}}}", "an axis needs two or more values"),
        (f"{TWO}\nconfigurations: {{a: , b: }}", "either `axes` or `configurations`"),
        ("axes: {queues: {1: {seed: 4}, 2: {}}}", "cannot differ between configurations"),
        (f"axes: {{n: {{{', '.join(f'v{value}: ' for value in range(65))}}}}}", "65 combinations"),
        ("axes: {a_b: {1: , 2: }}", "a_b"),
        ("axes: {ports: {2 ports: , 2-ports: }}", "`ports-2-ports` is that of two combinations"),
        (f"axes: {{{'a' * 32}: {{{'b' * 32}: , c: }}}}", "longer than 64 characters"),
    ],
    ids=["one value", "beside configurations", "a key that is shared", "too many", "a name", "same names", "long name"],
)
def test_what_cannot_be_combined_is_said(axes: str, why: str) -> None:
    with pytest.raises(WrongBenchFileError) as wrong:
        read(axes)
    assert any(why in problem.message or why in str(problem) for problem in wrong.value.problems)


FILE = "nicbench: 1\ntitle: x\nlab: simulated\ndut: simulated\ntests:\n  - {name: t, method: throughput}\nruns: "


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("5", Runs(at_least=5, at_most=5)),
        ("{exactly: 5}", Runs(at_least=5, at_most=5)),
        ("{warm_up: 2}", Runs(warm_up=2)),
        ("{warm_up: 1, exactly: 6}", Runs(warm_up=1, at_least=6, at_most=6)),
        ("{until: 5 %}", Runs(at_least=3, at_most=20, until_ratio=0.05, confidence_ratio=0.95)),
        ("{until: 5 %, at_most: 2}", Runs(at_least=2, at_most=2, until_ratio=0.05, confidence_ratio=0.95)),
        ("{until: 5 %, at_least: 30}", Runs(at_least=30, at_most=30, until_ratio=0.05, confidence_ratio=0.95)),
        (
            "{warm_up: 1, at_least: 4, at_most: 9, until: 0.5 %, confidence: 99 %}",
            Runs(warm_up=1, at_least=4, at_most=9, until_ratio=0.005, confidence_ratio=0.99),
        ),
    ],
)
def test_a_number_alone_or_what_it_waits_for(read: Read, written: str, asked: Runs) -> None:
    assert read(FILE + written).runs == asked


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("0", "`runs` is `0`: it must be at least 1"),
        ("many", "`runs`: write a whole number of runs, or `{at_least: 3, at_most: 20, until: 5 %}`"),
        ("2.5", "write a whole number of runs"),
        ("{exactly: 1001}", "`runs.exactly` is `1001`: it must be at most 1000"),
        ("{at_least: 3}", "`at_least` needs `until`: add `until: 5 %`, or write `exactly: 5` alone"),
        (
            "{exactly: 3, until: 5 %}",
            "`exactly` fixes the number of runs and `until` lets it grow: write only one of them",
        ),
        ("{at_least: 9, at_most: 4, until: 5 %}", "`at_least` (9) is more than `at_most` (4)"),
        ("{at_least: 1, until: 5 %}", "`runs.at_least` is `1`: it must be at least 2"),
        ("{until: 5}", "`runs.until`: 5 has no unit"),
        ("{until: 0 %}", "`runs.until` is `0 %`: it must be more than 0"),
        ("{until: 5 %, confidence: 100 %}", "`runs.confidence` is `100 %`: it must be at most 99.99 %"),
        ("{warm_ups: 1}", "unknown key `runs.warm_ups`"),
    ],
)
def test_what_cannot_be_is_told_at_its_place(read: Read, written: str, message: str) -> None:
    with pytest.raises(WrongBenchFileError) as caught:
        read(FILE + written)
    (problem,) = caught.value.problems
    assert (problem.position.line, message in problem.message) == (7, True), problem.message


def test_runs_that_warm_up_come_first_and_leave_the_order_of_the_others(read: Read) -> None:
    warm, cold = read(FILE + "{warm_up: 2, exactly: 2}"), read(FILE + "2")
    assert [(turn.run, turn.warm_up) for turn in warm.turns] == [(1, True), (2, True), (3, False), (4, False)]
    assert [turn.number for turn in warm.turns] == [1, 2, 3, 4]
    assert len(cold.turns) == 2


def test_what_is_made_in_any_case_is_told_from_what_may_be(read: Read) -> None:
    alone = read(FILE + "{warm_up: 1, at_least: 3, at_most: 9, until: 5 %}")
    assert (len(alone.sure_turns), len(alone.turns)) == (4, 10)
    two = read(FILE + "{warm_up: 1, at_least: 3, at_most: 9, until: 5 %}\nconfigurations: {a: , b: }")
    assert (len(two.sure_turns), len(two.turns)) == (2 * (1 + 4), 2 * 10)  # whole pairs
    capped = read(FILE + "{at_least: 3, at_most: 3, until: 5 %}\nconfigurations: {a: , b: }")
    assert len(capped.sure_turns) == len(capped.turns) == 6
