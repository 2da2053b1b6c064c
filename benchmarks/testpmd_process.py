"""``dpdk-testpmd``, kept running over many samples: it forwards between ``start`` and ``stop`` at its prompt."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from machine import preferred

PROMPT = "testpmd> "
END_OF_STATISTICS = "#" * 76
MBUFS = 16384
DESCRIPTORS = 2048
BURST = 32
# A sender that has just begun over memif is slow for some tenths of a second.
WARM_UP_S = 0.5


class Testpmd:
    """One interactive process."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = list(command)
        self._text = ""
        self._process = subprocess.Popen(
            # Into a pipe it would keep its answers until it ends.
            preferred("stdbuf", "-oL", *self.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._read_past(PROMPT)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def say(self, command: str, until: str) -> str:
        """What it answers to a command, up to the line that ends the answer."""
        assert self._process.stdin
        self._process.stdin.write(command.encode() + b"\n")
        self._process.stdin.flush()
        return self._read_past(until)

    def _read_past(self, end: str) -> str:
        assert self._process.stdout
        while end not in self._text:
            part = os.read(self._process.stdout.fileno(), 65536)
            if not part:
                raise RuntimeError(f"{' '.join(self.command)} ended: {self._text[-2000:]}")
            self._text += part.decode(errors="replace")
        answer, _, self._text = self._text.partition(end)
        return answer

    def rate(self, seconds: float, meanwhile: Callable[[], AbstractContextManager[None]]) -> float:
        """Frames a second that its port sent, forwarding for a while before it is measured for ``seconds``.

        ``meanwhile`` is entered for the time measured; it may begin late.
        """
        self.say("start", "TX queue: 0")
        time.sleep(WARM_UP_S)
        with meanwhile():
            self.say("show port stats 0", END_OF_STATISTICS)
            time.sleep(seconds)
            shown = self.say("show port stats 0", END_OF_STATISTICS)
        self.say("stop", "Done.")
        # Its own difference over its own clock since it was last asked.
        found = re.search(r"Tx-pps:\s+(\d+)", shown)
        if not found:
            raise RuntimeError(f"testpmd shows no Tx-pps: {shown}")
        return float(found[1])

    @contextmanager
    def forwarding(self) -> Iterator[None]:
        """Forwards meanwhile."""
        self.say("start", "TX queue: 0")
        try:
            yield
        finally:
            self.say("stop", "Done.")

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def running_testpmd(
    name: str, vdevs: Sequence[str], options: Sequence[str], *, main_cpu: int, worker_cpu: int,
    inside: Sequence[str] = (), pages: Sequence[str] = ("--no-huge",), memory_mib: str = "512",
) -> Iterator[Testpmd]:  # fmt: skip
    """A process with one forwarding core. Buffers, rings and bursts are as many as ours."""
    process = Testpmd([
        *inside, "dpdk-testpmd", "--no-pci", *pages, "--no-telemetry", "-m", memory_mib,
        "--lcores", f"0@{main_cpu},1@{worker_cpu}", f"--file-prefix=nicbench-bench-{os.getpid()}-{name}",
        *(f"--vdev={vdev}" for vdev in vdevs), "--", "-i", f"--total-num-mbufs={MBUFS}",
        f"--txd={DESCRIPTORS}", f"--rxd={DESCRIPTORS}", f"--burst={BURST}", "--no-flush-rx", *options,
    ])  # fmt: skip
    try:
        yield process
    finally:
        process.close()
