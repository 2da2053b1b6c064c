"""Leases on other machines: one taker, the others are told who; a dead run's is taken over. Locks are real."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.fakes import FakeHost, FakeProcess

from nicbench.core.errors import BusyError, HostError, NotReadyError
from nicbench.hosts.base import Process
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.owner import Owner, this_process
from nicbench.tuning.lease import Answer, HostLease, ports_command
from nicbench.tuning.lock import LOCK_NAME, HostLock, Lease, Standing, standing_of
from nicbench.tuning.record import Record, record_path, save_record

WHOLE = None


async def test_a_second_run_is_told_who_holds_the_machine_since_when_and_until_when(tmp_path: Path) -> None:
    first = _lease(tmp_path, "first", WHOLE)
    await first.take()
    with pytest.raises(BusyError) as caught:
        await _lease(tmp_path, "second", WHOLE).take()

    said = str(caught.value)
    assert "run first of " in said
    assert f"(process {os.getpid()}) holds the whole machine since {datetime.now(UTC):%Y-%m-%d}" in said
    assert "until it ends" in said
    assert "--wait" in said
    await first.release()


async def test_given_back_it_is_free_and_leaves_no_lease(tmp_path: Path) -> None:
    first = _lease(tmp_path, "first", WHOLE)
    await first.take()
    await first.release()
    await first.release()
    assert list((tmp_path / "leases").iterdir()) == []

    second = _lease(tmp_path, "second", WHOLE)
    assert await second.take() == []
    await second.release()


async def test_runs_on_different_ports_go_side_by_side_and_the_same_port_is_refused_with_its_name(
    tmp_path: Path,
) -> None:
    first, second = _lease(tmp_path, "first", ["0000:03:00.0"]), _lease(tmp_path, "second", ["0000:03:00.1"])
    await first.take()
    await second.take()
    with pytest.raises(BusyError, match=r"run second of .* holds port 0000:03:00\.1 since") as caught:
        await _lease(tmp_path, "third", ["0000:03:00.1", "0000:04:00.0"]).take()

    assert "run first" not in str(caught.value)
    await first.release()
    await second.release()


@pytest.mark.parametrize(("held", "wanted"), [(["a"], WHOLE), (WHOLE, ["a"]), (WHOLE, [])])
async def test_the_whole_machine_and_a_port_of_it_exclude_each_other(
    tmp_path: Path, held: Sequence[str] | None, wanted: Sequence[str] | None
) -> None:
    first = _lease(tmp_path, "first", held)
    await first.take()
    with pytest.raises(BusyError, match="run first"):
        await _lease(tmp_path, "second", wanted).take()
    await first.release()
    second = _lease(tmp_path, "second", wanted)
    await second.take()
    await second.release()


async def test_a_run_on_the_machine_itself_and_a_lease_from_elsewhere_exclude_each_other(tmp_path: Path) -> None:
    here = HostLock("here", tmp_path)
    await here.take()
    with pytest.raises(BusyError, match=r"run here of .* holds the whole machine since"):
        await _lease(tmp_path, "elsewhere", ["a"]).take()
    here.release()

    elsewhere = _lease(tmp_path, "elsewhere", ["a"])
    await elsewhere.take()
    with pytest.raises(BusyError, match=r"run elsewhere of .* holds port a since"):
        await HostLock("here", tmp_path).take()
    await elsewhere.release()
    again = HostLock("here", tmp_path)
    await again.take()
    again.release()


def test_the_lease_of_a_killed_run_is_free_at_once_and_its_owner_is_named(tmp_path: Path) -> None:
    script = (
        "import asyncio, pathlib, sys\n"
        "from nicbench.hosts.kinds.local import LocalHost\n"
        "from nicbench.tuning.lease import HostLease\n"
        "async def main():\n"
        "    await HostLease(LocalHost(), 'dead', None, folder=pathlib.Path(sys.argv[1])).take()\n"
        "    print('taken', flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    ) as controller:
        assert controller.stdout.readline() == "taken\n"
        controller.send_signal(signal.SIGKILL)

    async def next_run() -> list[str]:
        lease = _lease(tmp_path, "next", WHOLE)
        end = time.monotonic() + 30
        while True:
            try:
                said = await lease.take()
            except BusyError:
                assert time.monotonic() < end
                await asyncio.sleep(0.05)
            else:
                await lease.release()
                return said

    said = asyncio.run(next_run())
    assert len(said) == 1
    assert "run dead of" in said[0]
    assert "left a lease behind: it was removed" in said[0]


async def test_of_many_takers_exactly_one_wins(tmp_path: Path) -> None:
    leases = [_lease(tmp_path, f"run-{number}", WHOLE if number % 2 else ["a"]) for number in range(12)]
    outcomes = await asyncio.gather(*(lease.take() for lease in leases), return_exceptions=True)

    assert sum(isinstance(outcome, list) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, BusyError) for outcome in outcomes) == 11
    for lease in leases:
        await lease.release()


@pytest.mark.parametrize("content", ["", "garbage", '17 {"run_id": 1}', "17 " + "[" * 4000, "\x1b[2J\n\x00"])
async def test_a_file_that_is_no_lease_is_in_nobodys_way(tmp_path: Path, content: str) -> None:
    (tmp_path / "leases").mkdir()
    (tmp_path / "leases" / "torn").write_text(content)
    lease = _lease(tmp_path, "next", WHOLE)
    await lease.take()
    await lease.release()
    assert list((tmp_path / "leases").iterdir()) == []


async def test_a_living_holder_whose_file_was_spoilt_still_holds(tmp_path: Path) -> None:
    first = _lease(tmp_path, "first", WHOLE)
    await first.take()
    (file,) = (tmp_path / "leases").iterdir()
    file.write_text("garbage")
    with pytest.raises(BusyError, match="an unknown holder, whose lease cannot be read"):
        await _lease(tmp_path, "second", WHOLE).take()
    await first.release()


async def test_changes_that_a_dead_run_left_on_that_machine_must_be_undone_there_first(tmp_path: Path) -> None:
    record = Record(run_id="dead", owner=this_process(), run_folder=None, started="now")
    save_record(record, record_path(tmp_path, "dead"))
    with pytest.raises(NotReadyError) as caught:
        await _lease(tmp_path, "next", ["a"]).take()
    assert not isinstance(caught.value, BusyError)
    assert "there: sudo nicbench restore dead" in str(caught.value)
    assert list((tmp_path / "leases").iterdir()) == []

    save_record(record.replace(kept=True), record_path(tmp_path, "dead"))  # a lab that is to stay
    lease = _lease(tmp_path, "next", ["a"])
    await lease.take()
    await lease.release()


async def test_changes_that_were_put_back_there_without_their_controller_are_in_nobodys_way(tmp_path: Path) -> None:
    folder = _unheard(tmp_path, "dead.on.far-12ab", this_process().replace(start_ticks=1))
    lease = _lease(tmp_path, "next", WHOLE)
    with pytest.raises(NotReadyError, match=r"sudo nicbench restore dead\.on\.far-12ab"):
        await lease.take()
    (folder / "undo.sh").rename(folder / "undo.sh.done")
    (folder / "told").write_text("put back: mtu\nleft alone, somebody changed it since: qdisc\n")
    await lease.take()
    await lease.release()

    (folder / "told").write_text("could not put back: mtu\n")
    with pytest.raises(NotReadyError, match=r"sudo nicbench restore dead\.on\.far-12ab"):
        await lease.take()


async def test_what_is_being_put_back_is_waited_for(tmp_path: Path) -> None:
    folder = _unheard(tmp_path, "dead.on.far-12ab", this_process())  # whoever puts it back is alive
    lease = _lease(tmp_path, "next", WHOLE)
    taking = asyncio.create_task(lease.take())
    assert not (await asyncio.wait((taking,), timeout=0.7))[0]
    (folder / "undo.sh").rename(folder / "undo.sh.done")
    assert await taking == []
    await lease.release()


async def test_changes_of_a_run_that_lives_on_other_ports_are_its_own(tmp_path: Path) -> None:
    first = _lease(tmp_path, "first", ["a"])
    await first.take()
    _unheard(tmp_path, "first.on.far-12ab", this_process())
    second = _lease(tmp_path, "second", ["b"])
    await second.take()
    await second.release()
    await first.release()


async def test_a_lease_that_is_lost_in_the_middle_is_told(tmp_path: Path) -> None:
    said = []
    host = _Remembering()
    lease = HostLease(host, "first", WHOLE, said.append, folder=tmp_path)
    await lease.take()
    (process,) = host.started
    await process.signal(signal.SIGKILL)
    await process.wait(20.0)
    for _ in range(200):
        await asyncio.sleep(0 if said else 0.05)

    assert len(said) == 1
    assert "the lease was lost" in said[0]
    await lease.release()


async def test_a_machine_that_cannot_be_locked_says_what_to_do() -> None:
    host = FakeHost("far")
    host.process("sh", FakeProcess(["refused jane may not make /run/nicbench"], status=1))
    with pytest.raises(NotReadyError, match=r"far: .*jane may not make /run/nicbench(.|\n)*as root"):
        await HostLease(host, "run", WHOLE).take()


async def test_a_machine_that_answers_nothing_known_is_an_error_with_its_words() -> None:
    host = FakeHost("far")
    host.process("sh", FakeProcess(["Welcome!"], status=1, stderr="sh: syntax error"))
    with pytest.raises(HostError, match="sh: syntax error"):
        await HostLease(host, "run", WHOLE).take()


def test_the_age_is_by_the_clock_of_that_machine_and_told_by_ours() -> None:
    answer = Answer()
    lease = Lease(run_id="r", user="jane", machine="lab7", pid=5, silence_s=10.0)
    for line in ("now 5000000180", f"held 5000000000 {json.dumps(lease.model_dump())} 0000:03:00.0"):
        answer.hear(line)
    (standing,) = answer.held

    assert standing == Standing(lease, 180.0, ("0000:03:00.0",))
    assert standing.describe(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == (
        "run r of jane@lab7 (process 5) holds port 0000:03:00.0 since 2026-01-02 03:01:05 UTC (3 min), until it ends, "
        "or 10 s after its controller was last heard of"
    )


def test_what_a_stranger_wrote_cannot_steer_a_terminal() -> None:
    text = json.dumps({"run_id": "\x1b[2Jx", "user": "u\n", "machine": "m", "pid": 1})
    told = standing_of(f"1 {text}", 2).describe(datetime.now(UTC))
    assert told.isprintable()


async def test_a_port_is_known_by_its_pci_address_or_by_its_namespace_and_name() -> None:
    done = await LocalHost().run(ports_command(("lo", "no-such-device")))
    space = os.readlink("/proc/self/ns/net").removeprefix("net:[").removesuffix("]")
    assert done.stdout.splitlines() == [f"{space}/lo", f"{space}/no-such-device"]


def test_the_lock_of_the_machine_and_the_lease_agree_on_the_file() -> None:
    from nicbench.tuning.lease import _SCRIPT

    assert f'"$folder/{LOCK_NAME}"' in _SCRIPT


def _unheard(runtime: Path, name: str, owner: Owner) -> Path:
    """The folder of a run's changes, as it lies on a machine that was changed over a connection."""
    record = Record(run_id=name, owner=owner, run_folder=None, started="now")
    save_record(record, record_path(runtime, name))
    (runtime / name / "undo.sh").write_text("")
    return runtime / name


class _Remembering(LocalHost):
    """Keeps what it started."""

    def __init__(self) -> None:
        super().__init__("far")
        self.started: list[Process] = []

    async def start(self, command: Sequence[str], *, environment: object = None) -> Process:
        process = await super().start(command)
        self.started.append(process)
        return process


def _lease(folder: Path, run_id: str, ports: Sequence[str] | None) -> HostLease:
    return HostLease(LocalHost(f"far-{secrets.token_hex(2)}"), run_id, ports, folder=folder)
