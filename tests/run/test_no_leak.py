"""No test frame leaves the lab. First the detector is shown to see a leak, then it finds none."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.commands import run_checked

from nicbench.bench_file import parse
from nicbench.core.trial import Purpose, TrialRequest
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.stages.testbed import make_dut, make_testbed
from nicbench.stages.tester import make_tester
from nicbench.testbed.testers.packets import run_key
from nicbench.tuning.stack import UndoStack

from .lab_bench import output_of, short

pytestmark = pytest.mark.lab

RUN_ID = "nb-test-leak"
OUTSIDE = "nb-test-outside"
REQUEST = TrialRequest(
    frame_bytes=64, load_frames_per_s=20_000, duration_s=0.5, drain_s=0.1, settle_s=0.05, purpose=Purpose.LATENCY
)
# Listens on every interface of its namespace until its input ends, and prints how many frames carry the source port
# that this run's key gave them: nobody else's frames do.
DETECTOR = """
import select, socket, sys
port, seen = int(sys.argv[1]).to_bytes(2, 'big'), 0
sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
sniffer.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
print('ready', flush=True)
while True:
    readable, _, _ = select.select([sniffer, sys.stdin], [], [])
    if sniffer in readable:
        frame = sniffer.recv(2048)
        seen += frame[12:14] == b'\\x08\\x00' and frame[23] == 17 and frame[34:36] == port
    elif not sys.stdin.read(1):
        break
print(seen, flush=True)
"""


@contextmanager
def detector(port: int, namespace: str | None = None) -> Iterator[list[int]]:
    """Counts our frames on every interface of a namespace (None: this machine's first) while it is entered."""
    inside = ["ip", "netns", "exec", namespace] if namespace else []
    command = [*inside, sys.executable, "-c", DETECTOR, str(port)]
    seen = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().strip() == "ready"
        yield seen
        out, _ = process.communicate(timeout=30)
        seen.append(int(out))


@contextmanager
def outside() -> Iterator[None]:
    """A further namespace: the only place a leak of this test can end."""
    run_checked(["ip", "netns", "add", OUTSIDE])
    try:
        yield
    finally:
        run_checked(["ip", "netns", "del", OUTSIDE])


async def open_a_leak(dut: NetnsHost) -> None:
    """The DUT routes the frames' destinations to a device whose other end is outside."""
    await dut.run(["ip", "link", "add", "leak0", "type", "veth", "peer", "name", "leak1", "netns", OUTSIDE])
    await dut.run(["ip", "link", "set", "dev", "leak0", "up"])
    run_checked(["ip", "-n", OUTSIDE, "link", "set", "dev", "leak1", "up"])
    routes = (await dut.run(["ip", "-4", "route", "show", "dev", "d1"])).stdout
    for network in [line.split()[0] for line in routes.splitlines() if "via" in line]:
        await dut.run(["ip", "route", "replace", network, "dev", "leak0"])
        await dut.run(["ip", "neigh", "replace", network.split("/")[0], "lladdr", "02:00:00:00:ff:01", "dev", "leak0"])
    # Whatever is not resolved would be dropped instead of leaking: every destination gets the same neighbour.
    await dut.run(["ip", "link", "set", "dev", "leak0", "arp", "off"])


async def send(*, leaking: bool) -> int:
    """Sends for half a second through the kernel's forwarding; how many frames came back."""
    source_port = 1024 + run_key(RUN_ID, 1) % 60_000
    text = short("{kind: kernel-forward}") + f"traffic: {{source_port: {source_port}}}\n"
    bench = parse(text.encode(), Path("bench.yaml"))
    changes = UndoStack(RUN_ID, None)
    try:
        _, testbed = await make_testbed(bench, changes)
        dut = await make_dut(bench, testbed, changes)
        assert isinstance(testbed.dut, NetnsHost)
        if leaking:
            await open_a_leak(testbed.dut)
        tester = make_tester(bench, testbed, (), RUN_ID, None)
        await tester.start()
        try:
            reading = await tester.trial(1, REQUEST, dut.addressing(testbed, 4))
        finally:
            await tester.close()
        return reading.counts.received
    finally:
        await changes.undo_all()


SOURCE_PORT = 1024 + run_key(RUN_ID, 1) % 60_000


def test_the_detector_sees_frames_that_leak_into_a_further_namespace() -> None:
    with outside(), detector(SOURCE_PORT, OUTSIDE) as seen:
        assert asyncio.run(send(leaking=True)) == 0
    assert seen[0] > 1_000


def test_no_frame_of_a_run_is_seen_outside_its_namespaces() -> None:
    with outside(), detector(SOURCE_PORT, OUTSIDE) as beside, detector(SOURCE_PORT) as here:
        assert asyncio.run(send(leaking=False)) > 1_000
    assert beside == [0]
    assert here == [0]
    default = output_of("ip", "-4", "route", "show", "default").split()
    assert "t0" not in default
