"""A file server and its clients: frames through mounts of their own, and nothing left, also where the server dies."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from nicbench.core.events import RoundFinished
from nicbench.engine.binaries import find_binary
from nicbench.hosts.kinds.local import LocalHost
from nicbench.testbed.duts.file_server import FileServer, FileServerOptions
from nicbench.testbed.labs.clients import ClientsLab, ClientsOptions
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.files import RemovePath

from .lab_bench import machine_state, make_folder, run_async

pytestmark = pytest.mark.lab

FRAME_BYTES, FRAMES = 100_000, 24
BENCH = """
nicbench: 1
title: Shares
lab: {kind: clients, clients_per_port: 2}
dut: {kind: file-server, share: sftp, shares: 2, memory: 64 MiB}
monitor: off
tests:
  - {name: editors, method: frames, instances: [2], direction: [read], frame_size: 100 kB, frames_per_s: 24 fps,
     warm_up: 0 s, duration: 1 s, pause: 0 s, drop_caches: false}
"""


def mounts() -> list[str]:
    return [line for line in Path("/proc/mounts").read_text().splitlines() if "nicbench-" in line]


@pytest.mark.sampled(3, of="alone in turn")
@pytest.mark.alone  # each reads so many frames in its second
def test_each_instance_reads_its_share_over_the_network(tmp_path: Path) -> None:
    before = machine_state()
    folder = make_folder(tmp_path, BENCH)
    asyncio.run(run_async(folder))
    (one,) = (event.round for event in folder.journal.events() if isinstance(event, RoundFinished))
    assert [outcome.failure for outcome in one.outcomes] == [None, None]
    assert [job.client for job in one.request.jobs] == ["c0a", "c0b"]
    for client in ("c0a", "c0b"):
        assert one.counters[client]["rx_bytes"] > FRAME_BYTES * FRAMES
    assert machine_state() == before
    assert mounts() == []


async def test_a_server_that_is_killed_fails_its_client_by_name_and_is_undone(tmp_path: Path) -> None:
    before = machine_state()
    changes = UndoStack("shares", None, tmp_path / "run")
    program = str(find_binary("nicbench-frames"))
    try:
        bed = await ClientsLab(ClientsOptions()).up(changes, LocalHost("local"))
        server = FileServer(FileServerOptions.model_validate({"share": "sftp", "memory": "64 MiB"}))
        await server.up(bed, changes)
        (mount,) = server.mounts()
        client, ours = bed.endpoints[mount.endpoint].host, f"{mount.directory}/ours"

        async def apply() -> None:
            await client.run(("mkdir", ours))

        await changes.make(client, RemovePath(path=ours), apply)
        await client.run((program, "prepare", ours, "--frame-size", str(FRAME_BYTES), "--frames", str(FRAMES)))
        for pid in (await bed.server.run(("ip", "netns", "pids", bed.server.spec()["namespace"]))).stdout.split():
            await LocalHost().run(("kill", f"-{int(signal.SIGKILL)}", pid), check=False)
        read = await client.run((program, "read", ours), check=False, timeout_s=60.0)
        assert read.status != 0
        assert ours in read.stderr
    finally:
        assert await changes.undo_all() == []
    assert machine_state() == before
    assert mounts() == []
