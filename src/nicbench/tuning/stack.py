"""The undo stack of a run: written down, flushed, before each change; undone in reverse."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.hosts import host_from_spec
from nicbench.hosts.base import Host
from nicbench.hosts.owner import this_process
from nicbench.tuning.changes import Changes, by_others
from nicbench.tuning.guards import Guards, forget, stand_down
from nicbench.tuning.record import (
    PUBLIC_FILE,
    RECORD_NAME,
    RUNTIME_FOLDER,
    Entry,
    Record,
    forget_record,
    make_run_folder,
    make_runtime_folder,
    record_path,
    save_record,
    undo_entries,
)
from nicbench.tuning.setting import plain_value, same_value
from nicbench.tuning.undo.base import Undo
from nicbench.tuning.undo.files import RestoreFile


class UndoStack(Changes):
    """Keeps undo.json in the run folder and in /run/nicbench/RUN; the second is removed when all was undone.

    Nothing is written before the first change, so that a run which changes nothing needs no root.
    """

    def __init__(self, run_id: str, folder: Path | None, runtime: Path = RUNTIME_FOLDER) -> None:
        self.run_id = run_id
        self._runtime_path = record_path(runtime, run_id)
        self._runtime = str(runtime)
        self._guards = Guards(self._runtime)
        self._folder_path = None if folder is None else folder / RECORD_NAME
        self._hosts: dict[str, Host] = {}
        self._ends: list[Callable[[], Awaitable[None]]] = []
        self._afterwards: list[Callable[[], Awaitable[None]]] = []
        self._record = Record(
            run_id=run_id,
            owner=this_process(),
            run_folder=None if folder is None else str(folder.absolute()),
            started=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every change so far, for tuning.json and the report."""
        return self._record.entries

    async def make(self, host: Host, undo: Undo, apply: Callable[[], Awaitable[None]] = by_others) -> None:
        spec = host.spec()
        self._hosts[_key(spec)] = host
        if not self._record.entries:
            self._claim()
        entries = (*self._record.entries, Entry(host=spec, undo=undo))
        self._record = self._record.replace(entries=entries)
        self._save(self._record)
        await self._guards.store_undo(self._record, host, undo)
        try:
            await apply()
        except BaseException:
            with contextlib.suppress(NicbenchError):
                await self._guards.confirm_undo(self._record, host, undo)
            raise
        await self._guards.confirm_undo(self._record, host, undo)

    async def set_file(self, host: Host, path: str, value: str) -> None:
        before = await host.read_file(path)
        if before is None:
            raise HostError(f"{path} does not exist", place=host.name)
        if same_value(path, before, value):
            return
        old = plain_value(before)
        await self.make(host, RestoreFile(path=path, old=old, new=value), lambda: host.write_file(path, value))
        after = await host.read_file(path)
        if after is None or not same_value(path, after, value):
            # The kernel took it and made something else of it; a later undo would think that somebody else did.
            await host.write_file(path, old)
            raise HostError(
                f"{path} was set to {value!r} and reads {plain_value(after or '')!r}; put back to {old!r}",
                place=host.name,
            )

    def before_undoing(self, end: Callable[[], Awaitable[None]]) -> None:
        self._ends.append(end)

    def after_undoing(self, tell: Callable[[], Awaitable[None]]) -> None:
        """Has ``tell`` called once everything was undone, with ``entries`` as they are then."""
        self._afterwards.append(tell)

    async def undo_all(self) -> list[str]:
        """Goes through to the end even when cancelled meanwhile (a second Ctrl-C); then the cancellation passes."""
        task = asyncio.ensure_future(self._undo_all())
        cancelled = False
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                cancelled = True
        if cancelled:
            raise asyncio.CancelledError
        return task.result()

    async def keep(self) -> None:
        """Lets the changes outlive this process (``nicbench lab up``); ``restore`` undoes them."""
        self._record = self._record.replace(kept=True)
        self._save(self._record)
        await self._guards.keep(self._record)

    async def _undo_all(self) -> list[str]:
        troubles = await _call_all(self._ends)
        if self._record.entries:
            hosts = [self._host_of(entry.host) for entry in self._record.entries if not entry.done]
            troubles.extend(await stand_down(self.run_id, hosts, self._runtime))
            self._record, more = await undo_entries(self._record, self._host_of, self._save_while_undoing)
            troubles.extend(more)
            if self._record.settled:
                await forget(self.run_id, hosts, self._runtime)
                forget_record(self._runtime_path)
            self._guards = Guards(self._runtime)
        return [*troubles, *await _call_all(self._afterwards)]

    def _host_of(self, spec: dict[str, Any]) -> Host:
        return self._hosts.get(_key(spec)) or host_from_spec(spec)

    def _claim(self) -> None:
        """The folder under /run belongs to one process; what a dead one left there must be undone first."""
        try:
            make_runtime_folder(self._runtime_path.parent.parent)
            make_run_folder(self._runtime_path.parent)
        except PermissionError as error:
            raise NotReadyError(
                "changing this machine needs root", place=str(self._runtime_path.parent), next_step="run it with sudo"
            ) from error
        if self._runtime_path.exists():
            raise NotReadyError(
                "changes of an earlier process are not undone yet",
                place=str(self._runtime_path),
                next_step=f"nicbench restore {self.run_id}",
            )

    def _save(self, record: Record) -> None:
        try:
            save_record(record, self._runtime_path)
        except PermissionError as error:
            raise NotReadyError(
                "changing this machine needs root", place=str(self._runtime_path), next_step="run it with sudo"
            ) from error
        if self._folder_path is not None:
            save_record(record, self._folder_path, PUBLIC_FILE)

    def _save_while_undoing(self, record: Record) -> None:
        # A full disk must not keep the machine changed. What stays on record as not undone is undone twice, which does
        # nothing more.
        with contextlib.suppress(OSError):
            save_record(record, self._runtime_path)
        if self._folder_path is not None and self._folder_path.parent.is_dir():
            with contextlib.suppress(OSError):
                save_record(record, self._folder_path, PUBLIC_FILE)


async def _call_all(callbacks: list[Callable[[], Awaitable[None]]]) -> list[str]:
    """Ends the last first, each once; a failure is reported, and stops neither the others nor the undo."""
    troubles = []
    while callbacks:
        try:
            await callbacks.pop()()
        except Exception as error:
            reason = error.message if isinstance(error, NicbenchError) else f"{type(error).__name__}: {error}"
            troubles.append(f"while undoing, something else failed: {reason}")
    return troubles


def _key(spec: dict[str, Any]) -> str:
    return json.dumps(spec, sort_keys=True)
