"""How long the parts of a run are estimated to take, in their order: what its time left is computed from."""

from __future__ import annotations

from nicbench.bench_file import BenchFile
from nicbench.core.trial import CALIBRATION
from nicbench.stages.tester import plan_calibration


def list_planned(bench: BenchFile) -> list[tuple[str, float]]:
    """Lists calibration and tests of every turn in order, by their keys in the run, with estimates in seconds."""
    return [
        (turn.key(name), estimate_s)
        for turn in bench.turns
        for each in (bench.of_turn(turn),)
        for name, estimate_s in (
            (CALIBRATION, plan_calibration(each).estimate_s),
            *((test.name, test.build().expected_s()) for test in each.tests),
        )
    ]


def ends(bench: BenchFile) -> list[int]:
    """Lists after how many planned items the run may end; with a fixed number of runs, only after all of them."""
    configurations = len(bench.configurations)
    turns = [
        turn
        for turn in bench.turns
        if turn.number % configurations == 0 and bench.runs.may_end(turn.run - bench.runs.warm_up, configurations)
    ]
    each = len(list_planned(bench)) // len(bench.turns)
    return [each * turn.number for turn in turns]
