"""How long ``nicbench compare`` takes for 2, 8, 20 and 50 runs, as whole processes. Seconds are printed.

One small simulated run is made, of seven frame sizes, latency and frame loss; the others are copies of it with rates
and kernels of their own.

    .venv/bin/python benchmarks/compare_runs.py [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from nicbench.store import manifest

BENCH = """\
nicbench: 1
title: A simulated forwarder
lab: {kind: simulated, capacity: 400 kpps}
dut: {kind: simulated}
tests:
  - name: throughput
    method: throughput
    search: {maximum_trials: 8, goals: {NDR: 0 %, PDR: 0.5 %}}
    trial: {duration: 20 ms, drain: 1 ms, settle: 0 s}
  - name: latency
    method: latency
    at: throughput
    loads: [100 %, 50 %]
    trial: {duration: 20 ms, drain: 1 ms, settle: 0 s}
  - name: loss
    method: frame-loss
    of: 400 kpps
    frame_bytes: [64, 1518]
    trial: {duration: 10 ms, drain: 1 ms, settle: 0 s}
"""
KERNELS = ("6.1.90-amd64", "6.6.31", "6.12.0-rc3")
COUNTS = (2, 8, 20, 50)
LIMIT_S = 20.0


def main() -> int:
    """Status 1 where 50 runs take longer than 20 seconds."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--keep", type=Path, help="make runs and pages here and leave them")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        runs = make_runs(folder / "runs", max(COUNTS))
        took = {count: compare_once(runs[:count], folder) for count in COUNTS}
    return 0 if took[max(COUNTS)] < LIMIT_S else 1


def make_runs(folder: Path, count: int) -> list[Path]:
    """So many runs under ``folder``, a day apart."""
    folder.mkdir(parents=True, exist_ok=True)
    bench = folder.parent / "bench.yaml"
    bench.write_text(BENCH)
    first = folder.parent / "first"
    command = [sys.executable, "-m", "nicbench", "run", str(bench), "--runs", str(first), "--no-progress", "--json"]
    subprocess.run(command, check=True, capture_output=True)
    [made] = first.iterdir()
    draw = random.Random(1)
    runs = []
    for number in range(count):
        path = folder / f"2026-{1 + number // 28:02}-{1 + number % 28:02}T120000Z-a-simulated-forwarder"
        shutil.copytree(made, path)
        change(path, "summary.json", lambda summary: scale(summary, draw.uniform(0.8, 1.3)))
        change(path, "inventory.json", lambda machines, kernel=KERNELS[number % 3]: set_kernel(machines, kernel))
        manifest.write(path)
        runs.append(path)
    return runs


def change(path: Path, name: str, by: Any) -> None:
    """Changes a JSON file in place."""
    content = json.loads((path / name).read_text())
    by(content)
    (path / name).write_text(json.dumps(content))


def scale(summary: dict[str, Any], factor: float) -> None:
    """Makes every rate of a run so many times as high."""
    for result in summary["results"]:
        for value in result["values"].values():
            if isinstance(value, dict):
                value |= {end: value[end] * factor for end in ("value", "lower", "upper") if value.get(end)}


def set_kernel(machines: dict[str, Any], release: str) -> None:
    """Gives every machine this kernel."""
    for facts in machines.values():
        facts["kernel"] = {**(facts.get("kernel") or {}), "release": release}


def compare_once(runs: list[Path], folder: Path) -> float:
    """Seconds of the whole process; its page stays in ``folder``."""
    page = folder / f"{len(runs)}.html"
    command = [sys.executable, "-m", "nicbench", "compare", *map(str, runs), "--out", str(page)]
    began = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    took = time.monotonic() - began
    print(f"{len(runs):3} runs {took:6.2f} s, a page of {page.stat().st_size / 1e6:.2f} MB", flush=True)
    return took


if __name__ == "__main__":
    sys.exit(main())
