"""Cleaning up after a run whose process is gone: `nicbench restore RUN`, and the next run or `lab up`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nicbench.core.errors import NotReadyError, UsageError
from nicbench.core.lists import without_none
from nicbench.hosts import host_from_spec
from nicbench.hosts.base import Host
from nicbench.hosts.owner import boot_id
from nicbench.tuning.guards import forget, has_rebooted, is_guarded, stand_down
from nicbench.tuning.record import (
    LEASES,
    QUEUE,
    RUNTIME_FOLDER,
    Entry,
    Record,
    forget_begun,
    forget_record,
    load_record,
    record_path,
    refuse_strangers,
    save_record,
    undo_entries,
)

MakeHost = Callable[[dict[str, Any]], Host]


async def restore(run: str, runtime: Path = RUNTIME_FOLDER, make_host: MakeHost = host_from_spec) -> list[str]:
    """Undoes what the run of this id, or of this run folder, left; says what it did, in sentences.

    Its parts, whose names go on after its own, are undone before it. The record under /run/nicbench is the one that
    counts: it is root's own. The one in the run folder only discloses, so that a folder from a stranger cannot make
    root delete anything. NotReadyError where the run is still going on.
    """
    run_id = run_id_of(run)
    said = []
    for name in _names(runtime):
        if name.startswith(f"{run_id}-"):
            said.extend(await _restore_part(name, runtime, make_host))
    return [*said, *await _restore_part(run_id, runtime, make_host)]


async def _restore_part(run_id: str, runtime: Path, make_host: MakeHost) -> list[str]:
    record = _load(runtime, run_id)
    if record is None:
        return [_forget_begun(runtime, run_id) or f"{run_id}: nothing to undo"]
    if record.owner.is_alive and not record.kept:
        raise NotReadyError(
            f"the run is still going on (process {record.owner.pid})",
            place=run_id,
            next_step=f"end it first: kill {record.owner.pid}; it undoes its changes itself",
        )
    return await _restore_record(record, runtime, make_host)


async def restore_stale(runtime: Path = RUNTIME_FOLDER, make_host: MakeHost = host_from_spec) -> list[str]:
    """Undoes what dead runs left on this machine; labs that were made to stay (``lab up``) stay. Says what it did."""
    said = [sentence for name in _names(runtime) if (sentence := _forget_begun(runtime, name)) is not None]
    for record in read_records(runtime):
        if not record.owner.is_alive and not _is_to_stay(record):
            said.extend(await _restore_record(record, runtime, make_host))
    return said


def find_kept_runs(runtime: Path = RUNTIME_FOLDER) -> list[str]:
    """Labs that stay until ``nicbench lab down``."""
    return [record.run_id for record in read_records(runtime) if _is_to_stay(record)]


def find_unrestored_runs(runtime: Path = RUNTIME_FOLDER) -> list[str]:
    """Runs that are dead and whose changes are not undone."""
    records = read_records(runtime)
    return [record.run_id for record in records if not record.owner.is_alive and not _is_to_stay(record)]


def read_records(runtime: Path = RUNTIME_FOLDER) -> list[Record]:
    """Every record of changes on this machine, the latest first."""
    loaded = (_load(runtime, name) for name in _names(runtime))
    return without_none(loaded)


def _is_to_stay(record: Record) -> bool:
    """Whether the record is of a lab that was made to stay and whose namespaces still exist; they end with a boot."""
    return record.kept and record.owner.boot_id == boot_id()


def _names(runtime: Path) -> list[str]:
    """The runs with a record, the latest first: what was changed last is undone first."""
    try:
        found = sorted((entry.name for entry in runtime.iterdir() if entry.is_dir()), reverse=True)
        return [name for name in found if name not in (LEASES, QUEUE)]
    except FileNotFoundError:
        return []
    except PermissionError as error:
        raise NotReadyError("may not be read", place=str(runtime), next_step="run this with sudo") from error


def _load(runtime: Path, run_id: str) -> Record | None:
    """The record of a run, which nobody else may have written; NotReadyError where somebody may."""
    refuse_strangers(runtime, group_may_write=True)
    path = record_path(runtime, run_id)
    record = load_record(path)
    if record is not None and record.run_id != run_id:
        step = "undo by hand what it names, then remove its folder"
        raise NotReadyError(f"is the record of another run, {record.run_id}", place=str(path), next_step=step)
    return record


def _forget_begun(runtime: Path, run_id: str) -> str | None:
    path = record_path(runtime, run_id)
    if path.exists() or not forget_begun(path):
        return None
    forget_record(path)
    return f"{run_id}: was killed before its first change; what it had begun to write was removed"


def run_id_of(run: str) -> str:
    """A run folder's name is the run's id."""
    name = Path(run).resolve().name if "/" in run or run in (".", "..") else run
    if not name:
        raise UsageError(f"{run!r} names no run", next_step="give a run folder, or a name under /run/nicbench")
    return name


async def _restore_record(record: Record, runtime: Path, make_host: MakeHost) -> list[str]:
    path = record_path(runtime, record.run_id)
    if not os.access(path.parent, os.W_OK):
        raise NotReadyError("undoing its changes needs root", place=record.run_id, next_step="run this with sudo")
    if record.owner.boot_id != boot_id():
        record = record.replace(entries=await _outlasting_entries(record, runtime, make_host))
        if not record.entries:
            forget_record(path)
            why = (
                "every machine that it changed has rebooted since, so there is nothing to undo; its record was removed"
            )
            return [f"{record.run_id}: {why}"]
    pending = sum(not entry.done for entry in record.entries)
    hosts = [make_host(entry.host) for entry in record.entries if not entry.done]
    said = await stand_down(record.run_id, hosts, str(runtime))
    record, troubles = await undo_entries(record, make_host, lambda updated: save_record(updated, path))
    troubles = [*said, *troubles]
    if record.settled:
        await forget(record.run_id, hosts, str(runtime))
        forget_record(path)
        why = "" if record.kept else " that it had left"
        return [f"{record.run_id}: undid {_changes(pending)}{why}", *troubles]
    left = sum(not entry.done for entry in record.entries)
    return [f"{record.run_id}: undid {pending - left} of {_changes(pending)}; the record stays at {path}", *troubles]


async def _outlasting_entries(record: Record, runtime: Path, make_host: MakeHost) -> tuple[Entry, ...]:
    """The changes that a reboot of this machine has not ended: those on other machines, unless these rebooted too.

    Namespaces, links and sysctls end with the boot of their machine; undoing them later would undo somebody else's.
    """
    outlasting = []
    for entry in record.entries:
        machine = make_host(entry.host).machine
        if entry.undo.outlasts_reboot or (
            is_guarded(machine) and not await has_rebooted(record.run_id, machine, str(runtime))
        ):
            outlasting.append(entry)
    return tuple(outlasting)


def _changes(number: int) -> str:
    return f"{number} change" if number == 1 else f"{number} changes"
