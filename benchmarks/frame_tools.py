"""Programs that write and read frames in memory, each doing the same: one file a frame, requests of 1 MiB, one thread.

The rate is by each program's own clock, from its first frame to its last. CPU time is the kernel's (wait4) of the whole
process with its workers, less that of a run of one frame, so that what starting costs is nobody's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nicbench.engine.binaries import find_binary

# A 4k frame with its header, less the last of its requests, which is a short one: fio leaves that out.
FRAME_BYTES = 48 << 20
REQUEST_BYTES = 1 << 20
DEPTH = 4


@dataclass(frozen=True, slots=True)
class Done:
    """So many frames, by one program."""

    elapsed_s: float
    cpu_s: float


class Tool(Protocol):
    """Does ``frames`` frames in ``folder``, as ``task`` says: ``write`` or ``read``."""

    def command(self, task: str, folder: Path, frames: int) -> list[str]: ...

    def elapsed_s(self, output: str, task: str, frames: int) -> float: ...


class ToolError(Exception):
    """A program failed; its message has its last words."""


@dataclass(frozen=True)
class Frames:
    """``nicbench-frames``. ``content`` when writing, ``verify`` when reading."""

    engine: str = "sync"
    content: str = "same"
    verify: str = "none"

    def command(self, task: str, folder: Path, frames: int) -> list[str]:
        return [
            *(str(find_binary("nicbench-frames")), task, str(folder), "--json", "--pattern", "f.%d"),
            *("--engine", self.engine, "--depth", str(DEPTH), "--request", str(REQUEST_BYTES)),
            *("--frames", str(frames), "--frame-size", str(FRAME_BYTES)),
            *("--content", self.content, "--verify", self.verify),
            # Files that the peer wrote have no content of ours.
            *(("--existing",) if task == "read" and self.verify == "none" else ()),
        ]

    def elapsed_s(self, output: str, task: str, frames: int) -> float:
        result = json.loads(output)
        if (result["ended_by"], result["bytes"]) != ("frames", frames * FRAME_BYTES):
            raise ToolError(f"{result['bytes']} bytes: {result['failure']}")
        return float(result["measured_ns"] / 1e9)


@dataclass(frozen=True)
class Fio:
    """fio, one file after another. ``refill``: each request has new random content, as our ``unique`` has."""

    engine: str = "psync"
    refill: bool = False

    def command(self, task: str, folder: Path, frames: int) -> list[str]:
        return [
            *("fio", "--output-format=json", "--name=f", f"--directory={folder}", "--filename_format=f.$filenum"),
            *(f"--rw={task}", f"--nrfiles={frames}", f"--filesize={FRAME_BYTES}", f"--bs={REQUEST_BYTES}"),
            *(
                f"--ioengine={self.engine}",
                f"--iodepth={DEPTH if self.engine == 'io_uring' else 1}",
            ),
            *(
                "--file_service_type=sequential",
                "--openfiles=1",
                "--thread",
                "--fallocate=none",
                "--allow_file_create=1",
            ),
            *("--create_on_open=1", "--overwrite=0", "--invalidate=0", "--end_fsync=0", "--group_reporting"),
            *(("--refill_buffers=1",) if self.refill else ()),
        ]

    def elapsed_s(self, output: str, task: str, frames: int) -> float:
        (job,) = json.loads(output[output.index("{") :])["jobs"]
        if job[task]["io_bytes"] != frames * FRAME_BYTES:
            raise ToolError(f"fio moved {job[task]['io_bytes']} bytes")
        return float(job[task]["runtime"] / 1e3)


@dataclass(frozen=True)
class PlainLoop:
    """``frames_loop.c``: open, pwrite or pread, close."""

    program: Path

    def command(self, task: str, folder: Path, frames: int) -> list[str]:
        return [str(self.program), task, str(folder), str(frames), str(FRAME_BYTES), str(REQUEST_BYTES)]

    def elapsed_s(self, output: str, task: str, frames: int) -> float:
        return int(output) / 1e9


def compiled(folder: Path) -> Path:
    """``frames_loop.c`` as a program in this folder."""
    program = folder / "frames_loop"
    source = Path(__file__).with_name("frames_loop.c")
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source)], check=True)
    return program


def copied_bytes_per_s(program: Path, cpu: int, direction: str, frames: int) -> float:
    """Between a cached buffer and memory as large as the frames: a write does ``copy-in``, a read ``copy-out``."""
    command = [str(program), direction, str(frames), str(FRAME_BYTES), str(REQUEST_BYTES)]
    done = subprocess.run(on(cpu, command), check=True, capture_output=True, text=True)
    return frames * FRAME_BYTES / int(done.stdout) * 1e9


def on(cpu: int, command: list[str]) -> list[str]:
    """The same, on one CPU."""
    return ["taskset", "--cpu-list", str(cpu), *command]


def run(tool: Tool, cpu: int, task: str, folder: Path, frames: int) -> Done:
    """One run on one CPU; files that it writes are new ones."""
    if task == "write":
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    command = on(cpu, tool.command(task, folder, frames))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode:
        raise ToolError(f"{' '.join(command)} ended with {process.returncode}: {output[-500:]}")
    return Done(tool.elapsed_s(output, task, frames), usage.ru_utime + usage.ru_stime)
