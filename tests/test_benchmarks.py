"""Every group of ``make bench`` runs, with the smallest amounts: what its figures are is looked at by nobody here."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tests.commands import run_tried

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
RATIOS = ("null", "two-cores", "forward", "veth", "cable", "frames", "connections", "hook")
FIGURES = ("cycles", "delay", "memif", "flows", "growth", "runs", "serve")
LONG = "looks"
"""The core watch measures its own cost for two minutes."""


def ran(*arguments: str) -> str:
    """What a benchmark printed."""
    command = [sys.executable, str(BENCHMARKS / arguments[0]), *arguments[1:]]
    done = run_tried(command, timeout=380)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stdout + done.stderr
    return done.stdout


@pytest.mark.lab
@pytest.mark.alone
@pytest.mark.sampled(1, of="benchmarks")
@pytest.mark.parametrize("group", [*RATIOS, *FIGURES])
def test_every_group_of_benchmarks_gives_its_rows(group: str) -> None:
    shown = ran("run.py", "--tiny", "--only", group)
    assert "void" not in shown, shown
    rows = [line for line in shown.splitlines() if re.search(r"\d \[\d" if group in RATIOS else r"\d\.\d", line)]
    assert rows or "left out" in shown, shown


@pytest.mark.lab
@pytest.mark.alone
@pytest.mark.sampled(1, of="benchmarks")
@pytest.mark.parametrize("program", ["streams.py", "live_page.py"])
def test_every_program_of_make_bench_gives_its_rows(program: str) -> None:
    tiny = {"streams.py": ("--seconds", "1", "--long", "1"), "live_page.py": ("--seconds", "0.2")}
    shown = ran(program, "--pairs", "1", *tiny[program])
    assert re.search(r"\d \[\d", shown), shown


def test_no_group_of_benchmarks_is_left_untried() -> None:
    done = run_tried([sys.executable, str(BENCHMARKS / "run.py"), "--only", "none"])
    offered = set(re.findall(r"'([\w-]+)'", done.stderr.partition("choose from")[2]))
    assert offered == {*RATIOS, *FIGURES, LONG}, done.stderr
