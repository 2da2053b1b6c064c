"""How far a fleet is: what is measured, by its folder, and what waits, runs or failed, by Slurm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nicbench.fleet import slurm
from nicbench.fleet.folder import FleetFolder, Task
from nicbench.fleet.slurm import JobState

DONE: Final = "done"
NOT_SUBMITTED: Final = "not submitted"
LOST: Final = "lost"


@dataclass(frozen=True, slots=True)
class TaskState:
    """One run: its state in a word, the machines by role, and where more is to be read."""

    task: Task
    state: str
    machines: Mapping[str, str]
    run: str | None = None
    log: str | None = None
    reason: str = ""
    job: str | None = None
    is_alive: bool = False

    @property
    def is_held(self) -> bool:
        """Whether Slurm starts it only when somebody says so: as after a machine that could not start it."""
        return self.is_alive and "held" in self.reason.lower()


def states_of(folder: FleetFolder) -> list[TaskState]:
    """The state of every run. A finished run is told by its folder, whatever Slurm says."""
    manifest = folder.manifest
    known, has_accounting = slurm.states_of([array.name for array in manifest.arrays], manifest.made)
    found = []
    for array in manifest.arrays:
        for number in array.numbers:
            job = known.get((array.name, number - array.first))
            log = folder.path / "logs" / f"{array.name}-{number - array.first}.log"
            bound, run = folder.bound(number), folder.finished_run(number)
            never = NOT_SUBMITTED if has_accounting and bound is None else LOST
            found.append(
                TaskState(
                    task=manifest.tasks[number],
                    state=DONE if run is not None else never if job is None else _word_of(job),
                    machines={} if bound is None else bound.machines,
                    run=None if run is None else str(run),
                    log=str(log) if log.is_file() else None,
                    reason="" if job is None or run is not None else job.reason,
                    job=None if job is None else job.job,
                    is_alive=run is None and job is not None and job.is_alive,
                )
            )
    return sorted(found, key=lambda each: each.task.number)


def _word_of(job: JobState) -> str:
    state = job.state.lower().replace("_", " ")
    return f"{state} (exit status {job.exit_status})" if job.exit_status else state
