"""The jobs of a fleet: submitted from its file, executed on the machines that Slurm gave, and features of a machine."""

from __future__ import annotations

import math
import os
import re
import secrets
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from nicbench import __version__
from nicbench.bench_file.reader import read
from nicbench.core.errors import BusyError, HostError, NicbenchError, NotReadyError, UsageError
from nicbench.core.frozen import frozen
from nicbench.first_steps.ports import FoundPort, Neighbour, find_neighbours, free_ports, ports_of_this_machine
from nicbench.fleet import slurm
from nicbench.fleet.folder import FLEET, FORMAT, MANIFEST, Array, Bound, FleetFolder, Manifest, Task
from nicbench.fleet.model import Fleet, bind_tree, check_cell, read_fleet, tree_of, write_tree
from nicbench.fleet.slurm import Machine, bind_given, constraint_of
from nicbench.stages.hosts import THIS_MACHINE, inventory_of
from nicbench.store.files import json_text, make_folder, sync_folder, write_atomically
from nicbench.store.folder import RunFolder, is_run_folder

# From a fleet file to jobs: every combination is checked, the manifest is written, and only then Slurm is asked.

_SAFETY: Final = 1.5
_BESIDE_S: Final = 120.0
"""Time in addition to its plan: for setting machines up, undoing, and the report."""


def plan_fleet(fleet: Fleet, machines: Sequence[Machine], largest_array: int) -> tuple[Manifest, dict[str, str]]:
    """What is to be submitted, and the text of each bench file by its name. Touches nothing.

    UsageError names the first combination that is wrong, or that no machines of the cluster can have.
    """
    file, identity = fleet.file, f"{fleet.path.stem}-{secrets.token_hex(4)}"
    tasks: list[Task] = []
    names: dict[str, str] = {}  # of bench files, by their texts
    estimates = {}  # combinations that differ in features alone are checked once
    groups: dict[tuple[str, int], list[int]] = {}  # by constraint, and by the numbers that one array can have
    for cell in fleet.cells():
        roles = {role: cell.features_of(features) for role, features in file.roles.items()}
        constraint = constraint_of(roles, machines, file.joined_by, f"{fleet.path}, {cell}")
        able = {role: tuple(one.name for one in machines if needed <= one.features) for role, needed in roles.items()}
        text = write_tree(tree_of(fleet, cell))
        if (key := (text, *able.items())) not in estimates:
            estimates[key] = check_cell(fleet, cell, able)
        name = names.setdefault(text, f"benches/{len(names):03}.yaml")
        for repeat in range(1, file.repeat + 1):
            groups.setdefault((constraint, len(tasks) // largest_array), []).append(len(tasks))
            tasks.append(
                Task(
                    number=len(tasks),
                    values=cell.values,
                    repeat=repeat,
                    bench=name,
                    roles={role: tuple(sorted(features)) for role, features in roles.items()},
                    estimate_s=estimates[key],
                )
            )
    arrays = tuple(
        Array(
            name=f"{identity}.{number}",
            first=part * largest_array,
            numbers=tuple(numbers),
            nodes=len(file.roles),
            constraint=constraint,
            limit_min=math.ceil((file.time_limit or _limit_s([tasks[number] for number in numbers])) / 60.0),
        )
        for number, ((constraint, part), numbers) in enumerate(groups.items())
    )
    given = {"qos": file.priority, "partition": file.partition, "account": file.account}
    manifest = Manifest(
        format=FORMAT,
        fleet=identity,
        nicbench=__version__,
        made=datetime.now(UTC),
        joined_by=file.joined_by,
        options={option: value for option, value in given.items() if value is not None},
        tasks=tuple(tasks),
        arrays=arrays,
    )
    return manifest, {name: text for text, name in names.items()}


def make_fleet(fleet: Fleet, manifest: Manifest, texts: Mapping[str, str], parent: Path) -> FleetFolder:
    """Writes the folder of a fleet, the manifest last."""
    path = parent / manifest.fleet
    for name in ("benches", "logs", "runs", "tasks", "work"):
        make_folder(path / name)
    for name, text in texts.items():
        write_atomically(path / name, text.encode())
    write_atomically(path / FLEET, fleet.path.read_bytes())
    write_atomically(path / MANIFEST, (json_text(manifest) + "\n").encode())
    sync_folder(path)
    return FleetFolder(path.resolve())


def submit(folder: FleetFolder, alive: set[int]) -> int:
    """Submits what has no result and neither waits nor runs (``alive``); gives the number of runs submitted."""
    manifest, submitted = folder.manifest, 0
    for array in manifest.arrays:
        missing = [n for n in array.numbers if n not in alive and folder.finished_run(n) is None]
        if not missing:
            continue
        numbers = [number - array.first for number in missing]
        log = str(folder.path / "logs" / f"{array.name}-%a.log")
        command = slurm.submit_command(
            array.name, numbers, array.nodes, array.constraint, array.limit_min, log, manifest.options
        )
        slurm.call((*command, f"--chdir={folder.path}"), _script(folder, array))
        submitted += len(missing)
    return submitted


def _script(folder: FleetFolder, array: Array) -> str:
    """What a job runs. Each machine of the cluster has nicbench where this one has it."""
    call = shlex.join((sys.executable, "-m", "nicbench", "fleet", "exec", str(folder.path)))
    return f'#!/bin/sh\nexec {call} "$((SLURM_ARRAY_TASK_ID + {array.first}))"\n'


def _limit_s(tasks: Sequence[Task]) -> float:
    return max(task.estimate_s for task in tasks) * _SAFETY + _BESIDE_S


# Within a job: which machine has which role, what is measured on them, and where the run goes when it is done.

MOST_ATTEMPTS: Final = {NotReadyError: 100, HostError: 3}
"""How often Slurm is asked to try a run again: where somebody else has a machine, and where a machine failed."""


@frozen
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
    """Moves a run that measured everything to the finished ones; None if it does not exist or is not finished."""
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
    """Renames a run that was measured on other machines, so that it is kept."""
    if not folder.is_dir():
        return
    attempt = 1
    while (aside := folder.with_name(f"{folder.name}.{attempt}")).exists():
        attempt += 1
    folder.rename(aside)


# What Slurm is told of a machine: its cards, drivers, speeds and kernel, and the cables to other machines.

_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9_.+-]+")
_BRACKETS: Final = re.compile(r"\[([^\]]+)\]")


async def collect_features(name: str, cables_s: float) -> list[str]:
    """The features of this machine, which others know as ``name``; changes nothing.

    With ``cables_s`` every free port that is up sends test frames for that number of seconds, and hears those of the
    ports of other machines that do the same at that time. NotReadyError without the right to do so.
    """
    ports = await ports_of_this_machine()
    facts = (await inventory_of(None, redact=False))[THIS_MACHINE]
    heard = find_neighbours([port.name for port in free_ports(ports) if port.is_up], name, cables_s) if cables_s else ()
    return features_of(name, facts, ports, heard)


def features_of(
    name: str, facts: Mapping[str, Any], ports: Iterable[FoundPort], heard: Iterable[Neighbour]
) -> list[str]:
    """The features of a machine, from its inventory, its ports, and the ports that it hears. Pure.

    Ports that lead out of the machine count for nothing: no test may use them.
    """
    usable = [port for port in ports if port.never is None]
    adapters = facts.get("pci_adapters") or {}
    found: dict[str, list[str | None]] = {
        "kernel": _kernels(facts),
        "card": [_card(adapters[port.bus]) for port in usable if port.bus in adapters],
        "driver": [port.driver for port in usable],
        "speed": [f"{port.speed_bits_per_s / 1e9:g}g" for port in usable if port.speed_bits_per_s],
        "cable": [
            *(_cable(f"{name}.{one.device}", f"{one.machine}.{one.port}") for one in heard),
            *(
                _cable(f"{name}.{port.name}", port.neighbour.replace(", port ", "."))
                for port in usable
                if port.neighbour
            ),
        ],
    }
    return [
        f"{feature}={value}"
        for feature, values in found.items()
        for value in dict.fromkeys(map(_as_value, values))
        if value
    ]


def _kernels(facts: Mapping[str, Any]) -> list[str | None]:
    """The release, and its version alone: ``6.12.8-amd64`` and ``6.12``."""
    release = str((facts.get("kernel") or {}).get("release") or "")
    version = re.match(r"\d+\.\d+", release)
    return [release, *([version[0]] if version else [])]


def _card(adapter: Mapping[str, Any]) -> str | None:
    """Returns the common name of a card, which PCI's list has in brackets: ``MT27800 Family [ConnectX-5]``."""
    model = adapter.get("model") or adapter.get("id")
    named = _BRACKETS.search(str(model or ""))
    return named[1] if named else model


def _cable(one: str, other: str) -> str:
    """The same name for both ends of a cable."""
    return "--".join(sorted((one, other)))


def _as_value(text: str | None) -> str:
    return _NOT_ALLOWED.sub("-", text or "").strip("-").lower()
