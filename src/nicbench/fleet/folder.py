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
from nicbench.store.files import damaged_error, json_text, storage_error, sync_folder, write_atomically
from nicbench.store.reading import parse_json

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
        """Opens the folder of a fleet. UsageError where it is none."""
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
