"""The machine during a benchmark: CPUs, huge pages for the time it takes, and the core's real clock."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from engine_process import Engine, engine, stream
from pairs import held

HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")


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

    process: Engine
    seen_hz: list[float] = field(default_factory=list)

    def take(self) -> float:
        """Now, in Hz."""
        os.kill(self.process.pid, signal.SIGCONT)
        reading = self.process.trial([stream(rate_frames_per_s=1000)], 0.001)
        self.process.request("settle", duration_s=0.0)
        clock = float(sum(reading["health"]["core_clock_hz"]) / 2)
        os.kill(self.process.pid, signal.SIGSTOP)
        self.seen_hz.append(clock)
        return clock


@contextmanager
def clock_probe(cpu: int) -> Iterator[ClockProbe]:
    """A process of its own on that CPU, which stands still between probes."""
    port = {"name": "probe", "kind": "simulated", "link_bits_per_s": 1e9, "sends_to": 0, "dut": {}}
    with engine([port], worker_cpu=cpu, memory_mib=64) as process, held(process.pid):
        yield ClockProbe(process)
