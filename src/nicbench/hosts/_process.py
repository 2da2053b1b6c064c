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
_PIECE_BYTES = 256 * 1024
# Nothing that is well says so much on stderr; reading on would take the processor from those that are.
_STDERR_LIMIT_BYTES = 64 * 1024 * 1024
# How long a process may leave a line unread while its pipe is full.
_WRITE_TIMEOUT_S = 30.0
# What an ended process said last may still be in a pipe; whoever else holds that pipe must not hold us up.
_LAST_WORDS_S = 0.5
# SIGKILL takes effect at once, except on a process that waits for a device.
_KILL_TIMEOUT_S = 5.0


class LocalProcess(Process):
    """Wraps asyncio's process; stderr is read all the time, so that a chatty process never blocks on it."""

    def __init__(self, process: asyncio.subprocess.Process, shown: str, host: str) -> None:
        self._process = process
        self._shown = shown
        self._host = host
        self._stderr = ""
        self._settled = False
        self._stderr_reader = asyncio.create_task(self._collect_stderr())

    @property
    def pid(self) -> int | None:
        return self._process.pid

    async def write_line(self, line: str) -> None:
        stdin = pipe_of(self._process.stdin)
        try:
            async with asyncio.timeout(_WRITE_TIMEOUT_S):
                stdin.write(line.encode() + b"\n")
                await stdin.drain()
        except TimeoutError:
            message = f"{self._shown}: has read nothing for {_WRITE_TIMEOUT_S:g} s{self._last_words()}"
            raise HostError(message, place=self._host) from None
        except (BrokenPipeError, ConnectionResetError) as error:
            raise HostError(f"{self._shown}: {await self._end()}{self._last_words()}", place=self._host) from error

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

    async def read_some(self) -> bytes:
        return await pipe_of(self._process.stdout).read(_PIECE_BYTES)

    async def close_stdin(self) -> None:
        pipe_of(self._process.stdin).close()

    async def wait(self, timeout_s: float | None = None) -> int:
        try:
            async with asyncio.timeout(timeout_s):
                status = await exit_status(self._process)
        except TimeoutError:
            raise HostError(f"{self._shown}: did not end within {timeout_s:g} s", place=self._host) from None
        await asyncio.wait((self._stderr_reader,), timeout=_LAST_WORDS_S)
        if not self._settled and not self._stderr_reader.done():
            await end_now(self._process)  # a child of its own has its pipes, and has lost its master
        self._settled = True
        return status

    async def signal(self, number: int) -> None:
        # What a process started may outlive it, and still be there to be killed.
        if self._process.returncode is None or (number == signal.SIGKILL and not self._settled):
            _signal_group(self._process.pid, number)

    def stderr_tail(self) -> str:
        return self._stderr.strip()

    async def _end(self) -> str:
        """How it ended, as far as that is known by now."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                status = await exit_status(self._process)
                return f"has ended with status {status}" if status >= 0 else f"was killed by signal {-status}"
        return "has ended"

    def _last_words(self) -> str:
        tail = self.stderr_tail()
        return f"; its last words: {tail[-2000:]}" if tail else ""

    async def _collect_stderr(self) -> None:
        stderr = pipe_of(self._process.stderr)
        size = 0
        while chunk := await stderr.read(65536):
            self._stderr = (self._stderr + chunk.decode(errors="replace"))[-_STDERR_CHARACTERS:]
            size += len(chunk)
            if size > _STDERR_LIMIT_BYTES:
                self._stderr += f"\n[ended by nicbench: more than {_STDERR_LIMIT_BYTES} bytes on stderr]"
                _signal_group(self._process.pid, signal.SIGKILL)
                return


def pipe_of(stream: _Stream | None) -> _Stream:
    """A pipe that was asked for when the process was started."""
    if stream is None:
        raise RuntimeError("the process was started without this pipe")
    return stream


async def exit_status(process: asyncio.subprocess.Process) -> int:
    """Waits for the process alone. asyncio's own ``wait`` waits for everybody who holds its pipes as well (3.11)."""
    waiting = asyncio.ensure_future(process.wait())
    try:
        while process.returncode is None:
            await asyncio.wait((waiting,), timeout=0.05)
        return process.returncode
    finally:
        waiting.cancel()


async def end_now(process: asyncio.subprocess.Process) -> None:
    """Kills the process and what it started (it leads a session of its own), and lets go of its pipes."""
    _signal_group(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_KILL_TIMEOUT_S):
            await exit_status(process)
    # asyncio has no public way: without it a process that left the session keeps the pipes open, and the loop with it.
    process._transport.close()  # type: ignore[attr-defined]


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)
