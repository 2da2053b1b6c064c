"""From a fleet file to jobs: every combination is checked, the manifest is written, and only then Slurm is asked."""

from __future__ import annotations

import math
import secrets
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from nicbench import __version__
from nicbench.fleet import slurm
from nicbench.fleet.benches import check_cell, tree_of, write_tree
from nicbench.fleet.folder import FLEET, FORMAT, MANIFEST, Array, FleetFolder, Manifest, Task
from nicbench.fleet.machines import Machine, constraint_of
from nicbench.fleet.model import Fleet
from nicbench.store.files import json_text, make_folder, sync_folder, write_atomically

_SAFETY: Final = 1.5
_BESIDE_S: Final = 120.0
"""Besides its plan: setting machines up, undoing, and the report."""


def plan_fleet(fleet: Fleet, machines: Sequence[Machine], largest_array: int) -> tuple[Manifest, dict[str, str]]:
    """What is to be submitted, and the text of each bench file by its name. Touches nothing.

    UsageError names the first combination that is wrong, or that no machines of the cluster can have.
    """
    file, identity = fleet.file, f"{fleet.path.stem}-{secrets.token_hex(4)}"
    tasks: list[Task] = []
    names: dict[str, str] = {}  # of bench files, by their texts
    estimates: dict[tuple[object, ...], float] = {}  # combinations that differ in features alone are checked once
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
