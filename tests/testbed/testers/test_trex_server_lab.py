"""A real TRex server on veths before a policer of known rate, where there is one: `NICBENCH_TREX` names its folder."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.commands import run_captured, run_checked, run_tried
from tests.fakes import NotedChanges
from tests.testbed.duts.lab import Wires, wires

from nicbench.store.folder import RunFolder
from nicbench.testbed.duts.policer import Policer, PolicerOptions

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.acceptance]

NICBENCH = Path(sys.executable).with_name("nicbench")
RATE, BURST = 20_000, 500
CONFIGURATION = """
- version: 2
  port_limit: 2
  interfaces: [t0, t1]
  prefix: {prefix}
  limit_memory: 1024
  low_end: {low_end}
  port_info: [{{ip: 198.18.0.2, default_gw: 198.18.0.1}}, {{ip: 198.19.0.2, default_gw: 198.19.0.1}}]
  platform: {{master_thread_id: 0, latency_thread_id: 2, dual_if: [{{socket: 0, threads: [1]}}]}}
"""
BENCH = """
nicbench: 1
title: TRex before a policer
tester: {{kind: trex, client: {folder}}}
dut: {{kind: external}}
traffic: {{flows: 8}}
tests:
  - name: loss
    method: load-sweep
    of: 40 kpps
    frame_bytes: [64]
    loads: [60 %, 80 %, 100 %]
    trial: {{duration: 1 s, drain: 200 ms, settle: 100 ms}}
"""


@contextmanager
def server(folder: Path, lab: Wires, scratch: Path) -> Iterator[None]:
    """TRex in the tester's namespace, from when it answers."""
    few = (os.cpu_count() or 1) < 3  # it needs three cores, or sleeps on one
    (scratch / "trex.yaml").write_text(CONFIGURATION.format(prefix=lab.tester, low_end=str(few).lower()))
    into = ("ip", "netns", "exec", lab.tester)
    run_checked((*into, "ip", "link", "set", "lo", "up"))
    with (scratch / "trex.log").open("w") as log:
        running = subprocess.Popen(
            (*into, "./_t-rex-64", "-i", "--hdrh", "--cfg", str(scratch / "trex.yaml")),
            cwd=folder,
            env={**os.environ, "LD_LIBRARY_PATH": f"{folder}:{folder}/so/x86_64"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    asking = (*into, sys.executable, "-c", "import socket; socket.create_connection(('127.0.0.1', 4501), 1)")
    try:
        end = time.monotonic() + 60
        while run_tried(asking).returncode:
            assert running.poll() is None, (scratch / "trex.log").read_text()[-2000:]
            assert time.monotonic() < end
            time.sleep(0.5)
        yield
    finally:
        running.kill()
        running.wait()


async def test_the_time_in_which_a_real_server_sent_is_the_time_in_which_the_dut_forwarded(tmp_path: Path) -> None:
    """The policer passes its rate for that time, and its bucket once: a witness which the tester does not know."""
    folder = Path(os.environ.get("NICBENCH_TREX", ""))
    if not (folder / "_t-rex-64").exists():
        pytest.skip("there is no TRex server here: `NICBENCH_TREX` names the folder of an unpacked release")
    with wires() as lab:
        await Policer(PolicerOptions(rate=RATE, burst=BURST)).up(lab.testbed, NotedChanges())
        (tmp_path / "bench.yaml").write_text(BENCH.format(folder=folder))
        with server(folder, lab, tmp_path):
            command = [str(NICBENCH), "run", str(tmp_path / "bench.yaml"), "--output", str(tmp_path / "runs")]
            run = ("ip", "netns", "exec", lab.tester, *command, "--no-progress", "--no-report")
            run_captured(run)
    (run_folder,) = (tmp_path / "runs").iterdir()
    trials = [trial.reading for trial in RunFolder.open(run_folder).journal.trials().values()]
    beyond = []
    for one in trials:
        witness_ns = 1e9 * (one.counts.received - BURST) / RATE
        beyond.append(abs(one.transmit_ns - witness_ns) - (one.health.time_uncertainty_ns or 0))
    assert statistics.median(beyond) < 0.01e9  # a server that sleeps and a busy machine leave some uncertain
