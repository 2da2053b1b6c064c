"""Processes are placed by NUMA nodes on a kernel that has two, with a card on each; where they were is read there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nicbench.core.events import RoundFinished
from nicbench.core.round import Round
from nicbench.testbed.vm.programs import find_emulator

from .lab_bench import machine_state, make_folder, run_async

pytestmark = [pytest.mark.vm, pytest.mark.acceptance]  # minutes on an emulated machine

BENCH = """
nicbench: 1
title: Two nodes
hosts:
  guest:
    kind: vm
    cpus: 2
    memory: 1 GiB
    nodes: 2
    cards:
      n0: {{model: {model}, network: a, node: 0}}
      n1: {{network: b, node: 1}}
      p0: {{network: a, node: 0}}
      p1: {{network: b, node: 1}}
  server: {{kind: netns, namespace: server, on: guest, create: true}}
  client: {{kind: netns, namespace: client, on: guest, create: true}}
ports:
  s0: {{host: server, device: n0, ip: 198.18.0.1/24}}
  s1: {{host: server, device: n1, ip: 198.18.1.1/24}}
  c0: {{host: client, device: p0, ip: 198.18.0.2/24}}
  c1: {{host: client, device: p1, ip: 198.18.1.2/24}}
links: [s0 <-> c0, s1 <-> c1]
dut: {{kind: server}}
monitor: off
thresholds: {{start_spread_share: 0.9}}
tests:
  - name: bandwidth
    method: placement
    nodes: [remote, balanced]
    memory_loads: [0]
    of: {{method: stream, workload: iperf3, at_once: [all], duration: 1 s}}
"""


# One card near both sockets: two functions on one cable, and one port of the client that serves both.
DIRECT = (
    BENCH.replace("n1: {{network: b", "n1: {{network: a")
    .replace("      p1: {{network: b, node: 1}}\n", "")
    .replace("device: p1", "device: p0")
)


def rounds_of(tmp_path: Path, bench: str) -> list[Round]:
    folder = make_folder(tmp_path, bench.format(model="igb" if find_emulator().has_igb else "e1000e"))
    asyncio.run(run_async(folder))
    return [event.round for event in folder.journal.events() if isinstance(event, RoundFinished)]


@pytest.mark.parametrize("bench", [BENCH, DIRECT], ids=["a card at each node", "a card near both"])
def test_servers_run_on_the_node_that_they_were_placed_on_and_so_is_their_memory(tmp_path: Path, bench: str) -> None:
    before = machine_state()
    rounds = [one for one in rounds_of(tmp_path, bench) if all(outcome.failure is None for outcome in one.outcomes)]
    other = {0: 1, 1: 0}
    node_of = {"s0": 0, "s1": 1}  # one CPU each, of the same number
    assert {one.parameters["nodes"] for one in rounds} == {"remote", "balanced"}
    for one in rounds:
        for job, outcome in zip(one.request.jobs, one.outcomes, strict=True):
            near = node_of[str(job.server)]
            wanted = other[near] if one.parameters["nodes"] == "remote" else near
            was = outcome.server_ran_on
            assert was.cpus == (wanted,)
            assert was.pages[wanted] >= 0.95 * sum(was.pages.values())
    assert machine_state() == before
