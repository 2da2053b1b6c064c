"""The policer with real frames: what passes is what the arithmetic says."""

from __future__ import annotations

import pytest
from lab import TESTER_MACS, Wires
from wire import raw_socket, send_paced, udp_frame

from nicbench.duts.policer import Policer, PolicerOptions, expected_frames
from nicbench.tuning.stack import UndoStack

pytestmark = pytest.mark.lab

ADDRESSES = {4: ("198.18.64.0", "198.19.64.0"), 6: ("2001:2:0:100::1", "2001:2:0:8100::1")}


def frame(here: int, size: int, ip: int = 4) -> bytes:
    there = 1 - here
    return udp_frame(TESTER_MACS[here], TESTER_MACS[there], ADDRESSES[ip][here], ADDRESSES[ip][there], size)


@pytest.mark.parametrize("size", [64, 1518])
async def test_what_exceeds_rate_and_burst_is_dropped(size: int, lab: Wires, changes: UndoStack) -> None:
    """300,000 offered to 200,000: the passed frames are rate x T + burst, whatever T the machine really took."""
    policer = Policer(PolicerOptions(rate=200_000, burst=4000))
    await policer.up(lab.testbed, changes)
    before = lab.received_frames("t1")
    with raw_socket(lab.tester, "t0") as raw:
        taken_s = send_paced(raw, frame(0, size), 300_000, 300_000)
    passed = lab.received_frames("t1") - before
    expected = expected_frames(200_000, 4000, taken_s)
    # The clock is read outside the first and the last burst; a held-up sender finds at most the full bucket again.
    assert passed == pytest.approx(expected, rel=0.01)
    bucket = (await policer.buckets())["d0 to d1"]
    assert bucket.forwarded_frames == passed
    assert bucket.dropped_frames == 300_000 - passed
    assert (await policer.drops())["policer d0 to d1"] == 300_000 - passed
