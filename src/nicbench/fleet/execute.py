"""Within a job: which machine has which role, what is measured on them, and where the run goes when it is done."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nicbench.bench_file.reader import read
from nicbench.core.errors import BusyError, HostError, NicbenchError, NotReadyError, UsageError
from nicbench.fleet import slurm
from nicbench.fleet.benches import bind_tree, write_tree
from nicbench.fleet.folder import FLEET, Bound, FleetFolder, Task
from nicbench.fleet.machines import bind_given
from nicbench.fleet.model import read_fleet
from nicbench.store.files import make_folder, write_atomically
from nicbench.store.folder import RunFolder, is_run_folder

MOST_ATTEMPTS: Final = {NotReadyError: 100, HostError: 3}
"""How often Slurm is asked to try a run again: where somebody else has a machine, and where a machine failed."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a job is to do: measure ``bench`` in ``folder``, or go on with the interrupted run ``begun``."""

    task: Task
    folder: Path
    bench: Path
    begun: Path | None


def prepare(fleet: FleetFolder, number: int, environment: Mapping[str, str] = os.environ) -> Work | None:
    """Binds the roles to the machines of this job and writes the bench file; None where the run is finished already.

    An interrupted run goes on where the job has the machines that the run had. On others it begins anew, and what was
    measured is put aside. UsageError outside of a job.
    """
    manifest = fleet.manifest
    if number >= len(manifest.tasks):
        raise UsageError(
            f"there is no run {number}", place=str(fleet.path), next_step=f"they go from 0 to {len(manifest.tasks) - 1}"
        )
    task, folder = manifest.tasks[number], fleet.work(number)
    if fleet.finished_run(number) is not None or publish_finished(fleet, number):
        return None
    if "SLURM_JOB_NODELIST" not in environment:
        step = "`nicbench fleet submit` has Slurm call this, on machines of its choice"
        raise UsageError("this is no job of Slurm: SLURM_JOB_NODELIST is not set", next_step=step)
    machines = slurm.list_machines(slurm.list_names(environment["SLURM_JOB_NODELIST"]))
    roles = {role: frozenset(features) for role, features in task.roles.items()}
    bound = bind_given(roles, machines, manifest.joined_by)
    nodes = {role: machine.name for role, machine in bound.items()}
    here = environment.get("SLURMD_NODENAME")
    addresses = {role: None if one.name == here else one.address for role, one in bound.items()}
    source = fleet.path / task.bench
    text = write_tree(
        bind_tree(read(source.read_bytes(), str(source)), read_fleet(fleet.path / FLEET), addresses, nodes)
    )
    before = fleet.bound(number)
    if before is not None and before.machines != nodes:
        _put_aside(folder)
    make_folder(folder)
    begun = _begun(folder)
    fleet.note(number, Bound(machines=nodes, job=environment.get("SLURM_JOB_ID", ""), run=begun and begun.name))
    bench = folder / "bench.yaml"
    write_atomically(bench, text.encode())
    return Work(task, folder, bench, begun)


def publish_finished(fleet: FleetFolder, number: int) -> Path | None:
    """Moves a run that measured everything to the finished ones; None where there is none, or it is not finished."""
    run = _begun(fleet.work(number))
    if run is None:
        return None
    folder = RunFolder.open(run)
    return fleet.publish(number, run) if folder.finished and folder.journal.is_complete else None


def try_again(error: NicbenchError, environment: Mapping[str, str] = os.environ) -> NicbenchError:
    """The error with which the job ends, so that Slurm tries it again (``RequeueExit=3``) where that may help."""
    restarts = int(environment.get("SLURM_RESTART_COUNT", "0"))
    for kind, most in MOST_ATTEMPTS.items():
        if isinstance(error, kind):
            if restarts < most:
                return BusyError(
                    error.message, place=error.place, next_step=f"Slurm tries it again, {most - restarts} times at most"
                )
            return HostError(
                f"{error.message}; it was tried {restarts + 1} times", place=error.place, next_step=error.next_step
            )
    return error


def _begun(folder: Path) -> Path | None:
    """The run in a work folder; None where none was begun."""
    runs = sorted(each for each in folder.iterdir() if is_run_folder(each)) if folder.is_dir() else []
    return runs[-1] if runs else None


def _put_aside(folder: Path) -> None:
    """Keeps what was measured on other machines, beside what is measured now."""
    if not folder.is_dir():
        return
    attempt = 1
    while (aside := folder.with_name(f"{folder.name}.{attempt}")).exists():
        attempt += 1
    folder.rename(aside)
