"""Rows over files in memory: nicbench-frames beside fio and beside a plain loop in C, in frames and CPU time.

.venv/bin/python benchmarks/run.py --only frames
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from core_watch import CoreWatch, watching
from frame_tools import FRAME_BYTES, Fio, Frames, PlainLoop, Tool, ToolError, compiled, copied_bytes_per_s, run
from machine import Cpus, is_there
from pairs import CpuRow, Row

# 2 GB: beyond every cache, and half a second.
FRAMES = 40
MEMORY = Path("/dev/shm")


@dataclass
class Sampler:
    """One program at one task: a sample is its frames a second; ``frames_per_cpu_s`` is of the latest one."""

    tool: Tool
    task: str
    folder: Path
    cpu: int
    watch: CoreWatch
    start_cpu_s: float = 0.0
    frames_per_cpu_s: float = 0.0

    def prepare(self) -> None:
        """What starting it costs: the median of three runs of one frame."""
        runs = [run(self.tool, self.cpu, self.task, self.folder, 1).cpu_s for _ in range(3)]
        self.start_cpu_s = statistics.median(runs)

    def sample(self) -> float:
        with self.watch.sample():
            done = run(self.tool, self.cpu, self.task, self.folder, FRAMES)
        self.frames_per_cpu_s = (FRAMES - 1) / (done.cpu_s - self.start_cpu_s)
        return FRAMES / done.elapsed_s


def frame_rows(stack: ExitStack, cpus: Cpus, _pages: tuple[str, ...], _seconds: float) -> list[Row]:
    """Frames in memory; also prints how fast memory itself is copied there."""
    base = MEMORY / f"nicbench-bench-{os.getpid()}"
    base.mkdir()
    stack.callback(shutil.rmtree, base, ignore_errors=True)
    loop = compiled(base)
    written, read = base / "written", base / "read"
    watch = stack.enter_context(watching([cpus.worker]))
    # What is read has our content, and must be right to its last byte. On a virtual machine memory that was never used
    # is slow: all of it is used once.
    run(Frames(content="unique"), cpus.worker, "write", read, FRAMES)
    problem = checked(cpus, read)
    run(PlainLoop(loop), cpus.worker, "write", written, FRAMES)
    for direction, what in (("copy-in", "into"), ("copy-out", "out of")):
        rate = max(copied_bytes_per_s(loop, cpus.worker, direction, FRAMES) for _ in range(3))
        print(f"memory: {rate / 1e9:.2f} GB/s by memcpy {what} memory, {rate / FRAME_BYTES:.1f} frames/s", flush=True)

    def rows(work: str, ours: Tool, name: str, peer: Tool, target: float | None) -> list[Row]:
        task = work.split(",")[0]
        folder = read if task == "read" else written
        both = [Sampler(tool, task, folder, cpus.worker, watch) for tool in (ours, peer)]
        for sampler in both:
            sampler.prepare()
        rate = Row(work, name, target, both[0].sample, both[1].sample, watch, unit="frames/s", scale=1.0)
        cpu = [cpu_of(sampler) for sampler in both]
        rate.void = problem
        share = CpuRow(f"{work}: CPU", name, target, cpu[0], cpu[1], watch, "frames/CPU s", 1.0, rates=rate)
        return [rate, share]

    ring, plain, unique = Frames(engine="io-uring"), Frames(), Frames(content="unique")
    found = [
        *rows("write, one at a time", plain, "loop in C", PlainLoop(loop), 1.0),
        *rows("read, one at a time", plain, "loop in C", PlainLoop(loop), 1.0),
        *rows("write, unique content", unique, "loop in C, one content", PlainLoop(loop), None),
        *rows("read, stamps compared", Frames(verify="blocks"), "loop in C, nothing compared", PlainLoop(loop), None),
    ]
    if is_there("fio", "fio"):
        found += [
            *rows("write, one at a time", plain, "fio psync", Fio(), 1.0),
            *rows("read, one at a time", plain, "fio psync", Fio(), 1.0),
            *rows("write, io_uring, depth 4", ring, "fio io_uring", Fio("io_uring"), 1.0),
            *rows("read, io_uring, depth 4", ring, "fio io_uring", Fio("io_uring"), 1.0),
            *rows(
                "write, unique content", Frames(content="unique"), "fio psync, refill_buffers", Fio(refill=True), 1.0
            ),
        ]
    return found


def checked(cpus: Cpus, folder: Path) -> str | None:
    """Reads with every byte compared: ``None``, or what is wrong; then no figure counts."""
    try:
        run(Frames(engine="io-uring", verify="full"), cpus.worker, "read", folder, FRAMES)
    except ToolError as error:
        return str(error)
    return None


def cpu_of(sampler: Sampler) -> Callable[[], float]:
    """Of its latest sample."""
    return lambda: sampler.frames_per_cpu_s
