"""One run at a time on a host; a dead holder's run is restored before its lock is taken over."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import BusyError, NotReadyError
from nicbench.hosts.owner import this_process
from nicbench.tuning.lock import LOCK_NAME, HostLock
from nicbench.tuning.record import Entry, Record, record_path, save_record
from nicbench.tuning.undo.base import Undo
from nicbench.tuning.undo.files import RestoreFile
from nicbench.tuning.undo.processes import DeleteNamespace

PAGES = "/proc/sys/vm/nr_hugepages"


async def test_a_lock_that_is_held_names_its_holder(tmp_path: Path) -> None:
    first = HostLock("first", tmp_path)
    await first.take()
    with pytest.raises(BusyError) as caught:
        await HostLock("second", tmp_path).take()

    assert re.search(rf"run first of .+@.+ \(process {os.getpid()}\) holds the whole machine", str(caught.value))
    assert f"kill {os.getpid()}" in (caught.value.next_step or "")
    first.release()


async def test_a_lock_that_was_given_back_is_free_and_leaves_nothing(tmp_path: Path) -> None:
    lock = HostLock("first", tmp_path / "runtime")
    await lock.take()
    lock.release()
    lock.release()
    assert not (tmp_path / "runtime").exists()

    again = HostLock("second", tmp_path / "runtime")
    assert await again.take() == []
    again.release()


async def test_the_lock_of_a_dead_run_is_taken_after_its_changes_were_undone(tmp_path: Path) -> None:
    host = FakeHost(files={PAGES: "8"})
    _die_holding(tmp_path, host, RestoreFile(path=PAGES, old="4", new="8"))
    lock = HostLock("next", tmp_path, lambda _spec: host)

    assert await lock.take() == ["dead: undid 1 change that it had left"]
    assert host.files[PAGES] == "4"
    lock.release()


async def test_a_dead_run_that_cannot_be_undone_keeps_the_lock(tmp_path: Path) -> None:
    host = FakeHost()  # its `test -e` says of every namespace that it is there, for ever
    _die_holding(tmp_path, host, DeleteNamespace(namespace="stuck"))
    with pytest.raises(NotReadyError, match="stuck"):
        await HostLock("next", tmp_path, lambda _spec: host).take()
    with pytest.raises(NotReadyError, match="stuck"):
        await HostLock("next", tmp_path, lambda _spec: host).take()


def _die_holding(runtime: Path, host: FakeHost, undo: Undo) -> None:
    """As a killed process leaves it: the file with its name, unlocked, and the record."""
    owner = this_process().replace(start_ticks=1)
    record = Record(
        run_id="dead", owner=owner, run_folder=None, started="now", entries=(Entry(host=host.spec(), undo=undo),)
    )
    save_record(record, record_path(runtime, "dead"))
    (runtime / LOCK_NAME).write_text(f'{{"run_id": "dead", "owner": {owner.model_dump_json()}}}')
