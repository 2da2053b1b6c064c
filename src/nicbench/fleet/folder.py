"""The folder of a fleet, on a file system that all machines see: what was asked, what is being measured, what is done.

fleet.yaml        the fleet file
manifest.json     every run with its combination, roles and time; the arrays
benches/003.yaml  the bench file of a combination, without addresses of machines
tasks/0017.json   which machines a run has or had, and the name of its run folder
work/0017/        a run that goes on, or that was interrupted
runs/             finished runs, each moved here whole
logs/             what runs print
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, TypeVar

from pydantic import ValidationError

from nicbench.core.base import Frozen, why_of
from nicbench.core.errors import UsageError
from nicbench.core.frozen import frozen
from nicbench.fleet import slurm
from nicbench.fleet.slurm import JobState
from nicbench.store.files import damaged_error, json_text, parse_json, storage_error, sync_folder, write_atomically

MANIFEST: Final = "manifest.json"
FLEET: Final = "fleet.yaml"
FORMAT: Final = "1.0"
Kind = TypeVar("Kind", bound=Frozen)


class Task(Frozen):
    """One run: the values of its combination (``bench`` first), its bench file, and the features of each role."""

    number: int
    values: Mapping[str, str]
    repeat: int
    bench: str
    roles: Mapping[str, tuple[str, ...]]
    estimate_s: float

    def __str__(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.values.items())


class Array(Frozen):
    """Runs that need the same machines and are submitted as one job array, each by its number less ``first``."""

    name: str
    first: int
    numbers: tuple[int, ...]
    nodes: int
    constraint: str
    limit_min: int


class Manifest(Frozen):
    """What a fleet is to measure. It is written once, before anything is submitted."""

    format: Literal["1.0"]
    fleet: str
    nicbench: str
    made: datetime
    joined_by: str | None
    options: Mapping[str, str]
    tasks: tuple[Task, ...]
    arrays: tuple[Array, ...]


class Bound(Frozen):
    """Who has which role in a run, and the name of the run folder once there is one."""

    machines: Mapping[str, str]
    job: str
    run: str | None = None


class FleetFolder:
    """The folder of a fleet, made by ``submit``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def open(cls, path: Path) -> FleetFolder:
        """Opens the folder of a fleet. UsageError if it is not one."""
        if not (path / MANIFEST).is_file():
            step = "give a folder that `nicbench fleet submit` made"
            raise UsageError(f"is not the folder of a fleet: it holds no {MANIFEST}", place=str(path), next_step=step)
        return cls(path.resolve())

    @property
    def manifest(self) -> Manifest:
        """The manifest. HostError where it is damaged."""
        return _read(self.path / MANIFEST, Manifest)

    @property
    def runs(self) -> Path:
        """The folder of the finished runs."""
        return self.path / "runs"

    def work(self, number: int) -> Path:
        """The folder in which a run is made."""
        return self.path / "work" / f"{number:04}"

    def bound(self, number: int) -> Bound | None:
        """Who has or had which role in a run; None before it began."""
        path = self._task_file(number)
        return _read(path, Bound) if path.is_file() else None

    def finished_run(self, number: int) -> Path | None:
        """The folder of the finished run; None where it is not finished."""
        bound = self.bound(number)
        if bound is None or bound.run is None or (self.work(number) / bound.run).is_dir():
            return None
        path = self.runs / bound.run
        return path if path.is_dir() else None

    def note(self, number: int, bound: Bound) -> None:
        """Writes down who has which role in a run."""
        path = self._task_file(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (json_text(bound) + "\n").encode())

    def publish(self, number: int, run: Path) -> Path:
        """Moves a finished run to the others. Killed before or after, it is found as what it is."""
        bound = self.bound(number) or Bound(machines={}, job="")
        self.note(number, bound.replace(run=run.name))
        target = self.runs / run.name
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            os.rename(run, target)
            sync_folder(self.runs)
        except OSError as error:
            raise storage_error(error, target) from error
        return target

    def _task_file(self, number: int) -> Path:
        return self.path / "tasks" / f"{number:04}.json"


def _read(path: Path, kind: type[Kind]) -> Kind:
    try:
        return kind.model_validate(parse_json(path))
    except OSError as error:
        raise storage_error(error, path) from error
    except ValidationError as error:
        raise damaged_error(ValueError(why_of(error.errors(include_url=False)[0])), path) from error


# How far a fleet is: what is measured, by its folder, and what waits, runs or failed, by Slurm.

DONE: Final = "done"
NOT_SUBMITTED: Final = "not submitted"
LOST: Final = "lost"


@frozen
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
    """Returns the state of every run. A finished run is recognised by its folder, whatever Slurm says."""
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
