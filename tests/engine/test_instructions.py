"""The instructions that the hot loops of the engine take, by valgrind: a count that other processes do not change."""

from __future__ import annotations

import json
import platform
import re
import shutil
import tomllib
from pathlib import Path

import pytest
from tests.commands import run_tried

from nicbench.engine.binaries import find_binary

BUDGETS = Path(__file__).resolve().parents[2] / "engine" / "packets" / "instructions.toml"
COUNTED = "nicbench_packets::measure::loops::counted_loop"
TOLERANCE = 0.03


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed (package valgrind)")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the budgets are for x86-64")
def test_no_hot_loop_takes_more_instructions_than_its_budget(tmp_path: Path) -> None:
    budgets = tomllib.loads(BUDGETS.read_text())
    counts = counted_instructions(tmp_path)
    assert set(counts) == set(budgets), f"{BUDGETS.name} and `nicbench-packets measure loops` name different loops"
    grown = [
        f"{name}: {count:.1f} instructions, {budgets[name]:g} budgeted ({count / budgets[name] - 1:+.1%})"
        for name, count in counts.items()
        if count > budgets[name] * (1 + TOLERANCE)
    ]
    assert not grown, "\n".join([f"these hot loops grew ({BUDGETS}):", *grown])


def counted_instructions(folder: Path) -> dict[str, float]:
    """By loop, for one round of it: valgrind writes a file of counts for each, in their order."""
    out = folder / "counts"
    places = (f"--zero-before={COUNTED}", f"--dump-after={COUNTED}", f"--callgrind-out-file={out}")
    command = ("valgrind", "--quiet", "--tool=callgrind", *places, find_binary("nicbench-packets"), "measure", "loops")
    done = run_tried(command)
    assert done.returncode == 0, done.stderr
    counts = {}
    for number, loop in enumerate(json.loads(done.stdout)["loops"], start=1):
        found = re.search(r"^totals: (\d+)$", out.with_name(f"{out.name}.{number}").read_text(), re.MULTILINE)
        assert found, f"valgrind counted nothing of {loop['name']}"
        counts[loop["name"]] = int(found[1]) / loop["rounds"]
    return counts
