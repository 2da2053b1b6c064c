"""Somebody works by ssh over an interface where a tester inside the kernel measures: neither disturbs the other."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
import subprocess
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass
from pathlib import Path

import pytest

from nicbench.bench_file import parse
from nicbench.core.trial import Purpose, Reading, TrialRequest
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.stages.testbed import lay_out_ways, make_dut, make_testbed
from nicbench.stages.tester import make_tester
from nicbench.tuning.stack import UndoStack

from .sshd_server import Server

pytestmark = [pytest.mark.lab, pytest.mark.alone]

BENCH = """
nicbench: 1
title: Beside ssh
lab: {kind: veth}
dut: {kind: kernel-forward}
traffic: {bidirectional: true, flows: 16}
tester: {driver: xdp, catch_up: 100 ms}
tests: [{name: t, method: throughput, frame_bytes: [128]}]
"""
REQUEST = TrialRequest(
    frame_bytes=128,
    load_frames_per_s=5_000,
    duration_s=2.0,
    drain_s=0.2,
    settle_s=0.05,
    purpose=Purpose.LATENCY,
    bidirectional=True,
)
NEAR, FAR, PORT = "198.19.200.1", "198.19.200.2", 2222
PIECE_BYTES, PIECES_PER_S = 32 * 1024, 200  # 6.5 MB/s each way: busy, and less than what fills the DUT's queue
LARGEST_SEGMENT_BYTES = 1448  # of TCP over Ethernet of 1500 bytes, with time stamps


@dataclass
class Echo:
    """What was sent through ``ssh cat`` and came back."""

    sent_bytes: int
    sent: str
    came: str


async def talk(client: Process, until: asyncio.Event) -> Echo:
    """Sends random bytes, as fast as somebody who copies files over a slow link, and reads them back."""
    assert client.stdin is not None
    assert client.stdout is not None
    sent, came, draw, sent_bytes = hashlib.sha256(), hashlib.sha256(), random.Random(7), 0

    async def read(output: asyncio.StreamReader) -> None:
        while piece := await output.read(PIECE_BYTES):
            came.update(piece)

    reader = asyncio.create_task(read(client.stdout))
    while not until.is_set():
        piece = draw.randbytes(PIECE_BYTES)
        client.stdin.write(piece)
        await client.stdin.drain()
        sent.update(piece)
        sent_bytes += len(piece)
        await asyncio.sleep(1 / PIECES_PER_S)
    client.stdin.close()
    await asyncio.wait_for(reader, 30)
    assert await asyncio.wait_for(client.wait(), 10) == 0
    return Echo(sent_bytes, sent.hexdigest(), came.hexdigest())


async def measure_beside(server: Server, user: str) -> tuple[Reading, Echo]:
    """A trial, and a connection over the tester's first port that begins before it and ends after it."""
    bench = parse(BENCH.encode(), Path("bench.yaml"))
    changes = UndoStack("nb-test-ssh-beside", None)
    with contextlib.ExitStack() as stack:
        try:
            _, testbed = await make_testbed(bench, changes)
            dut = await make_dut(bench, testbed, changes)
            _, ways = lay_out_ways(bench, testbed, dut)
            near, far = testbed.tester, testbed.dut
            assert isinstance(near, NetnsHost)
            assert isinstance(far, NetnsHost)
            for host, device, address in ((near, "t0", NEAR), (far, "d0", FAR)):
                await host.run(("ip", "address", "add", f"{address}/30", "dev", device))
            options = ("-D", "-f", str(server.config), "-o", f"ListenAddress={FAR}:{PORT}")
            inside = ("ip", "netns", "exec", far.namespace)
            daemon = stack.enter_context(subprocess.Popen((*inside, server.command()[0], *options)))
            stack.callback(daemon.terminate)
            tester = make_tester(bench, testbed, (), changes.run_id, None)
            await tester.start()
            try:
                client = await connect(near.namespace, server, user)
                until = asyncio.Event()
                talking = asyncio.create_task(talk(client, until))
                reading = await tester.trial(1, REQUEST, ways)
                until.set()
                return reading, await talking
            finally:
                await tester.close()
        finally:
            await changes.undo_all()


async def connect(namespace: str, server: Server, user: str) -> Process:
    """A client whose far end sends back what it gets, once it does."""
    words = ("-p", str(PORT), "-i", str(server.folder / "user"), "-o", f"UserKnownHostsFile={server.known_hosts}")
    command = ("ip", "netns", "exec", namespace, "ssh", "-F", "none", "-T", *words, f"{user}@{FAR}", "cat")
    for _ in range(100):  # until sshd listens
        client = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
        assert client.stdout is not None
        client.stdin.write(b"ready\n")
        if await client.stdout.readline() == b"ready\n":
            return client
        await client.wait()
        await asyncio.sleep(0.1)
    raise AssertionError("sshd does not answer")


@pytest.mark.sampled(3, of="alone in turn")
def test_a_busy_connection_over_the_measured_interface_goes_on_and_nothing_is_miscounted(
    sshd_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    server = Server(sshd_folder)
    user = server.options().user
    assert user is not None
    reading, echo = asyncio.run(measure_beside(server, user))
    assert echo.sent_bytes > 500_000
    assert echo.came == echo.sent
    counts = reading.counts
    assert counts.sent == counts.intended == 2 * 10_000
    assert (counts.received, counts.lost) == (counts.sent, 0)
    assert (counts.duplicated, counts.reordered) == (0, 0)
    assert (counts.corrupted, counts.corrupted_unattributed, counts.unattributed) == (0, 0, 0)
    busy, quiet = reading.ports[:2]
    assert quiet.foreign == 0
    assert busy.foreign is not None
    assert busy.foreign > echo.sent_bytes / 2 / LARGEST_SEGMENT_BYTES  # at least half of them came during the trial
    print(f"ssh: {echo.sent_bytes / 1e6:.1f} MB each way, {busy.foreign} frames passed to the kernel")
