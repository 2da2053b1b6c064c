"""``ring_loop.c``, kept running over many samples: the plainest DPDK over ``net_ring``, on two cores."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from machine import preferred

SOURCE = Path(__file__).parent / "ring_loop.c"


class RingLoop:
    """One process, which waits between samples."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            preferred(*command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            start_new_session=True,
        )  # fmt: skip
        while (line := self._answer()) != "ready":
            print(f"ring_loop: {line}", flush=True)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def _answer(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("ring_loop ended; its reason is above")
        return line.strip()

    def rate(self, seconds: float, meanwhile: Callable[[], AbstractContextManager[None]]) -> float:
        """Frames a second that arrived; ``meanwhile`` is entered for the time, and may begin late."""
        assert self._process.stdin
        with meanwhile():
            self._process.stdin.write(f"{seconds}\n")
            return float(self._answer())

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def compiled() -> Iterator[Path]:
    """The program, optimized as DPDK itself is, on Debian's shared libraries of it, as its testpmd is."""
    asked = subprocess.run(["pkg-config", "--cflags", "--libs", "libdpdk"], capture_output=True, text=True, check=True)
    flags = shlex.split(asked.stdout)
    with tempfile.TemporaryDirectory(prefix="nicbench-bench-") as folder:
        program = Path(folder) / SOURCE.stem
        subprocess.run(["gcc", "-O3", "-w", str(SOURCE), "-o", str(program), *flags], check=True)
        yield program


@contextmanager
def running_ring_loop(
    program: Path, *, written: int, read: int, sender_cpu: int, receiver_cpu: int, pages: Sequence[str],
    memory_mib: int,
) -> Iterator[RingLoop]:  # fmt: skip
    """A process that writes and reads the first bytes of each frame."""
    process = RingLoop([
        str(program), "--no-pci", *pages, "--no-telemetry", "--log-level=warning", "-m", str(memory_mib),
        "--lcores", f"0@{receiver_cpu},1@{sender_cpu}", f"--file-prefix=nicbench-bench-{os.getpid()}-{written}-{read}",
        "--vdev=net_ring0", "--", str(written), str(read),
    ])  # fmt: skip
    try:
        yield process
    finally:
        process.close()
