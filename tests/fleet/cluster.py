"""The Slurm cluster that the tests of fleets share: six nodes of namespaces, made by scripts/slurm-lab."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LONGEST_S = float(os.environ.get("LONGEST", "240"))

SHORT = """\
nicbench: 1
title: A simulated DUT
lab: {{kind: simulated, capacity: 500 kpps, queue_frames: 256, delay: 20 us}}
dut: simulated
tests:
  - {{name: loss, method: frame-loss, of: 400 kpps, frame_bytes: [{sizes}], trial: {{duration: {duration}}}}}
"""


def write_bench(path: Path, *, sizes: int, duration: str) -> None:
    """A bench file with two simulated trials of each frame size; ten seconds of traffic take about one."""
    path.write_text(SHORT.format(sizes=", ".join(str(64 + number) for number in range(sizes)), duration=duration))


class Cluster:
    """A running cluster, and a folder that all of its nodes see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {
            **os.environ,
            "SLURM_LAB_DIR": str(folder / "slurm"),
            "SLURM_LAB_ID": "nbtest",
            "SLURM_LAB_NICBENCH": str(Path(sys.executable).parent / "nicbench"),
            "SLURM_CONF": str(folder / "slurm" / "slurm.conf"),
        }

    def lab(self, *words: str) -> str:
        """Calls the script of the lab; gives what it prints."""
        call = (str(ROOT / "scripts" / "slurm-lab"), *words)
        done = subprocess.run(call, env=self._environment, check=False, capture_output=True, text=True, cwd=self.folder)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def fleet(self, *words: str) -> str:
        """Calls ``nicbench fleet`` where the controller is."""
        return self.lab("in", sys.executable, "-m", "nicbench", "fleet", *words)

    def submit(self, fleet: Path) -> Path:
        """Submits a fleet; gives its folder."""
        return Path(json.loads(self.fleet("submit", str(fleet), "--json"))["folder"])

    def rows(self, folder: Path) -> list[dict[str, Any]]:
        """The state of every run."""
        rows: list[dict[str, Any]] = json.loads(self.fleet("status", str(folder), "--json"))["runs"]
        return rows

    def until(self, folder: Path, wanted: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """Waits until the states of the runs are as wanted."""
        end = time.monotonic() + LONGEST_S
        while True:
            rows = self.rows(folder)
            if wanted(rows):
                return rows
            assert time.monotonic() < end, [(row["number"], row["state"], row["reason"]) for row in rows]
            time.sleep(0.5)

    def until_done(self, folder: Path) -> list[dict[str, Any]]:
        """Waits until every run is finished."""
        return self.until(folder, lambda rows: all(row["state"] == "done" for row in rows))

    def until_trials(self, folder: Path, number: int) -> str:
        """Waits until a run has made a trial; gives the tester, or the only machine, that makes it."""
        end = time.monotonic() + LONGEST_S
        while time.monotonic() < end:
            journals = list((folder / "work" / f"{number:04}").glob("2*/journal.ndjson"))
            if any('"event":"trial_finished"' in journal.read_text() for journal in journals):
                return str(next(iter(self.rows(folder)[number]["machines"].values())))
            time.sleep(0.2)
        raise AssertionError(f"run {number} made no trial: {self.rows(folder)[number]}")


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A cluster, in a folder that is neither below /tmp nor below /run, of which each node has its own."""
    folder = ROOT / ".slurm-lab"
    cluster = Cluster(folder)
    cluster.lab("down") if folder.exists() else folder.mkdir()
    cluster.lab("up")
    try:
        yield cluster
    finally:
        cluster.lab("down")
        subprocess.run(("rm", "-rf", str(folder)), check=True)
