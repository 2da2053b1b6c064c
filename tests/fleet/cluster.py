"""The Slurm cluster that the tests of fleets share: six nodes of namespaces, made by scripts/slurm-lab.

Each worker of xdist has one of its own, by its own mounts: the tests wait for Slurm most of their time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.commands import run_checked, run_tried

from nicbench.fleet import FleetFolder

ROOT = Path(__file__).parents[2]
LONGEST_S = 300.0
LONGEST_TO_CLEAR_S = 120.0
"""What is cancelled may take KillWait of slurm.conf, a minute, to end."""
NODES = 6
Found = TypeVar("Found")

BENCH = """\
nicbench: 1
title: A simulated DUT
lab: {{kind: simulated, capacity: 500 kpps, queue_frames: 256, delay: 20 us}}
dut: simulated
tests:
  - {{name: loss, method: frame-loss, of: 400 kpps, frame_bytes: [{sizes}], trial: {{duration: {duration}}}}}
"""


class Cluster:
    """A running cluster, and a folder that all of its nodes see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {
            **os.environ,
            "SLURM_LAB_DIR": str(folder / "slurm"),
            "SLURM_LAB_ID": "nbtests",
            "SLURM_LAB_NICBENCH": str(Path(sys.executable).parent / "nicbench"),
            "SLURM_CONF": str(folder / "slurm" / "slurm.conf"),
        }

    def lab(self, *words: str) -> str:
        """Calls the script of the lab; gives what it prints."""
        call = (str(ROOT / "scripts" / "slurm-lab"), *words)
        done = run_tried(call, env=self._environment, cwd=self.folder)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def beside(self, *words: str) -> subprocess.Popen[bytes]:
        """Calls the script of the lab and does not wait for its end."""
        call = (str(ROOT / "scripts" / "slurm-lab"), *words)
        return subprocess.Popen(call, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def fleet(self, *words: str) -> str:
        """Calls ``nicbench fleet`` where the controller is."""
        return self.lab("in", sys.executable, "-m", "nicbench", "fleet", *words)

    def submit(self, fleet: Path) -> Path:
        """Submits a fleet; gives its folder."""
        return Path(json.loads(self.fleet("submit", str(fleet), "--json"))["folder"])

    def rows(self, folder: Path) -> list[dict[str, Any]]:
        """The state of every run."""
        return json.loads(self.fleet("status", str(folder), "--json"))["runs"]

    def until(self, folder: Path, number: int, *states: str) -> dict[str, Any]:
        """Waits until a run has one of these states; gives what is said of it."""
        return self.wait_for(
            lambda: next((row for row in self.rows(folder)[number:][:1] if row["state"] in states), None)
        )

    def until_queued(self, folder: Path, number: int) -> None:
        """Waits until a run waits again; the queue is asked itself, which takes a hundredth of the time."""
        asked = ("squeue", "-h", "-r", "-t", "all", "-o", "%K %T", f"--name={folder.name}.0")
        wanted = {f"{number} PENDING", f"{number} REQUEUED"}
        self.wait_for(lambda: True if wanted & set(self.lab("in", *asked).splitlines()) else None)

    def until_done(self, folder: Path) -> list[dict[str, Any]]:
        """Waits until every run is finished; gives what is said of each."""
        opened = FleetFolder.open(folder)
        count = len(opened.manifest.tasks)
        self.wait_for(lambda: all(opened.finished_run(number) is not None for number in range(count)) or None)
        return self.rows(folder)

    def until_trials(self, folder: Path, number: int) -> str:
        """Waits until a run has made a trial; gives the machine that makes them."""
        work = folder / "work" / f"{number:04}"

        def has_made_one() -> bool | None:
            journals = [journal.read_text() for journal in work.glob("2*/journal.ndjson")]
            return any('"event":"trial_finished"' in journal for journal in journals) or None

        self.wait_for(has_made_one)
        bound = FleetFolder.open(folder).bound(number)
        return next(iter(bound.machines.values()))

    def clear(self) -> None:
        """Cancels what an earlier test left, so that every node is idle; where that fails, the cluster is made anew."""
        self.lab("in", "scancel", "--user=root")
        end = time.monotonic() + LONGEST_TO_CLEAR_S
        while (states := self.lab("in", "sinfo", "-h", "-N", "-o", "%T").split()) != ["idle"] * NODES:
            if time.monotonic() >= end or any(state.startswith("drain") for state in states):
                print(f"the cluster is made anew:\n{self._describe()}")
                self.lab("down")
                self.lab("up")
                return
            time.sleep(0.3)

    def until_saved(self, folder: Path) -> None:
        """Waits until the controller has written down all that it knows of a fleet by now: that outlives its end."""
        state, mark = self.folder / "slurm" / "state" / "job_state", f"saved-{folder.name}"
        job = self.lab("in", "squeue", "-h", "-o", "%A", f"--name={folder.name}.0").split()[0]
        self.lab("in", "scontrol", "update", f"JobId={job}", f"Comment={mark}")
        self.wait_for(lambda: True if state.is_file() and mark.encode() in state.read_bytes() else None)

    def wait_for(self, found: Callable[[], Found | None]) -> Found:
        """Waits until there is something; where nothing comes, the error says what the cluster does instead."""
        end = time.monotonic() + LONGEST_S
        while (value := found()) is None:
            assert time.monotonic() < end, f"nothing came within {LONGEST_S:.0f} s:\n{self._describe()}"
            time.sleep(0.3)
        return value

    def _describe(self) -> str:
        """Nodes and jobs, and the last lines of the newest fleet's logs and of Slurm's."""
        newest = max(self.folder.glob("fleets/*"), key=lambda path: path.stat().st_mtime, default=self.folder)
        logs = [*sorted(newest.glob("logs/*"))[:4], *sorted(self.folder.glob("slurm/log/slurm*.log"))]
        ends = ["\n".join([f"== {log.name}", *log.read_text(errors="replace").splitlines()[-6:]]) for log in logs]
        return "\n".join([self.lab("status"), self.lab("in", "scontrol", "-o", "show", "jobs")[-4000:], *ends])

    def trials_of(self, row: dict[str, Any]) -> list[str]:
        """The keys of the trials of a finished run."""
        lines = (Path(row["run"]) / "journal.ndjson").read_text().splitlines()
        return [event["trial"]["key"] for event in map(json.loads, lines) if event["event"] == "trial_finished"]

    def write_fleet(self, name: str, roles: str, more: str = "", *, sizes: int = 1, duration: str = "1 s") -> Path:
        """A fleet file and its bench file, with two simulated trials of each frame size.

        Ten seconds of simulated traffic take about one.
        """
        shown = ", ".join(str(64 + number) for number in range(sizes))
        (self.folder / f"{name}-bench.yaml").write_text(BENCH.format(sizes=shown, duration=duration))
        path = self.folder / f"{name}.yaml"
        path.write_text(f"fleet: 1\nbenches: [{name}-bench.yaml]\nroles: {roles}\n{more}")
        return path


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A cluster, in a folder that is neither below /tmp nor below /run, of which each node has its own."""
    folder = ROOT / ".slurm-lab" / os.environ.get("PYTEST_XDIST_WORKER", "alone")
    cluster = Cluster(folder)
    if folder.exists():
        cluster.lab("down")
    folder.mkdir(parents=True, exist_ok=True)
    cluster.lab("up")
    try:
        yield cluster
    finally:
        cluster.lab("down")
        run_checked(("rm", "-rf", str(folder)))
