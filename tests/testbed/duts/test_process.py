"""A DUT that is a process: what it says, how it ends, and what is reported of it then."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.kinds.local import LocalHost
from nicbench.testbed.duts._process import DutProcess, require_program
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.processes import KillProcess

LISTENING = ("sh", "-c", 'echo up; while read -r line; do echo "got $line"; [ "$line" = stop ] && exit 0; done; exit 7')


@pytest.fixture
def changes(tmp_path: Path) -> UndoStack:
    return UndoStack("nb-test", None, tmp_path)


async def started(changes: UndoStack, *command: str, last_line: str | None = None) -> DutProcess:
    return await DutProcess.start(LocalHost(), changes, command or LISTENING, "dut", last_line=last_line)


async def test_lines_are_waited_for_and_each_is_seen_once(changes: UndoStack) -> None:
    process = await started(changes)
    assert await process.wait_for(lambda line: line == "up", 10, "come up") == ["up"]
    await process.write_line("one")
    await process.write_line("two")
    assert await process.wait_for(lambda line: line == "got two", 10, "answer") == ["got one", "got two"]
    assert await process.failure() is None
    await changes.undo_all()


async def test_it_is_asked_to_end_where_it_knows_a_word_for_it(changes: UndoStack) -> None:
    process = await started(changes, last_line="stop")
    await changes.undo_all()
    assert str(await process.failure()).startswith("dut exited with status 0")


async def test_one_that_knows_no_word_is_killed(changes: UndoStack) -> None:
    process = await started(changes)
    await changes.undo_all()
    assert str(await process.failure()).startswith("dut was killed by signal 9")


async def test_its_death_is_told_with_its_last_words_of_both_kinds(changes: UndoStack) -> None:
    process = await started(changes, "sh", "-c", "echo said; echo complained >&2; exit 3")
    with pytest.raises(HostError, match=r"(?s)the DUT dut exited with status 3; its last output: said.*complained"):
        await process.wait_for(lambda line: line == "never", 10, "say never")
    assert "exited with status 3" in str(await process.failure())
    await changes.undo_all()


async def test_one_that_says_nothing_is_given_up_with_what_it_was_to_do(changes: UndoStack) -> None:
    process = await started(changes)
    with pytest.raises(HostError, match=r"did not open its ports within 0\.2 s"):
        await process.wait_for(lambda line: line == "never", 0.2, "open its ports")
    await changes.undo_all()


async def test_another_process_can_kill_it_by_the_record(changes: UndoStack) -> None:
    process = await started(changes)
    (entry,) = changes.entries
    assert isinstance(entry.undo, KillProcess)
    assert entry.undo.pid == process.pid
    await changes.undo_all()


async def test_the_time_it_waited_for_a_cpu_can_be_asked_for(changes: UndoStack) -> None:
    process = await started(changes)
    assert await process.waiting_ns() is not None
    await changes.undo_all()
    assert await process.waiting_ns() is None


async def test_a_program_that_is_not_there_is_named_with_how_to_get_it() -> None:
    host = FakeHost()
    host.fail("sh -c", "")
    with pytest.raises(NotReadyError, match="there is no program dpdk-testpmd") as refused:
        await require_program(host, "dpdk-testpmd", "apt-get install dpdk-dev")
    assert refused.value.next_step == "apt-get install dpdk-dev"


async def test_the_error_of_one_that_was_killed_has_its_words_and_not_its_answers(changes: UndoStack) -> None:
    answer = '{"event": "stats", "ports": [' + '{"received": 1}, ' * 400 + "{}]}"
    failed = '{"event": "failed", "message": "no memory left"}'
    said = f"echo '{answer}'; echo '{failed}'; echo '{'long ' * 200}'; echo 'EAL: bad luck' >&2; kill -KILL $$"
    process = await started(changes, "sh", "-c", said)
    with pytest.raises(HostError, match="was killed by signal 9") as caught:
        await process.wait_for(lambda line: line == "never", 10, "answer")

    told = str(caught.value)
    assert "no memory left" in told
    assert "EAL: bad luck" in told
    assert "received" not in told
    assert len(told) < 600
    await changes.undo_all()
