"""A device that opens each flow with its first frame, which it drops: no trial counts that frame."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

from nicbench.bench_file import parse
from nicbench.core.events import Bus
from nicbench.core.judging import Thresholds
from nicbench.core.traffic import Learning
from nicbench.core.trial import Purpose, Reading, TrialRequest
from nicbench.measure.samples import SampleLog
from nicbench.measure.surroundings import TrialSetup
from nicbench.measure.trials import TrialMaker
from nicbench.stages.testbed import lay_out_ways, make_dut, make_testbed
from nicbench.stages.tester import make_tester
from nicbench.tuning.stack import UndoStack

pytestmark = pytest.mark.lab

FLOWS = 4096
BENCH = """
nicbench: 1
title: Flows that are opened one by one
lab: {{kind: veth}}
dut: {{kind: kernel-forward}}
tester: {{driver: {driver}}}
traffic: {{flows: {flows}}}
tests:
  - {{name: loss, method: frame-loss, frame_bytes: [64], of: 20 kpps}}
"""
# A stateful firewall in small: what it has not seen is remembered, and dropped this once.
DROPS_THE_FIRST = """
table ip opens {
  set seen {
    type ipv4_addr . ipv4_addr
    flags dynamic
    size 65536
    timeout 60s
  }
  chain forward {
    type filter hook forward priority 0;
    ip saddr . ip daddr @seen accept
    add @seen { ip saddr . ip daddr } drop
  }
}
"""
REQUEST = TrialRequest(
    frame_bytes=64, load_frames_per_s=20_000.0, duration_s=0.4, drain_s=0.2, settle_s=0.05, purpose=Purpose.LOSS
)


async def counted(driver: str) -> tuple[Reading, Reading]:
    """A trial before which a few frames were sent, and one before which all flows were; the device knows no flow."""
    bench = parse(BENCH.format(driver=driver, flows=FLOWS).encode(), Path("bench.yaml"))
    changes = UndoStack(f"nb-test-{secrets.token_hex(3)}", None)
    readings = []
    try:
        _, testbed = await make_testbed(bench, changes)
        dut = await make_dut(bench, testbed, changes)
        _, addressing = lay_out_ways(bench, testbed, dut)
        assert testbed.dut is not None
        for flows in ("few", "all"):
            await testbed.dut.run(("nft", "flush", "ruleset"))
            await testbed.dut.run(("nft", "-f", "-"), input_text=DROPS_THE_FIRST)
            tester = make_tester(bench, testbed, (), changes.run_id, None)
            await tester.start()
            try:
                learning = Learning.model_validate({"flows": flows})
                setup = TrialSetup(tester, dut, addressing, port_names=("t0", "t1"), learning=learning)
                maker = TrialMaker(setup, Thresholds(), SampleLog({}, Bus()))
                readings.append((await maker.make("t/0/0", "t", {}, REQUEST, 0)).reading)
            finally:
                await tester.close()
        return readings[0], readings[1]
    finally:
        assert await changes.undo_all() == []


@pytest.mark.sampled(4, of="labs in turn")
@pytest.mark.parametrize("driver", ["net_af_xdp", "xdp"])
def test_the_first_frame_of_each_flow_is_lost_before_the_trial_and_not_in_it(driver: str) -> None:
    few, every = asyncio.run(counted(driver))
    assert min(few.counts.sent, every.counts.sent) > FLOWS
    assert few.counts.lost > 0.9 * FLOWS
    assert not few.learning
    assert every.counts.lost < 0.01 * every.counts.sent  # a busy machine may drop a few in the DUT's queue
    (learnt,) = every.learning
    assert (learnt.flows, learnt.silent) == (FLOWS, 0)
    assert learnt.frames_per_flow >= 3  # the first attempt was in vain
