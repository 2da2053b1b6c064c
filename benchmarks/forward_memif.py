"""How fast our forwarder (`nicbench-packets reflect`, without faults) is beside dpdk-testpmd's macswap, over memif.

One memif link, two cores. On one core a testpmd of mode `io` sends 1024 frames and hands back whatever returns; on the
other the forwarder under test takes them in and sends them back out of the same port. So many frames fit into either
ring, so that none is dropped, and the slower of the two sets the pace: `io` touches no frame, macswap touches each.
The rate is what the peer received, the same counter for both.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from core_watch import CoreWatch
from machine import preferred
from nicbench.engine.binaries import find_binary

BURST = 32
DESCRIPTORS = 2048
MBUFS = 16384
# In bursts; 1024 frames are half of a ring of 2048.
FRAMES_IN_THE_LOOP = 32
SETTLE_S = 0.3
PROMPT = "testpmd> "
STARTS_WITHIN_S = 15.0


class Forwarder(Protocol):
    """Forwards at the server's end of ``socket``, on ``cpu``, while the context is entered."""

    __name__: str

    def __call__(self, socket: str, cpu: int) -> AbstractContextManager[None]: ...


def measure(forwarder: Forwarder, cpus: Sequence[int], seconds: float, watch: CoreWatch) -> float:
    """Frames per second through one forwarder. ``cpus``: the peer's and the forwarder's."""
    with tempfile.TemporaryDirectory(prefix="nicbench-bench-") as folder:
        socket = str(Path(folder, "memif.sock"))
        with forwarder(socket, cpus[1]), Testpmd("io", socket, "client", cpus[0]) as peer:
            peer.wait_for_link()
            # A client offers buffers only when it receives: without them the first frames would not come back.
            peer.say("start")
            peer.say("stop")
            peer.say(f"start tx_first {FRAMES_IN_THE_LOOP}")
            time.sleep(SETTLE_S)
            with watch.sample():
                frames, start = peer.received(), time.monotonic()
                time.sleep(seconds)
                more, elapsed_s = peer.received() - frames, time.monotonic() - start
            if not more:
                raise RuntimeError(f"{forwarder.__name__}: no frame came back")
            return more / elapsed_s


def memif(socket: str, role: str) -> str:
    """One end of the link."""
    return f"net_memif0,role={role},id=0,socket={socket},socket-abstract=no,rsize={DESCRIPTORS.bit_length() - 1}"


class Testpmd:
    """A testpmd at its prompt, with one memif port that sends back what it receives."""

    def __init__(self, mode: str, socket: str, role: str, cpu: int) -> None:
        # The thread at the prompt sleeps, so that it may share the core.
        self._process = subprocess.Popen(
            preferred(
                *("stdbuf", "-oL", "dpdk-testpmd", "--no-pci", "--no-huge", "--no-telemetry", "-m", "256"),
                *("--lcores", f"0@{cpu},1@{cpu}", f"--file-prefix=nicbench-bench-{os.getpid()}-{role}"),
                *(f"--vdev={memif(socket, role)}", "--", "-i", f"--forward-mode={mode}"),
                *(f"--txd={DESCRIPTORS}", f"--rxd={DESCRIPTORS}", f"--burst={BURST}"),
                *(f"--total-num-mbufs={MBUFS}", "--no-flush-rx", "--no-lsc-interrupt"),
            ),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip

    def __enter__(self) -> Testpmd:
        self._read_to_prompt()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def say(self, command: str) -> str:
        """The answer to a command."""
        assert self._process.stdin
        self._process.stdin.write(command.encode() + b"\n")
        self._process.stdin.flush()
        return self._read_to_prompt()

    def _read_to_prompt(self) -> str:
        assert self._process.stdout
        text = ""
        while not text.endswith(PROMPT):
            part = os.read(self._process.stdout.fileno(), 65536).decode(errors="replace")
            if not part:
                raise RuntimeError(f"dpdk-testpmd ended: {text[-1000:]}")
            text += part
        return text

    def wait_for_link(self) -> None:
        """Until the other end has joined."""
        end = time.monotonic() + STARTS_WITHIN_S
        while "Link status: up" not in self.say("show port info 0"):
            if time.monotonic() > end:
                raise RuntimeError("the memif link does not come up")
            time.sleep(0.05)

    def received(self) -> int:
        """Frames so far."""
        found = re.search(r"RX-packets:\s*(\d+)", self.say("show port stats 0"))
        if not found:
            raise RuntimeError("dpdk-testpmd shows no RX-packets")
        return int(found[1])


@contextmanager
def testpmd_macswap(socket: str, cpu: int) -> Iterator[None]:
    """The peer of ours."""
    with Testpmd("macswap", socket, "server", cpu) as forwarder:
        forwarder.say("start")
        yield


@contextmanager
def reflector(socket: str, cpu: int) -> Iterator[None]:
    """Ours, with the same burst, rings and memory."""
    port = {
        "name": "d0", "kind": "vdev", "vdev": memif(socket, "server"),
        "transmit_descriptors": DESCRIPTORS, "receive_descriptors": DESCRIPTORS,
    }  # fmt: skip
    configuration = {"worker_cpu": cpu, "mode": "mac_swap", "burst": BURST, "memory_mib": 256, "ports": [port]}
    process = subprocess.Popen(
        [str(find_binary("nicbench-packets")), "reflect"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1,
    )  # fmt: skip
    try:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(configuration) + "\n")
        for event in map(json.loads, process.stdout):
            if event["event"] == "failed":
                raise RuntimeError(f"nicbench-packets reflect: {event['error']['message']}")
            if event["event"] == "forwarding":
                break
        yield
    finally:
        process.kill()
        process.communicate()
