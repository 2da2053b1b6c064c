"""What spoils a trial is seen, and is not charged to the DUT."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nicbench.core.judging import Reason, Thresholds
from nicbench.core.result import ResultVerdict
from nicbench.core.trial import Purpose, TrialRequest
from nicbench.measure.trial_verdict import Evidence, judge

from .lab_bench import run_bench, short
from .one_trial import readings

pytestmark = [pytest.mark.lab, pytest.mark.alone]

REQUEST = TrialRequest(
    frame_bytes=64, load_frames_per_s=150_000, duration_s=1.0, drain_s=0.1, settle_s=0.05, purpose=Purpose.SEARCH
)


def test_a_receiver_paused_for_50_ms_gives_an_invalid_trial_and_charges_no_loss() -> None:
    pause = {"pause_receive_after_s": 0.3, "pause_receive_s": 0.05}
    paused, undisturbed = asyncio.run(
        readings("nb-test-paused", short("{kind: policer, rate: 250 kpps}"), [(REQUEST, pause), (REQUEST, None)])
    )
    verdict = judge(Evidence.of(paused), Thresholds())
    assert Reason.RECEIVE_OVERRUN in verdict.reasons
    assert sum(port.receive_overrun for port in paused.ports) > 0
    assert undisturbed.counts.lost == 0  # the repeat, which is what the DUT is judged by


@contextmanager
def busy_process_on(cpu: int) -> Iterator[None]:
    process = subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def is_idle(cpu: int) -> bool:
    """Whether nothing else works on a processor just now; what is done at the lowest priority is work, too."""

    def idle_and_all() -> tuple[int, int]:
        line = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith(f"cpu{cpu} "))
        ticks = list(map(int, line.split()[1:9]))
        return ticks[3] + ticks[4], sum(ticks)

    before = idle_and_all()
    time.sleep(0.5)
    after = idle_and_all()
    return after[0] - before[0] > 0.9 * (after[1] - before[1])


# The tester overloads no core: what its packets leave of the DUT's core goes to whoever wants it.
LIGHT_LOAD = """
nicbench: 1
title: A busy process on the DUT's core
lab: {kind: veth}
dut: {kind: kernel-forward}
thresholds:
  {longest_gap_ms: 500, total_gap_share: 0.9, unsent_share: 0.2, dut_contended_share: 1.0,
  dut_pause_ms: 500, dut_steal_share: 1.0}
tests:
  - name: light
    method: load-sweep
    frame_bytes: [64]
    of: 10 kpps
    loads: [100 %]
    trial: {duration: 500 ms, drain: 100 ms, settle: 50 ms}
"""


@pytest.mark.sampled(1, of="long labs")
def test_a_busy_process_on_the_duts_core_is_what_makes_the_run_disturbed(tmp_path: Path) -> None:
    """Only what runs on the DUT's core may decide: every other threshold is wide."""
    was_idle = is_idle(1)
    undisturbed, _ = run_bench(tmp_path / "quiet", LIGHT_LOAD)
    was_idle = was_idle and is_idle(1)
    with busy_process_on(1):
        disturbed, trials = run_bench(tmp_path / "busy", LIGHT_LOAD)
    assert undisturbed.verdict is ResultVerdict.VALID or not was_idle
    assert disturbed.verdict is ResultVerdict.DISTURBED
    assert {finding.threshold for trial in trials for finding in trial.verdict.findings} == {"dut_foreign_cpu_share"}
