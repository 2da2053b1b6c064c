"""The undo stack: written down before each change, undone in reverse, never over somebody else's value."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import HostError, NotReadyError
from nicbench.tuning.record import load_record, record_path
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.files import RestoreFile
from nicbench.tuning.undo.network import DeleteIpObject, DeleteLink
from nicbench.tuning.undo.processes import DeleteNamespace

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
            assert record is not None
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
        assert record is not None
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
    seen: list[str] = []

    async def end() -> None:
        seen.append(host.files[PAGES])

    await stack.set_file(host, PAGES, "8")
    stack.before_undoing(end)
    await stack.undo_all()
    await stack.undo_all()
    assert seen == ["8"]
    assert host.files[PAGES] == "4"
