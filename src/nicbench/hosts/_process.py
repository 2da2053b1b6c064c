"""A running command of this machine with its pipes (see ``hosts.base.Process``)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TypeVar

from nicbench.errors import HostError
from nicbench.hosts.base import Process

_Stream = TypeVar("_Stream", asyncio.StreamReader, asyncio.StreamWriter)
# The longest line a process may write: an engine's reading with the histograms of many streams.
LINE_LIMIT_BYTES = 64 * 1024 * 1024
_STDERR_CHARACTERS = 20_000


class LocalProcess(Process):
    """Wraps asyncio's process; stderr is read all the time, so that a chatty process never blocks on it."""

    def __init__(self, process: asyncio.subprocess.Process, shown: str, host: str) -> None:
        self._process = process
        self._shown = shown
        self._host = host
        self._stderr = ""
        self._stderr_reader = asyncio.create_task(self._collect_stderr())

    @property
    def pid(self) -> int | None:
        return self._process.pid

    async def write_line(self, line: str) -> None:
        stdin = pipe_of(self._process.stdin)
        try:
            stdin.write(line.encode() + b"\n")
            await stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise HostError(f"{self._shown}: has ended{self._last_words()}", place=self._host) from error

    async def read_line(self, timeout_s: float | None = None) -> str | None:
        stdout = pipe_of(self._process.stdout)
        try:
            async with asyncio.timeout(timeout_s):
                line = await stdout.readline()
        except TimeoutError:
            message = f"{self._shown}: silent for {timeout_s:g} s{self._last_words()}"
            raise HostError(message, place=self._host) from None
        except ValueError:
            raise HostError(f"{self._shown}: a line of more than {LINE_LIMIT_BYTES} bytes", place=self._host) from None
        return line.decode(errors="replace").rstrip("\n") if line else None

    async def close_stdin(self) -> None:
        pipe_of(self._process.stdin).close()

    async def wait(self, timeout_s: float | None = None) -> int:
        try:
            async with asyncio.timeout(timeout_s):
                status = await self._process.wait()
                # What it said last may still be in the pipe; a grandchild that keeps it open must not hold us up.
                await asyncio.wait((self._stderr_reader,), timeout=0.5)
        except TimeoutError:
            raise HostError(f"{self._shown}: did not end within {timeout_s:g} s", place=self._host) from None
        return status

    async def signal(self, number: int) -> None:
        if self._process.returncode is None:
            _signal_group(self._process.pid, number)

    def stderr_tail(self) -> str:
        return self._stderr.strip()

    def _last_words(self) -> str:
        tail = self.stderr_tail()
        return f"; its last words: {tail[-2000:]}" if tail else ""

    async def _collect_stderr(self) -> None:
        stderr = pipe_of(self._process.stderr)
        while chunk := await stderr.read(65536):
            self._stderr = (self._stderr + chunk.decode(errors="replace"))[-_STDERR_CHARACTERS:]


def pipe_of(stream: _Stream | None) -> _Stream:
    """A pipe that was asked for when the process was started."""
    if stream is None:
        raise RuntimeError("the process was started without this pipe")
    return stream


def kill_group(process: asyncio.subprocess.Process) -> None:
    """Kills the process and what it started; it leads a session of its own."""
    _signal_group(process.pid, signal.SIGKILL)


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)
