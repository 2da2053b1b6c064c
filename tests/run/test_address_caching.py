"""Address caching on real frames: the limit of a Linux bridge's table is found to the last address."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from nicbench.bench_file import load
from nicbench.core.events import Bus, TrialStarted
from nicbench.core.result import Bounded
from nicbench.run import run

from .lab_bench import TOLERANT, make_folder, output_of, run_bench, trials_of

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.slow, pytest.mark.sampled(2, of="known truths")]

BENCH = """
nicbench: 1
title: Addresses of a bridge
lab: {{kind: veth, ports: 4}}
dut: {{kind: bridge, ageing_s: {ageing_s}, most_learned: {keeps}}}
traffic: {{bidirectional: true}}
tester: {{catch_up: 500 ms}} # what matters is that each frame goes out, not when
tests:
  - name: addresses
    method: address-caching
    most: {most}
    rate: 20 kpps
    trial: {{ageing: {ageing}, pause: 20 ms, drain: 50 ms, attempts: {attempts}}}
"""


def capacity(
    folder: Path, keeps: int, most: int, *, ageing_s: int = 1, ageing: str = "1300 ms", attempts: int = 1
) -> Bounded:
    bench = BENCH.format(keeps=keeps, most=most, ageing_s=ageing_s, ageing=ageing, attempts=attempts) + TOLERANT
    summary, _ = run_bench(folder, bench)
    (result,) = summary.results
    found = result.values["capacity_addresses"]
    assert isinstance(found, Bounded)
    print(f"bridge of {keeps}: {found.lower} kept, {found.upper} not, {result.verdict.value}")
    return found


@pytest.mark.acceptance
def test_the_limit_of_a_bridge_is_found_to_the_last_address(draw: random.Random, tmp_path: Path) -> None:
    keeps = draw.randrange(2, 15)
    found = capacity(tmp_path, keeps, 16)
    assert (found.value, found.upper) == (keeps, keeps + 1)


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_the_limit_is_found_in_ten_of_ten_runs(repetition: int, draw: random.Random, tmp_path: Path) -> None:
    keeps = draw.randrange(100, 4000)
    found = capacity(tmp_path, keeps, 4096, attempts=2)
    assert (found.value, found.upper) == (keeps, keeps + 1)


@pytest.mark.acceptance
def test_a_bridge_that_forgets_at_once_keeps_nothing(tmp_path: Path) -> None:
    reason = capacity(tmp_path, 1000, 64, ageing_s=0).reason_null
    assert str(reason).endswith("not even one address was known")  # after "trials were disturbed:" where all were


# LLDP, from the third port of the bridge, for as long as the process lives.
TALKATIVE = """
import socket, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("d2", 0))
while True:
    s.send(bytes.fromhex("0180c200000e" "02aabbccddee" "88cc") + bytes(46))
    time.sleep(0.01)
"""


def test_what_the_bridge_sends_by_itself_is_no_flooded_frame(draw: random.Random, tmp_path: Path) -> None:
    keeps, talking = draw.randrange(2, 15), list[subprocess.Popen[bytes]]()

    def talk(event: object) -> None:
        if isinstance(event, TrialStarted) and not talking:
            namespace = next(name for name in output_of("ip", "netns", "list").split() if name.endswith("-dut"))
            command = ["ip", "netns", "exec", namespace, sys.executable, "-c", TALKATIVE]
            talking.append(subprocess.Popen(command))

    bench = BENCH.format(keeps=keeps, most=16, ageing_s=1, ageing="1300 ms", attempts=2) + TOLERANT
    folder, bus = make_folder(tmp_path, bench), Bus()
    bus.subscribe(folder.journal.append)
    bus.subscribe(talk)
    try:
        summary = asyncio.run(run(load(folder.path / "bench.yaml"), folder, bus))
    finally:
        for process in talking:
            process.kill()
            process.wait()
    (result,) = summary.results
    found = result.values["capacity_addresses"]
    assert isinstance(found, Bounded)
    assert (found.lower, result.values["flooded_frames"]) == (keeps, 1)
    third = [trial.reading.ports[2] for trial in trials_of(folder) if trial.request.macs is not None]
    assert sum(port.foreign or 0 for port in third) > 10
    assert {port.misdirected for port in third} >= {0, 1}


def test_a_bridge_learns_as_fast_as_the_tester_sends(tmp_path: Path) -> None:
    bench = BENCH.format(keeps=1000, most=2, ageing_s=1, ageing="1300 ms", attempts=1) + TOLERANT
    bench = bench.replace("address-caching", "address-learning").replace("most: 2", "addresses: 200")
    summary, _ = run_bench(tmp_path, bench.replace("    rate: 20 kpps", "    test_rate: 20 kpps"))
    (result,) = summary.results
    rate = result.values["learning_rate_frames_per_s"]
    assert rate.value is not None
    assert rate.at_least
