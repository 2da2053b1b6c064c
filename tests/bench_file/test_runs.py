"""How often each configuration is measured, as a bench file writes it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError
from nicbench.core.turn import Runs

Read = Callable[[str], BenchFile]

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
