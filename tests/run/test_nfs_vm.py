"""Frames over NFS in a virtual machine, whose server ends in the midst of a round, and over SMB."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nicbench.bench_file import load
from nicbench.core.events import Bus, Event, RoundBegun, RoundFinished
from nicbench.core.result import ResultVerdict, Summary
from nicbench.core.round import Round
from nicbench.hosts.kinds.vm import VmHost
from nicbench.hosts.options import VmOptions
from nicbench.run import run
from nicbench.testbed.vm.booting import folder_of
from nicbench.tuning.undo.processes import STOP_NFS_SERVER

from .lab_bench import machine_state, make_folder

pytestmark = [pytest.mark.vm, pytest.mark.acceptance]  # minutes on an emulated machine

FRAME_BYTES = 4096
BENCH = f"""
nicbench: 1
title: Frames over NFS
hosts: {{guest: {{kind: vm, cpus: 2, memory: 768 MiB}}}}
lab: {{kind: clients, on: guest, clients_per_port: 2}}
dut: {{kind: file-server, share: {{kind: nfs, threads: 4}}, shares: 2, memory: 16 MiB}}
monitor: off
thresholds: {{start_spread_share: 0.9}}
tests:
  - {{name: editors, method: frames, instances: [1, 2], direction: [write], frame_size: {FRAME_BYTES} B,
     frames_per_s: 12 fps, warm_up: 0 s, duration: 2 s, pause: 200 ms, timeout: 8 s}}
"""
WORKS = "for i in $(seq 600); do pgrep -x nicbench-frames >/dev/null && break; sleep 0.1; done; sleep 0.5"
SERVER = "ip netns list | grep -o '^[^ ]*server'"


async def stop_nfs_in_the_midst(begun: asyncio.Event, run_id: str) -> None:
    """As an administrator would, once an instance writes."""
    await begun.wait()
    guest = VmHost(VmOptions(), "guest", folder_of(run_id, "guest"))
    await guest.run(("sh", "-c", WORKS), timeout_s=90.0)
    namespace = (await guest.run(("sh", "-c", SERVER))).stdout.strip()
    await guest.run(("ip", "netns", "exec", namespace, *STOP_NFS_SERVER))


async def run_and_stop(parent: Path) -> tuple[Summary, list[Round]]:
    folder, bus, begun, rounds = make_folder(parent, BENCH), Bus(), asyncio.Event(), list[Round]()

    def hear(event: Event) -> None:
        if isinstance(event, RoundBegun):
            begun.set()
        if isinstance(event, RoundFinished):
            rounds.append(event.round)

    bus.subscribe(folder.journal.append)
    bus.subscribe(hear)
    stopping = asyncio.create_task(stop_nfs_in_the_midst(begun, folder.run_id))
    try:
        summary = await run(load(folder.path / "bench.yaml"), folder, bus)
        await stopping
    finally:
        stopping.cancel()
    assert not Path(folder_of(folder.run_id, "guest")).exists()
    return summary, rounds


def test_a_round_in_which_the_server_was_stopped_is_invalid_and_repeated_with_a_server_that_was_started_again(
    tmp_path: Path,
) -> None:
    before = machine_state()
    summary, rounds = asyncio.run(run_and_stop(tmp_path))
    stopped, *others = rounds
    assert "the NFS server no longer listens on TCP port 2049" in stopped.verdict.findings[0].text
    assert [one.verdict.valid for one in others] == [True, True]  # the repeat, and the round of two instances
    mounts = [[outcome.file_system for outcome in one.outcomes] for one in others]
    assert mounts == [["nfs4 198.18.0.1:/1"], ["nfs4 198.18.0.1:/1", "nfs4 198.18.0.1:/2"]]
    for counter, end in (("tx_bytes", "c0a"), ("tx_bytes", "c0b"), ("rx_bytes", "s0")):
        assert others[1].counters[end][counter] > 10 * FRAME_BYTES
    assert {result.verdict for result in summary.results} <= {ResultVerdict.VALID, ResultVerdict.DISTURBED}
    assert machine_state() == before


def test_frames_are_written_over_smb(tmp_path: Path) -> None:
    before = machine_state()
    folder = make_folder(tmp_path, BENCH.replace("{kind: nfs, threads: 4}", "smb").replace("[1, 2]", "[2]"))
    bus, rounds = Bus(), list[Round]()
    bus.subscribe(lambda event: rounds.append(event.round) if isinstance(event, RoundFinished) else None)
    summary = asyncio.run(run(load(folder.path / "bench.yaml"), folder, bus))
    assert [outcome.file_system for outcome in rounds[-1].outcomes] == ["cifs //198.18.0.1/1", "cifs //198.18.0.1/2"]
    assert summary.results[0].values["sum_frames_per_s"] is not None
    assert machine_state() == before
