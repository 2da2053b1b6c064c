"""Whether the physical cores were ours alone while something was measured: one witness for all programs alike."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from nicbench.engine.binaries import find_binary

# Wider than the threshold of a trial (``dut_contended_share``): both programs of a pair are slowed down alike.
SHARED_SHARE = 0.10
# A neighbour works in spells of some seconds: a sample begins when a spell is over, or after this.
WAIT_S = 2.0
_LOOK_S = 0.1
# The witness must have seen a core at its best.
_WARM_UP_S = 3.0


class CoreWatch:
    """Looks five hundred times a second how much of their physical cores some CPUs get."""

    patience_s: ClassVar[float] = WAIT_S
    warm_up_s: ClassVar[float] = _WARM_UP_S

    def __init__(self, cpus: Sequence[int]) -> None:
        self._process = subprocess.Popen(
            [str(find_binary("nicbench-packets")), "measure", "sharing", *map(str, cpus)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        self.shares: list[float] = []
        self._look(self.warm_up_s)

    def _stretch(self) -> float:
        """The share of slow looks since it was last called, on the CPU with the most."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("\n")
        answer = json.loads(self._process.stdout.readline())
        return max((cpu["slow"] / cpu["looks"] for cpu in answer["cpus"] if cpu["looks"]), default=0.0)

    def _look(self, seconds: float) -> float:
        self._stretch()
        time.sleep(seconds)
        return self._stretch()

    @contextmanager
    def sample(self) -> Iterator[None]:
        """Something is measured meanwhile; it begins when nobody else is on the cores, or after ``patience_s``."""
        end = time.monotonic() + self.patience_s
        while self._look(_LOOK_S) > 0 and time.monotonic() < end:
            pass
        self._stretch()
        yield
        self.shares.append(self._stretch())

    def close(self) -> None:
        """Ends the witness."""
        self._process.kill()
        self._process.communicate()


def look_lines(cpu: int) -> list[str]:
    """``nicbench-packets measure looks``: what looks cost the CPU, and how well short ones judge it; two minutes."""
    command = [str(find_binary("nicbench-packets")), "measure", "looks", str(cpu)]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout)
    unwatched = (cost for cost in report["costs"] if not (cost["looks_per_s"] or cost["detects_stalls"]))
    without = next(unwatched)["lost_share"]
    lines = [
        f"| looks/s at CPU {cpu} | each [µs] | finds pauses too | a thread there loses | beyond no watch | CPU time |",
        "|---|---|---|---|---|---|",
    ]
    for cost in report["costs"]:
        timer = "yes" if cost["detects_stalls"] else "no"
        lost, thread = cost["lost_share"], cost["thread_share"]
        lines.append(
            f"| {cost['looks_per_s']} | {cost['probe_ns'] / 1000:.1f} | {timer} | {100 * lost:.2f} % "
            f"| {100 * (lost - without):+.2f} % | {100 * thread:.2f} % |"
        )
    lines += ["", "| a look of [µs] | looks | slow by one of 8 µs | slow by this alone | missed |"]
    lines.append("|---|---|---|---|---|")
    for probe in report["probes"]:
        counts = " | ".join(str(probe[name]) for name in ("looks", "slow", "false_slow", "missed_slow"))
        lines.append(f"| {probe['probe_ns'] / 1000:.1f} | {counts} |")
    return lines


@contextmanager
def watching(cpus: Sequence[int]) -> Iterator[CoreWatch]:
    """A watch over these CPUs."""
    watch = CoreWatch(cpus)
    try:
        yield watch
    finally:
        watch.close()
