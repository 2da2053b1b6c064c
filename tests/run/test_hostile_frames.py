"""Hostile frames that reach a port during a trial change nothing in the counts of the trial's own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from nicbench.bench_file import parse
from nicbench.core.trial import Purpose, Reading, TrialRequest
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.stages.testbed import make_dut, make_testbed
from nicbench.stages.tester import make_tester
from nicbench.testbed.testers.packets import run_key
from nicbench.tuning.stack import UndoStack

from .lab_bench import short

pytestmark = pytest.mark.lab

RUN_ID = "nb-test-hostile"
SENDER = Path(__file__).with_name("hostile_sender.py")
REQUEST = TrialRequest(
    frame_bytes=128, load_frames_per_s=10_000, duration_s=2.0, drain_s=0.2, settle_s=0.05, purpose=Purpose.LATENCY
)
# Shorter than the trial, so that all of them arrive before its end.
HOSTILE_S = 1.0


async def under_attack(driver: str) -> tuple[Reading, dict[str, int]]:
    """A trial through a bridge, and how many hostile frames came beside it, by what they are to be counted as."""
    bench = parse(short("{kind: bridge}", more=f"tester: {{driver: {driver}}}").encode(), Path("bench.yaml"))
    changes = UndoStack(RUN_ID, None)
    try:
        _, testbed = await make_testbed(bench, changes)
        dut = await make_dut(bench, testbed, changes)
        assert isinstance(testbed.dut, NetnsHost)
        tester = make_tester(bench, testbed, (), RUN_ID, None)
        await tester.start()
        # Trials have even numbers; odd ones are the learning frames before them.
        numbers = [str(run_key(RUN_ID, bench.seed)), "2", str(HOSTILE_S)]
        inside = ["ip", "netns", "exec", testbed.dut.namespace]
        command = [*inside, sys.executable, str(SENDER), "d0", "d1", *numbers]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
            try:
                assert sender.stdout.readline() == "ready\n"
                reading = await tester.trial(1, REQUEST, dut.addressing(testbed, 4))
                return reading, json.loads(sender.communicate(timeout=30)[0])
            finally:
                sender.kill()
                await tester.close()
    finally:
        await changes.undo_all()


@pytest.mark.sampled(4, of="labs in turn")
@pytest.mark.parametrize("driver", ["net_af_xdp", "xdp"])
def test_hostile_frames_are_never_counted_as_ours(driver: str) -> None:
    reading, hostile = asyncio.run(under_attack(driver))
    counts = reading.counts
    assert counts.sent > 10_000  # of 20,000; a busy machine sends fewer
    assert counts.unattributed is not None
    assert counts.received + counts.lost + counts.unattributed == counts.sent
    assert counts.received > 0.99 * counts.sent  # a busy machine may drop a few on the way, and is no fault
    assert (counts.duplicated, counts.reordered, counts.corrupted) == (0, 0, 0)
    assert reading.latency.count == counts.received

    arrived = {kind: getattr(counts, kind) for kind in hostile}
    arrived_in_all = sum(port.arrived or 0 for port in reading.ports)
    assert arrived_in_all == sum(arrived.values(), counts.received)
    assert min(hostile.values()) > 20
    if counts.received == counts.sent and reading.ports[1].receive_overrun == 0:
        assert arrived == hostile
    else:
        # A machine that drops some of ours drops some of theirs; none is counted that was not sent.
        assert all(0.9 * number < arrived[kind] <= number for kind, number in hostile.items())
