"""The policer with real frames: what passes is what the arithmetic says, whatever the rate."""

from __future__ import annotations

import asyncio
import random

import pytest
from lab import TESTER_MACS, Wires
from wire import Sent, raw_socket, send_paced, udp_frame

from nicbench.core.errors import NotReadyError
from nicbench.testbed.duts.policer import Bucket, Policer, PolicerOptions, expected_frames
from nicbench.tuning.stack import UndoStack

pytestmark = pytest.mark.lab

# 200 ms of hold-up at the rate: this sender is a Python loop on a machine that may be busy.
BURST_S = 0.2


def frame(here: int, size: int) -> bytes:
    there = 1 - here
    addresses = ("198.18.64.0", "198.19.64.0")
    return udp_frame(TESTER_MACS[here], TESTER_MACS[there], addresses[here], addresses[there], size)


def model(sent: Sent, rate: int, burst: int) -> float:
    """The bucket of RFC 2697 section 3, filled by the clock and emptied by the sender's own record."""
    tokens, passed, last_s = float(burst), 0.0, sent.bursts[0].start_s
    for one in sent.bursts:
        tokens = min(burst, tokens + (one.start_s - last_s) * rate)
        # While a burst is being sent the bucket goes on filling, and is not full.
        taken = min(one.frames, tokens + (one.end_s - one.start_s) * rate)
        tokens += (one.end_s - one.start_s) * rate - taken
        passed += taken
        last_s = one.end_s
    return passed


@pytest.mark.alone
@pytest.mark.parametrize("size", [64, 1518])
async def test_what_exceeds_rate_and_burst_is_dropped(
    size: int, lab: Wires, changes: UndoStack, draw: random.Random
) -> None:
    rate = draw.randint(60_000, 150_000)
    burst = int(rate * BURST_S)
    policer = Policer(PolicerOptions(rate=rate, burst=burst))
    await policer.up(lab.testbed, changes)
    before = lab.received_frames("t1")
    offered = rate * 2
    with raw_socket(lab.tester, "t0") as raw:
        sent = send_paced(raw, frame(0, size), offered, offered)
    passed = lab.received_frames("t1") - before
    # Never more than the known answer, and no less than the model says of this very sender.
    assert passed <= expected_frames(rate, burst, sent.duration_s) + 1
    assert passed == pytest.approx(model(sent, rate, burst), rel=0.002)
    bucket = (await policer.buckets())["d0 to d1"]
    assert bucket.forwarded_frames == passed
    assert bucket.dropped_frames == offered - passed
    assert (await policer.drops())["policer d0 to d1"] == offered - passed


@pytest.mark.alone
async def test_the_bucket_is_full_again_after_an_idle_of_burst_by_rate(lab: Wires, changes: UndoStack) -> None:
    policer = Policer(PolicerOptions(rate=100_000, burst=20_000))
    await policer.up(lab.testbed, changes)
    with raw_socket(lab.tester, "t0") as raw:
        for _ in range(3):
            # The whole burst at once passes only where the bucket is full.
            assert send_paced(raw, frame(0, 64), 20_000, 1e9).frames == 20_000
            assert (await policer.drops())["policer d0 to d1"] == 0
            await asyncio.sleep(20_000 / 100_000)


@pytest.mark.alone
async def test_below_its_rate_nothing_is_dropped(lab: Wires, changes: UndoStack) -> None:
    policer = Policer(PolicerOptions(rate=100_000, burst=20_000))
    await policer.up(lab.testbed, changes)
    with raw_socket(lab.tester, "t0") as raw:
        send_paced(raw, frame(0, 64), 45_000, 90_000)
    assert (await policer.buckets())["d0 to d1"] == Bucket(forwarded_frames=45_000, dropped_frames=0)


async def test_each_direction_has_a_bucket_of_its_own(lab: Wires, changes: UndoStack) -> None:
    policer = Policer(PolicerOptions(rate=1000, burst=50))
    await policer.up(lab.testbed, changes)
    for here in (0, 1):
        with raw_socket(lab.tester, f"t{here}") as raw:
            for _ in range(50):
                raw.send(frame(here, 64))
    assert {name: bucket.dropped_frames for name, bucket in (await policer.buckets()).items()} == {
        "d0 to d1": 0,
        "d1 to d0": 0,
    }
    assert {bucket.forwarded_frames for bucket in (await policer.buckets()).values()} == {50}


async def test_a_device_that_already_runs_a_program_is_refused(lab: Wires, changes: UndoStack) -> None:
    await Policer(PolicerOptions()).up(lab.testbed, changes)
    with pytest.raises(NotReadyError, match="already has an XDP program"):
        await Policer(PolicerOptions()).up(lab.testbed, changes)
