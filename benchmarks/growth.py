"""How the time of commands grows: ``run``, ``report`` and ``compare`` with 10 to 10,000 trials, and the first ``list``
of 10 to 10,000 runs.

It prints CPU seconds, the least of some repetitions (the largest count is measured once), and the slope. The slope
compares the seconds that the last step added with those that the step before added: 1 is linear growth, 2 quadratic.
The time of a start is in neither.
"""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import runs_folder

COUNTS = (10, 100, 1000, 10_000)
TIMES = 3
LOADS = 10
BENCH = """\
nicbench: 1
title: Growth
lab: {{kind: simulated, capacity: 400 kpps}}
dut: {{kind: simulated}}
tests:
  - name: sweep
    method: load-sweep
    of: 300 kpps
    loads: [{loads}]
    frame_bytes: [{sizes}]
    trial: {{duration: 10 ms, drain: 1 ms, settle: 0 s}}
"""


def growth_lines(counts: Sequence[int] = COUNTS, times: int = TIMES) -> list[str]:
    """The table: a row for each command."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        commands: dict[str, Callable[[Path, int], float]] = {
            "run, by trials": _run,
            "report, by trials": _report,
            "compare two runs, by trials of each": _compare,
            "list for the first time, by runs": _list,
        }
        rows = {
            name: [min(take(place, count) for _ in range(times if count < counts[-1] else 1)) for count in counts]
            for name, take in commands.items()
        }
    head = f"{'s of a processor, the least of ' + str(times):40}{''.join(f'{count:>8}' for count in counts)}   slope"
    return [
        head,
        *(f"{name:40}{''.join(f'{one:8.2f}' for one in found)}{slope(found, counts)}" for name, found in rows.items()),
    ]


def slope(seconds: Sequence[float], counts: Sequence[int]) -> str:
    """The exponent of growth; a dash where the first step added less than the clock and other processes may."""
    first, last = (after - before for before, after in itertools.pairwise(seconds[-3:]))
    return f"{math.log(last / first, counts[-1] / counts[-2]):8.2f}" if first > 0.02 and last > 0.0 else f"{'–':>8}"


def _run(place: Path, trials: int) -> float:
    bench = place / f"{trials}.yaml"
    loads = ", ".join(f"{100 - 10 * number} %" for number in range(LOADS))
    sizes = ", ".join(str(64 + number) for number in range(trials // LOADS))
    bench.write_text(BENCH.format(loads=loads, sizes=sizes))
    return _seconds(place, "run", str(bench), "--runs", f"trials-{trials}", "--no-progress", "--no-report")


def _report(place: Path, trials: int) -> float:
    return _seconds(place, "report", "latest", "--runs", f"trials-{trials}")


def _compare(place: Path, trials: int) -> float:
    if len(list((place / f"trials-{trials}").iterdir())) < 2:
        _run(place, trials)
    one, other, *_ = sorted(path.name for path in (place / f"trials-{trials}").iterdir())
    return _seconds(place, "compare", one, other, "--runs", f"trials-{trials}", "--out", str(place))


def _list(place: Path, runs: int) -> float:
    folder = place / f"runs-{runs}" / "runs"
    if not folder.exists():
        runs_folder.make_runs(folder, runs)
    (folder / ".index.sqlite").unlink(missing_ok=True)
    return _seconds(place, "list", "--runs", str(folder))


def _seconds(place: Path, *words: str) -> float:
    """Seconds of a processor that a command takes, with all that it starts."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "nicbench", *words], cwd=place, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
