"""testpmd as a second process: frames pass through it in memory, and it dies with whoever started it.

The tests run alone: beside others that poll, testpmd may get no turn in a whole trial.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import run_checked, run_tried

from nicbench.bench_file import parse
from nicbench.core.errors import HostError
from nicbench.core.events import Bus, TrialFinished
from nicbench.core.judging import Thresholds
from nicbench.core.trial import Purpose, Reading, Trial, TrialRequest
from nicbench.measure.samples import SampleLog
from nicbench.measure.surroundings import TrialSetup
from nicbench.measure.trials import TrialMaker
from nicbench.stages.testbed import make_dut, make_testbed
from nicbench.stages.tester import make_tester
from nicbench.testbed.duts.testpmd import Testpmd
from nicbench.testbed.labs.memif import socket_folder
from nicbench.testbed.testers.base import Tester
from nicbench.tuning.stack import UndoStack

from .lab import come_back

pytestmark = [pytest.mark.lab, pytest.mark.alone]

BENCH = """
nicbench: 1
title: testpmd in memory
lab: {{kind: memif, topology: {topology}, zero_copy: {zero_copy}}}
dut: {{kind: testpmd, forward_mode: {mode}, huge_pages: {huge_pages}}}
tester: {{huge_pages: {huge_pages}}}
tests: [{{name: t, method: throughput}}]
"""
REQUEST = TrialRequest(
    frame_bytes=64, load_frames_per_s=50_000, duration_s=0.3, drain_s=0.1, settle_s=0.02, purpose=Purpose.AVERAGE
)


class Stand:
    """A testpmd and a tester, made for a test and removed after it."""

    def __init__(self, run_id: str, topology: str, mode: str, *, huge_pages: bool = False) -> None:
        yes = "true" if huge_pages else "false"
        text = BENCH.format(topology=topology, mode=mode, huge_pages=yes, zero_copy=yes)
        self.bench = parse(text.encode(), Path("bench.yaml"))
        self.run_id = run_id
        self.changes = UndoStack(run_id, None)

    async def __aenter__(self) -> tuple[Testpmd, Tester, TrialMaker, list[Trial]]:
        _, testbed = await make_testbed(self.bench, self.changes)
        dut = await make_dut(self.bench, testbed, self.changes)
        assert isinstance(dut, Testpmd)
        self.tester = make_tester(self.bench, testbed, (), self.run_id, None)
        await self.tester.start()
        bus, trials = Bus(), list[Trial]()
        bus.subscribe(lambda event: trials.append(event.trial) if isinstance(event, TrialFinished) else None)
        setup = TrialSetup(self.tester, dut, dut.addressing(testbed, 4), port_names=("a", "b"))
        maker = TrialMaker(setup, Thresholds(), SampleLog({}, bus))
        return dut, self.tester, maker, trials

    async def __aexit__(self, *_: object) -> None:
        await self.tester.close()
        assert await self.changes.undo_all() == []


def processes() -> str:
    """The mounts of this worker of the session."""
    command = ("pgrep", "--ns", str(os.getpid()), "--nslist", "mnt", "-f", "nicbench_dut_")
    return run_tried(command).stdout


async def one_trial(topology: str, mode: str, *, huge_pages: bool = False) -> Reading:
    async with Stand(f"nb-test-{mode}", topology, mode, huge_pages=huge_pages) as (dut, _, maker, _):
        assert not dut.disclosure()["patch"].startswith("--")
        assert dut.disclosure()["version"].startswith("DPDK ")
        return (await maker.make("t/0/0", "t", {}, REQUEST, 0)).reading


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("topology", "mode"), [("crossed", "csum"), ("same-port", "5tswap"), ("same-port", "io")])
async def test_frames_pass_through_and_the_cycles_they_took_are_read_back(topology: str, mode: str) -> None:
    reading = await one_trial(topology, mode)
    assert come_back(reading.counts)
    assert reading.counts.corrupted == 0
    assert reading.dut_work.packets >= reading.counts.received
    assert reading.dut_work.tsc_cycles_per_packet is not None
    assert reading.dut_work.core_cycles_per_packet is not None
    assert not Path(socket_folder(f"nb-test-{mode}")).exists()
    assert processes() == ""


async def test_with_huge_pages_nothing_is_copied_by_the_tester_and_the_pages_go_back() -> None:
    pages = Path("/proc/sys/vm/nr_hugepages")
    before = pages.read_text()
    reading = await one_trial("crossed", "macswap", huge_pages=True)
    assert come_back(reading.counts)
    assert pages.read_text() == before


async def test_one_that_is_killed_in_a_trial_ends_the_run_and_is_named() -> None:
    async with Stand("nb-test-killed", "crossed", "mac") as (dut, _, maker, trials):
        process = dut._process
        assert process is not None

        async def kill_soon() -> None:
            await asyncio.sleep(0.2)
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)

        killer = asyncio.create_task(kill_soon())
        with pytest.raises(HostError, match="the DUT testpmd was killed by signal 9"):
            await maker.make("t/0/0", "t", {}, REQUEST, 0)
        await killer
        # The tester's driver may have gone down with the ring; then there is no trial to judge.
        assert all(trial.verdict.reasons == ("peer_failed",) or not trial.verdict.valid for trial in trials)


CONTROLLER = """
import asyncio
from pathlib import Path
from tests.testbed.duts.test_testpmd_lab import Stand
async def main():
    async with Stand("nb-test-orphan", "crossed", "io"):
        print("up", flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


def test_it_dies_with_a_controller_that_is_killed_and_restore_removes_the_rest() -> None:
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        (sys.executable, "-c", CONTROLLER), cwd=root, stdout=subprocess.PIPE, text=True
    ) as controller:
        assert controller.stdout.readline() == "up\n"
        assert processes() != ""
        controller.kill()
    for _ in range(100):
        if not processes():
            break
        run_checked(("sleep", "0.05"))
    assert processes() == ""
    run_checked((sys.executable, "-m", "nicbench", "restore", "nb-test-orphan"), cwd=root)
    assert not Path(socket_folder("nb-test-orphan")).exists()
