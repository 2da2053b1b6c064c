"""The undo stack of a run, and restoring after one that was killed."""

from __future__ import annotations

import asyncio
import errno
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.owner import Owner, start_ticks, start_ticks_of_stat, this_process
from nicbench.tuning.guards import folder_of
from nicbench.tuning.record import RECORD_NAME, Entry, Record, load_record, record_path, save_record
from nicbench.tuning.restore import find_kept_runs, find_unrestored_runs, restore, restore_stale
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.files import RestoreFile
from nicbench.tuning.undo.network import DeleteIpObject, DeleteLink
from nicbench.tuning.undo.processes import DeleteNamespace

# The undo stack: written down before each change, undone in reverse, never over somebody else's value.

FORWARD = "/proc/sys/net/ipv4/ip_forward"
PAGES = "/proc/sys/vm/nr_hugepages"


@pytest.fixture
def stack(tmp_path: Path) -> UndoStack:
    (tmp_path / "folder").mkdir()
    return UndoStack("run", tmp_path / "folder", tmp_path / "runtime")


@pytest.fixture
def host() -> FakeHost:
    return FakeHost(files={FORWARD: "0\n", PAGES: "4\n"})


async def test_the_undo_is_on_disk_in_both_places_before_the_change(
    stack: UndoStack, host: FakeHost, tmp_path: Path
) -> None:
    seen = []

    async def apply() -> None:
        for path in (record_path(tmp_path / "runtime", "run"), tmp_path / "folder" / "undo.json"):
            record = load_record(path)
            seen.append(record.entries[-1].undo)

    undo = RestoreFile(path=PAGES, old="4", new="8")
    await stack.make(host, undo, apply)
    assert seen == [undo, undo]


async def test_values_are_set_and_put_back_in_reverse_order(stack: UndoStack, host: FakeHost, tmp_path: Path) -> None:
    await stack.set_file(host, FORWARD, "1")
    await stack.set_file(host, PAGES, "8")
    assert host.files == {FORWARD: "1", PAGES: "8"}

    assert await stack.undo_all() == []
    assert host.writes[2:] == [(PAGES, "4"), (FORWARD, "0")]
    assert not (tmp_path / "runtime").exists()
    assert all(entry.done for entry in stack.entries)


async def test_undoing_twice_does_nothing_more(stack: UndoStack, host: FakeHost) -> None:
    await stack.set_file(host, FORWARD, "1")
    await stack.undo_all()
    host.files[FORWARD] = "1"  # somebody wants it so, now that the run is over

    assert await stack.undo_all() == []
    assert host.files[FORWARD] == "1"


async def test_what_is_changed_after_an_undo_is_written_down_and_undone_again(
    stack: UndoStack, host: FakeHost, tmp_path: Path
) -> None:
    """Each turn of a run changes the machine, and undoes it before the next."""
    runtime = record_path(tmp_path / "runtime", "run")
    for _ in range(2):
        await stack.set_file(host, FORWARD, "1")
        record = load_record(runtime)
        assert [entry.done for entry in record.entries][-1] is False
        assert sum(not entry.done for entry in record.entries) == 1, "what a crash would leave to `restore`"
        assert await stack.undo_all() == []
        assert host.files[FORWARD] == "0"
        assert not runtime.exists()


async def test_a_value_that_holds_already_is_neither_written_nor_undone(stack: UndoStack, host: FakeHost) -> None:
    await stack.set_file(host, FORWARD, "0")

    assert (host.writes, stack.entries) == ([], ())


async def test_a_value_changed_by_somebody_else_is_left_alone_and_reported(stack: UndoStack, host: FakeHost) -> None:
    await stack.set_file(host, PAGES, "8")
    host.files[PAGES] = "64\n"

    (trouble,) = await stack.undo_all()
    assert host.files[PAGES] == "64\n"
    assert "somebody changed it" in trouble
    assert "'4'" in trouble, "the value before the run is named"


async def test_a_value_that_the_kernel_does_not_take_as_written_is_put_back_at_once(
    stack: UndoStack, host: FakeHost
) -> None:
    host.write_filter = lambda _path, text: "6\n" if text == "1000" else text
    with pytest.raises(HostError, match="reads '6'"):
        await stack.set_file(host, PAGES, "1000")

    assert host.files[PAGES] == "4"
    assert await stack.undo_all() == []


async def test_a_change_that_fails_is_still_undone(stack: UndoStack, host: FakeHost) -> None:
    async def half() -> None:
        host.files[PAGES] = "8"
        raise HostError("broke in the middle")

    with pytest.raises(HostError):
        await stack.make(host, RestoreFile(path=PAGES, old="4", new="8"), half)

    assert await stack.undo_all() == []
    assert host.files[PAGES] == "4"


async def test_one_undo_that_fails_does_not_keep_the_others_from_being_done(
    stack: UndoStack, host: FakeHost, tmp_path: Path
) -> None:
    await stack.set_file(host, PAGES, "8")
    await stack.make(host, DeleteNamespace(namespace="stuck"), _nothing)  # `test -e` goes on saying that it is there

    (trouble,) = await stack.undo_all()
    assert "stuck" in trouble
    assert host.files[PAGES] == "4"
    record = load_record(record_path(tmp_path / "runtime", "run"))
    assert record is not None, "what could not be undone stays on record"
    assert [entry.done for entry in record.entries] == [True, False]


async def test_an_undo_that_meets_a_tool_it_does_not_understand_does_not_keep_the_others_from_being_done(
    stack: UndoStack, host: FakeHost
) -> None:
    await stack.set_file(host, PAGES, "8")
    await stack.make(host, DeleteLink(device="e0"), _nothing)
    host.answer("ip -j link show", "no JSON")

    (trouble,) = await stack.undo_all()
    assert "e0" in trouble
    assert host.files[PAGES] == "4"


async def test_a_holder_that_cannot_be_ended_and_a_full_disk_do_not_keep_the_machine_changed(
    stack: UndoStack, host: FakeHost
) -> None:
    async def end() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    await stack.set_file(host, PAGES, "8")
    stack.before_undoing(end)
    stack.after_undoing(end)

    assert ["No space left" in trouble for trouble in await stack.undo_all()] == [True, True]
    assert host.files[PAGES] == "4"


@pytest.mark.parametrize(
    "said",
    [
        "RTNETLINK answers: Cannot assign requested address",
        "Error: ipv4: Address not found.",  # Linux 6.10 and newer
        "Error: ipv6: address not found.",
        "Error: FIB table does not exist.",  # of a route, where no other is left
    ],
)
async def test_what_is_gone_already_is_no_trouble(stack: UndoStack, host: FakeHost, said: str) -> None:
    host.fail("ip address del", said, status=2)
    await stack.make(host, DeleteIpObject(arguments=("address", "del", "198.18.0.1/24", "dev", "d0")), _nothing)

    assert await stack.undo_all() == []


async def test_undoing_goes_through_to_the_end_when_it_is_cancelled(stack: UndoStack, host: FakeHost) -> None:
    await stack.set_file(host, FORWARD, "1")
    await stack.set_file(host, PAGES, "8")
    task = asyncio.create_task(stack.undo_all())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert host.files == {FORWARD: "0", PAGES: "4"}


async def test_changes_of_a_dead_process_under_the_same_name_come_first(
    stack: UndoStack, host: FakeHost, tmp_path: Path
) -> None:
    await stack.set_file(host, PAGES, "8")
    again = UndoStack("run", None, tmp_path / "runtime")
    with pytest.raises(NotReadyError, match="nicbench restore run"):
        await again.set_file(host, FORWARD, "1")


async def test_a_stack_without_changes_writes_nothing(stack: UndoStack, tmp_path: Path) -> None:
    assert await stack.undo_all() == []
    assert not (tmp_path / "runtime").exists()
    assert list((tmp_path / "folder").iterdir()) == []


async def _nothing() -> None:
    return None


async def test_what_this_process_holds_is_ended_before_anything_is_undone(stack: UndoStack, host: FakeHost) -> None:
    seen = []

    async def end() -> None:
        seen.append(host.files[PAGES])

    await stack.set_file(host, PAGES, "8")
    stack.before_undoing(end)
    await stack.undo_all()
    await stack.undo_all()
    assert seen == ["8"]
    assert host.files[PAGES] == "4"


# After a crash: what a dead run left is undone by another process, once, and only if it is ours to undo.

BOOT_ID = "/proc/sys/kernel/random/boot_id"
REBOOTED = this_process().replace(boot_id="another")
"""The owner of changes that were made before this machine was booted."""


class Machine:
    """A fake host and a runtime folder, as a dead run left them."""

    def __init__(self, runtime: Path) -> None:
        self.runtime = runtime
        self.host = FakeHost(files={PAGES: "8\n"})

    def make_host(self, spec: dict[str, Any]) -> Host:
        assert spec == self.host.spec()
        return self.host

    def leave(self, run_id: str, owner: Owner, *, kept: bool = False) -> None:
        entry = Entry(host=self.host.spec(), undo=RestoreFile(path=PAGES, old="4", new="8"))
        record = Record(run_id=run_id, owner=owner, run_folder=None, started="now", kept=kept, entries=(entry,))
        save_record(record, record_path(self.runtime, run_id))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "runtime")


def dead() -> Owner:
    """This process's pid with another start time: the pid was used again."""
    me = this_process()
    return me.replace(start_ticks=me.start_ticks - 1)


async def test_what_a_dead_run_left_is_undone_and_said(machine: Machine) -> None:
    machine.leave("run", dead())

    assert await restore("run", machine.runtime, machine.make_host) == ["run: undid 1 change that it had left"]
    assert machine.host.files[PAGES] == "4"
    assert not machine.runtime.exists()


async def test_a_run_folder_stands_for_its_run_and_its_own_record_is_not_believed(
    machine: Machine, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    save_record(Record(run_id="run", owner=dead(), run_folder=None, started="now", entries=()), folder / "undo.json")

    assert await restore(str(folder), machine.runtime, machine.make_host) == ["run: nothing to undo"]
    machine.leave("run", dead())
    await restore(f"{folder}/", machine.runtime, machine.make_host)
    assert machine.host.files[PAGES] == "4"


async def test_a_run_that_is_still_going_on_is_refused_by_restore_and_passed_over_by_the_next_run(
    machine: Machine,
) -> None:
    machine.leave("run", this_process())
    with pytest.raises(NotReadyError, match="still going on"):
        await restore("run", machine.runtime, machine.make_host)

    assert await restore_stale(machine.runtime, machine.make_host) == []
    assert machine.host.files[PAGES] == "8\n"


async def test_after_a_reboot_a_record_is_only_forgotten(machine: Machine) -> None:
    machine.leave("run", REBOOTED)

    (said,) = await restore_stale(machine.runtime, machine.make_host)
    assert "rebooted" in said
    assert machine.host.writes == []
    assert not machine.runtime.exists()


async def test_after_a_reboot_what_is_on_another_machine_is_still_undone(machine: Machine) -> None:
    machine.leave("run", REBOOTED)
    path = record_path(machine.runtime, "run")
    written = json.loads(path.read_text())
    held = {
        "kind": "free_trex_ports",
        "client": "/nowhere",
        "python": sys.executable,
        "server": "192.0.2.10",
        "sync_port": 4501,
        "async_port": 4500,
        "owner": "nicbench@lab/run",
        "ports": [0, 1],
        "promiscuous": [],
    }
    written["entries"].append({"host": {"kind": "local"}, "undo": held})
    path.write_text(json.dumps(written))

    _, trouble = await restore("run", machine.runtime, lambda _: LocalHost())
    assert "ports 0, 1 of TRex at 192.0.2.10:4501" in trouble  # it was tried, and nothing else
    assert machine.host.writes == []
    assert path.exists()


class TwoMachines(Machine):
    """This machine, and another one on which the run changed the same; each has its own files."""

    def __init__(self, runtime: Path) -> None:
        super().__init__(runtime)
        self.other = FakeHost("other", files={PAGES: "8\n", BOOT_ID: "there\n"})
        self.other.local = False

    def make_host(self, spec: dict[str, Any]) -> Host:
        return self.other if spec == self.other.spec() else super().make_host(spec)

    def leave(self, run_id: str, owner: Owner, *, kept: bool = False) -> None:
        hosts = (self.host, self.other)
        undo = RestoreFile(path=PAGES, old="4", new="8")
        entries = tuple(Entry(host=host.spec(), undo=undo) for host in hosts)
        record = Record(run_id=run_id, owner=owner, run_folder=None, started="now", kept=kept, entries=entries)
        save_record(record, record_path(self.runtime, run_id))
        there = record.replace(owner=owner.replace(boot_id="there"))
        self.other.files[self.guard] = there.model_dump_json()

    @property
    def guard(self) -> str:
        """The record that lies on the other machine."""
        return f"{folder_of(str(self.runtime), 'run', self.other)}/{RECORD_NAME}"


@pytest.fixture
def machines(tmp_path: Path) -> TwoMachines:
    return TwoMachines(tmp_path / "runtime")


@pytest.mark.parametrize("kept", [False, True])
async def test_after_a_reboot_of_this_machine_alone_the_settings_of_another_are_put_back(
    machines: TwoMachines, kept: bool
) -> None:
    machines.leave("run", REBOOTED, kept=kept)
    assert find_unrestored_runs(machines.runtime) == ["run"]

    (said,) = await restore_stale(machines.runtime, machines.make_host)
    assert said.startswith("run: undid 1 change")
    assert machines.other.files[PAGES] == "4"
    assert machines.host.writes == []
    assert not machines.runtime.exists()


@pytest.mark.parametrize("emptied", [True, False])
async def test_where_the_other_machine_has_rebooted_too_nothing_is_set_there(
    machines: TwoMachines, emptied: bool
) -> None:
    machines.leave("run", REBOOTED)
    machines.other.files[BOOT_ID] = "a later one\n"
    if emptied:  # as /run is by a boot
        del machines.other.files[machines.guard]

    (said,) = await restore_stale(machines.runtime, machines.make_host)
    assert "every machine that it changed has rebooted since" in said
    assert machines.other.writes == []
    assert not machines.runtime.exists()


async def test_the_record_stays_while_the_other_machine_cannot_be_reached(
    machines: TwoMachines, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.leave("run", REBOOTED)

    async def unreachable(path: str) -> str | None:
        raise HostError("connection refused", place="other")

    monkeypatch.setattr(machines.other, "read_file", unreachable)
    said = await restore_stale(machines.runtime, machines.make_host)
    assert "the record stays" in said[0]
    assert find_unrestored_runs(machines.runtime) == ["run"]


async def test_a_lab_that_was_made_to_stay_stays_until_it_is_taken_down(machine: Machine) -> None:
    machine.leave("lab", dead(), kept=True)

    assert await restore_stale(machine.runtime, machine.make_host) == []
    assert find_kept_runs(machine.runtime) == ["lab"]
    await restore("lab", machine.runtime, machine.make_host)
    assert find_kept_runs(machine.runtime) == []


async def test_a_record_that_cannot_be_read_is_an_error_that_names_it(machine: Machine) -> None:
    path = record_path(machine.runtime, "run")
    path.parent.mkdir(parents=True)
    path.write_text('{"format": 1, "entries": [')
    with pytest.raises(NotReadyError, match=str(path)):
        await restore("run", machine.runtime, machine.make_host)


async def test_an_empty_name_is_refused() -> None:
    with pytest.raises(UsageError):
        await restore("")


def test_a_start_time_is_found_behind_any_name_of_a_command() -> None:
    rest = " ".join(str(number) for number in range(4, 53))
    assert start_ticks_of_stat(f"7 (a) b) (c) S {rest}") == 22
    assert start_ticks_of_stat(f"7 (ended) Z {rest}") is None


@pytest.mark.parametrize("pid", [10**4200, 2**22, 0, -1], ids=["huge", "just too high", "none", "negative"])
def test_no_process_has_a_pid_that_no_kernel_gives(pid: int) -> None:
    assert start_ticks(pid) is None
