"""One run at a time on a machine: its lock, the queue for it, and the folder in which both lie."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import BusyError, NotReadyError
from nicbench.core.events import Bus, Event, Waiting
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.owner import this_process
from nicbench.stages import machine
from nicbench.tuning.guards import _STORE
from nicbench.tuning.lease import HostLease
from nicbench.tuning.lock import LOCK_NAME, HostLock, Place, is_waited_for, tell_idle
from nicbench.tuning.record import LEASES, QUEUE, Entry, Record, record_path, save_record
from nicbench.tuning.restore import restore, restore_stale
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.base import Undo
from nicbench.tuning.undo.files import RestoreFile
from nicbench.tuning.undo.processes import DeleteNamespace

# One run at a time on a host; a dead holder's run is restored before its lock is taken over.

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


# The queue for this machine: first come, first served; who is dead loses his place. Locks and processes are real.


def test_who_comes_later_is_told_his_place_and_who_is_before_him(tmp_path: Path) -> None:
    first, second, third = (Place(name, tmp_path / "runtime") for name in ("first", "second", "third"))
    first.require_first()
    with pytest.raises(BusyError, match=r": place 3 in the queue, next is run first of .* \(process \d+\)\n"):
        third.require_first()

    first.leave()
    first.leave()
    second.require_first()
    with pytest.raises(BusyError, match=r"place 2 in the queue, next is run second"):
        third.require_first()
    second.leave()
    third.leave()
    assert not (tmp_path / "runtime").exists()


def test_a_dead_one_loses_his_place(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys, time\n"
        "from nicbench.tuning.lock import Place\n"
        "place = Place('dead', pathlib.Path(sys.argv[1]))\n"
        "print('waits', flush=True)\n"
        "time.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    ) as other:
        assert other.stdout.readline() == "waits\n"
        place = Place("next", tmp_path)
        with pytest.raises(BusyError, match="next is run dead"):
            place.require_first()
        other.send_signal(signal.SIGKILL)
    place.require_first()
    place.leave()


async def test_runs_that_wait_get_the_machine_in_the_order_in_which_they_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stay_in(tmp_path, monkeypatch)
    holder = HostLock("holder", tmp_path)
    await holder.take()
    had = []
    said = {}

    async def wait(name: str) -> None:
        async with machine.hold_machines(name, (), _listening(said.setdefault(name, [])), wait_s=60.0):
            had.append(name)

    waiting = []
    for name in ("first", "second", "third", "fourth"):
        waiting.append(asyncio.create_task(wait(name)))
        await asyncio.sleep(0)
    with pytest.raises(BusyError, match="place 5 in the queue, held by holder since"):
        async with machine.hold_machines("hasty", (), Bus()):
            raise AssertionError("it overtook those who wait")
    holder.release()
    await asyncio.gather(*waiting)

    assert had == ["first", "second", "third", "fourth"]
    places = [re.search(r"place \d+ in the queue|in use", text) for text in said["third"]]
    assert [found[0] for found in places if found] == ["place 3 in the queue", "place 2 in the queue"][: len(places)]
    assert all(len(text) < 200 for text in said["third"])


async def test_one_line_says_who_holds_the_machine_and_whether_it_is_idle(tmp_path: Path) -> None:
    holder = HostLock("holder", tmp_path)
    await holder.take()
    ahead, place = Place("ahead", tmp_path), Place("me", tmp_path)
    assert is_waited_for(tmp_path)
    with pytest.raises(BusyError, match=r": place 2 in the queue, held by holder since \d+ s\n"):
        place.require_first()
    tell_idle("another", True, tmp_path)
    tell_idle("holder", True, tmp_path)
    with pytest.raises(BusyError, match=r"held by holder since \d+ s \(idle\)\n"):
        place.require_first()
    tell_idle("holder", False, tmp_path)
    with pytest.raises(BusyError, match=r"since \d+ s\n"):
        place.require_first()
    for each in (ahead, place):
        each.leave()
    assert not is_waited_for(tmp_path)
    holder.release()


def _listening(said: list[str]) -> Bus:
    def hear(event: Event) -> None:
        if isinstance(event, Waiting):
            said.append(event.text)

    bus = Bus()
    bus.subscribe(hear)
    return bus


def _stay_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were /run/nicbench, and without the pause between two looks."""

    async def nothing() -> list[str]:
        return []

    def there(kind: Callable[..., object]) -> Callable[[str], object]:
        return lambda run_id: kind(run_id, folder)

    monkeypatch.setattr(machine, "HostLock", there(HostLock))
    monkeypatch.setattr(machine, "Place", there(Place))
    monkeypatch.setattr(machine, "restore_stale", nothing)
    monkeypatch.setattr(machine, "_try_again_s", lambda: 0.01)


# What root obeys was written by root: modes do not follow the umask, and what others could write is refused.

NOBODY = 65534


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=["umask 000", "umask 022", "umask 077"])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_umask")
async def test_whatever_the_umask_nobody_else_can_write_a_record_or_hold_the_lock(tmp_path: Path) -> None:
    runtime, folder = tmp_path / "runtime", tmp_path / "folder"
    folder.mkdir()
    lock = HostLock("run", runtime)
    await lock.take()
    changes = UndoStack("run", folder, runtime)
    await changes.set_file(FakeHost(files={PAGES: "4"}), PAGES, "8")

    modes = {path.relative_to(tmp_path).as_posix(): _mode(path) for path in (runtime, *runtime.rglob("*"))}
    assert modes == {
        "runtime": 0o700,
        f"runtime/{LOCK_NAME}": 0o600,
        "runtime/run": 0o700,
        "runtime/run/undo.json": 0o600,
    }
    assert _mode(folder / "undo.json") == 0o644
    lock.release()


def test_a_folder_of_an_earlier_version_becomes_its_owners_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / LOCK_NAME).touch(0o644)
    HostLock("run", tmp_path)._open()

    assert (_mode(tmp_path), _mode(tmp_path / LOCK_NAME)) == (0o700, 0o600)


async def _open_record(path: Path) -> None:
    path.chmod(0o666)


async def _open_folder(path: Path) -> None:
    path.parent.chmod(0o777)


async def _open_everything(path: Path) -> None:
    path.parent.parent.chmod(0o777)


async def _give_away(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY)


async def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("spoil", [_open_record, _open_folder, _open_everything, _give_away, _link])
@pytest.mark.parametrize("who", ["restore", "next run", "lock of the dead run", "a lease from elsewhere"])
@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away, which root alone may")
async def test_a_record_that_others_may_have_written_is_refused_and_changes_nothing(
    tmp_path: Path, spoil: object, who: str
) -> None:
    runtime = tmp_path / "runtime"
    host = FakeHost(files={PAGES: "8"})
    path = _plant(runtime, host)
    await spoil(path)  # type: ignore[operator]

    with pytest.raises(NotReadyError) as caught:
        await _obey(who, runtime, host)

    assert host.files[PAGES] == "8"
    said = str(caught.value)
    assert str(runtime) in said
    assert "owner" in said
    assert "mode" in said
    assert "remove it" in said


async def test_a_record_in_the_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    host = FakeHost(files={PAGES: "8"})
    _plant(tmp_path, host).parent.rename(tmp_path / "innocent")
    with pytest.raises(NotReadyError, match="the record of another run, planted"):
        await restore("innocent", tmp_path, lambda _spec: host)


async def test_a_folder_that_a_group_of_all_who_measure_shares_stays_theirs(tmp_path: Path) -> None:
    tmp_path.chmod(0o2770)
    lease = HostLease(LocalHost("far"), "run", None, folder=tmp_path)
    await lease.take()

    assert _mode(tmp_path) == 0o2770
    assert _mode(tmp_path / LOCK_NAME) == 0o660
    await lease.release()


async def test_the_lease_of_another_machine_is_nobody_elses_to_hold(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    lease = HostLease(LocalHost("far"), "run", None, folder=tmp_path)
    await lease.take()

    modes = [_mode(path) for path in (tmp_path, tmp_path / "leases", tmp_path / LOCK_NAME)]
    assert modes == [0o700, 0o700, 0o600]
    await lease.release()


@pytest.mark.parametrize("spoilt", ["runtime", "runtime/run.on.far"])
async def test_no_script_is_laid_on_another_machine_where_others_could_change_it(tmp_path: Path, spoilt: str) -> None:
    folder = tmp_path / "runtime" / "run.on.far"
    store = ("sh", "-c", _STORE, "store", str(folder / "undo.sh"))
    assert (await LocalHost("far").run(store, input_text="true\n")).status == 0
    assert (_mode(folder), _mode(folder / "undo.sh")) == (0o700, 0o600)

    (tmp_path / spoilt).chmod(0o777)
    done = await LocalHost("far").run(store, input_text="evil\n", check=False)
    assert done.status == 1
    assert "mode 777" in done.stderr
    assert (folder / "undo.sh").read_text() == "true\n"


@pytest.mark.parametrize("begun", [[], [".undo.json.4194305"]], ids=["an empty folder", "a record that was begun"])
async def test_what_a_run_left_that_was_killed_while_it_wrote_its_first_record_is_removed(
    tmp_path: Path, begun: list[str]
) -> None:
    folder = tmp_path / "runtime" / "run"
    for by_name in (True, False):
        folder.mkdir(parents=True)
        for name in begun:
            (folder / name).write_text('{"format": 1, "run')
        (sentence,) = await (restore("run", folder.parent) if by_name else restore_stale(folder.parent))
        assert sentence.startswith("run: was killed before its first change")
        assert not folder.parent.exists()


async def test_the_folders_of_leases_and_of_the_queue_are_no_runs(tmp_path: Path) -> None:
    for name in (LEASES, QUEUE):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o770)
    assert await restore_stale(tmp_path) == []
    assert {path.name for path in tmp_path.iterdir()} == {LEASES, QUEUE}


async def test_a_record_that_somebody_is_writing_is_left_to_him(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f".undo.json.{os.getpid()}").touch()
    assert await restore_stale(tmp_path) == []
    assert (tmp_path / "run" / f".undo.json.{os.getpid()}").exists()


async def _obey(who: str, runtime: Path, host: FakeHost) -> None:
    match who:
        case "restore":
            await restore("planted", runtime, lambda _spec: host)
        case "next run":
            await restore_stale(runtime, lambda _spec: host)
        case "lock of the dead run":
            await HostLock("next", runtime, lambda _spec: host).take()
        case _:
            await HostLease(LocalHost("far"), "next", None, folder=runtime).take()


def _plant(runtime: Path, host: FakeHost) -> Path:
    """As a dead run leaves it, with its lock."""
    owner = this_process().replace(start_ticks=1)
    entry = Entry(host=host.spec(), undo=RestoreFile(path=PAGES, old="4", new="8"))
    path = record_path(runtime, "planted")
    save_record(Record(run_id="planted", owner=owner, run_folder=None, started="now", entries=(entry,)), path)
    (runtime / LOCK_NAME).write_text(f'{{"run_id": "planted", "owner": {owner.model_dump_json()}}}')
    return path


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
