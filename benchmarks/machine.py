"""The machine during a benchmark: CPUs, huge pages for the time it takes, and the core's real clock."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from engine_process import engine, stream

HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")


def preferred(*command: str) -> list[str]:
    """A peer's command, begun in a session of its own (``start_new_session``) with the preference of our engine.

    That gives itself nice -20, and its session too (``sys::thread::prefer``): where others use the same cores, a peer
    without it is measured too slow.
    """
    script = 'echo -20 >/proc/self/autogroup 2>/dev/null; exec "$@"'
    return ["nice", "-n", "-20", "sh", "-c", script, "sh", *command]


@dataclass(frozen=True, slots=True)
class Cpus:
    """``worker`` runs what is measured, ``other`` the far end and everything that sleeps."""

    worker: int
    other: int


def two_cpus() -> Cpus:
    """The first and the last that may be used."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise RuntimeError("two CPUs are needed")
    return Cpus(worker=allowed[-1], other=allowed[0])


@contextmanager
def huge_pages(count: int) -> Iterator[bool]:
    """Whether so many more huge pages could be had; what was set before is set again at the end."""
    before = int(HUGE_PAGES.read_text())
    try:
        HUGE_PAGES.write_text(str(before + count))
        yield int(HUGE_PAGES.read_text()) >= before + count
    finally:
        HUGE_PAGES.write_text(str(before))


@dataclass
class ClockProbe:
    """The worker core's clock, timed before and after samples: on virtual machines it moves while the TSC does not."""

    cpu: int
    seen_hz: list[float] = field(default_factory=list)

    def take(self) -> float:
        """Now, in Hz; an engine of its own, for one that waits too long for its next request ends."""
        port = {"name": "probe", "kind": "simulated", "link_bits_per_s": 1e9, "sends_to": 0, "dut": {}}
        with engine([port], worker_cpu=self.cpu, memory_mib=64) as process:
            reading = process.trial([stream(rate_frames_per_s=1000)], 0.001)
        clock = float(sum(reading["health"]["core_clock_hz"]) / 2)
        self.seen_hz.append(clock)
        return clock


def is_there(program: str, package: str) -> bool:
    """Whether a peer is in PATH; a line says that its rows are left out if not."""
    found = shutil.which(program) is not None
    if not found:
        print(f"left out: the rows beside {program}, which is not installed (package {package})", flush=True)
    return found


def cpu_s(pid: int) -> float:
    """User mode and kernel, of a living process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
