"""This machine: commands as child processes that never outlive the controller."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import OUTPUT_LIMIT_BYTES, Completed, Host, Process, short_command, storing_at
from nicbench.hosts.owner import MARK, owner_mark

_Stream = TypeVar("_Stream", asyncio.StreamReader, asyncio.StreamWriter)
# The longest line a process may write: an engine's reading with the histograms of many streams.
LINE_LIMIT_BYTES = 64 * 1024 * 1024
_STDERR_CHARACTERS = 20_000
_PIECE_BYTES = 256 * 1024
# No healthy process writes so much to stderr; reading on would take CPU time from the others.
_STDERR_LIMIT_BYTES = 64 * 1024 * 1024
# How long a process may leave a line unread while its pipe is full.
_WRITE_TIMEOUT_S = 30.0
# The last output of an ended process may still be in a pipe, but another holder of that pipe must not delay us.
_LAST_WORDS_S = 0.5
# SIGKILL takes effect at once, except on a process that waits for a device.
_KILL_TIMEOUT_S = 5.0
# An ordinary user's PATH on Debian lacks the folders of ip, ethtool and bpftool.
_SYSTEM_FOLDERS = ("/usr/sbin", "/sbin", "/usr/bin", "/bin")
# Set by a program of its own and not by a preexec function, which is unsafe once the controller has threads. It
# survives every exec that follows (ip netns exec among them), so the command itself is killed when the controller
# dies, by SIGKILL too.
_DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")


class LocalProcess(Process):
    """A running command of this machine with its pipes.

    stderr is read all the time, so that a chatty process never blocks on it. ``title`` is the command as messages show
    it.
    """

    def __init__(self, process: asyncio.subprocess.Process, title: str, host: str) -> None:
        self._process = process
        self._title = title
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
            message = f"{self._title}: has read nothing for {_WRITE_TIMEOUT_S:g} s{self._last_words()}"
            raise HostError(message, place=self._host) from None
        except (BrokenPipeError, ConnectionResetError) as error:
            raise HostError(f"{self._title}: {await self._end()}{self._last_words()}", place=self._host) from error

    async def read_line(self, timeout_s: float | None = None) -> str | None:
        stdout = pipe_of(self._process.stdout)
        try:
            async with asyncio.timeout(timeout_s):
                line = await stdout.readline()
        except TimeoutError:
            message = f"{self._title}: silent for {timeout_s:g} s{self._last_words()}"
            raise HostError(message, place=self._host) from None
        except ValueError:
            raise HostError(f"{self._title}: a line of more than {LINE_LIMIT_BYTES} bytes", place=self._host) from None
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
            raise HostError(f"{self._title}: did not end within {timeout_s:g} s", place=self._host) from None
        await asyncio.wait((self._stderr_reader,), timeout=_LAST_WORDS_S)
        if not self._settled and not self._stderr_reader.done():
            await end_now(self._process)  # a child of the ended command still holds its pipes
        self._settled = True
        return status

    async def signal(self, number: int) -> None:
        # Children of a process may outlive it and still have to be killed.
        if self._process.returncode is None or (number == signal.SIGKILL and not self._settled):
            _signal_group(self._process.pid, number)

    def stderr_tail(self) -> str:
        return self._stderr.strip()

    async def _end(self) -> str:
        """Describes how the process ended, as far as that is known by now."""
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
    """Returns a pipe that was requested when the process was started."""
    if stream is None:
        raise RuntimeError("the process was started without this pipe")
    return stream


async def exit_status(process: asyncio.subprocess.Process) -> int:
    """Waits for the process alone. In Python 3.11 asyncio's ``wait`` also waits for every holder of its pipes."""
    waiting = asyncio.ensure_future(process.wait())
    try:
        while process.returncode is None:
            await asyncio.wait((waiting,), timeout=0.05)
        return process.returncode
    finally:
        waiting.cancel()


async def end_now(process: asyncio.subprocess.Process) -> None:
    """Kills the process and its children (it leads a session of its own), and closes its pipes."""
    _signal_group(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_KILL_TIMEOUT_S):
            await exit_status(process)
    # asyncio has no public way; without it a process that left the session keeps the pipes open, and the event loop.
    process._transport.close()  # type: ignore[attr-defined]


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


class LocalOptions(Frozen):
    """This machine has no options: ``hosts: {tester: {kind: local}}``."""


class LocalHost(Host):
    """Runs commands on this machine.

    Each has a session of its own: Ctrl-C on the terminal reaches the controller alone, which then stops things in
    order.
    """

    kind = "local"
    Options = LocalOptions

    def __init__(self, name: str = "local") -> None:
        self.name = name

    @classmethod
    def of_spec(cls, spec: Mapping[str, Any], name: str | None, make: Callable[[Mapping[str, Any]], Host]) -> LocalHost:
        return cls(name or cls.kind)

    def spec(self) -> dict[str, Any]:
        return {"kind": self.kind}

    async def run(
        self,
        command: Sequence[str],
        *,
        input_text: str | None = None,
        timeout_s: float = 30.0,
        check: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> Completed:
        process = await self._spawn(command, environment, has_input=input_text is not None)
        ended = False
        try:
            async with asyncio.timeout(timeout_s):
                stdout, stderr = await _exchange(process, input_text)
                status = await exit_status(process)
                ended = True
        except TimeoutError:
            message = f"{short_command(command)}: did not end within {timeout_s:g} s and was killed"
            raise HostError(message, place=self.name) from None
        except _TooMuchOutputError:
            message = f"{short_command(command)}: more than {OUTPUT_LIMIT_BYTES} bytes of output; it was killed"
            raise HostError(message, place=self.name) from None
        finally:
            # After a timeout, too much output or a cancellation, even a command that has ended may have left a child
            # that holds its pipes. After an ordinary end there is nothing left to kill.
            if not ended:
                await asyncio.shield(end_now(process))
        done = Completed(tuple(command), status, stdout, stderr)
        if check and status != 0:
            reason = stderr.strip()[-2000:] or stdout.strip()[-2000:] or "no message"
            raise HostError(f"{short_command(command)}: exit status {status}: {reason}", place=self.name)
        return done

    async def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Process:
        return LocalProcess(await self._spawn(command, environment, has_input=True), short_command(command), self.name)

    async def read_file(self, path: str) -> str | None:
        return self.read_now(path)

    async def write_file(self, path: str, text: str) -> None:
        self.write_now(path, text)

    def read_now(self, path: str) -> str | None:
        """Does what ``read_file`` does, in a thread without an event loop."""
        try:
            return _read_whole(path)
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError):  # the last: a process that has just ended
            return None
        except OSError as error:
            raise HostError(f"cannot read {path}: {error.strerror}", place=self.name) from error

    def write_now(self, path: str, text: str) -> None:
        """Does what ``write_file`` does, in a thread without an event loop."""
        try:
            _write_at_once(path, text)
        except OSError as error:
            raise HostError(f"cannot write {text.strip()!r} to {path}: {error.strerror}", place=self.name) from error

    async def put(self, local: Path, remote: str, mode: int = 0o644) -> None:
        await asyncio.to_thread(self._copy, local, Path(remote), mode)

    async def get(self, remote: str, local: Path) -> None:
        await asyncio.to_thread(self._copy, Path(remote), local, None)

    @property
    def shares_files(self) -> bool:
        return True

    def _copy(self, source: Path, target: Path, mode: int | None) -> None:
        try:
            with source.open("rb") as given, storing_at(target) as stored:
                shutil.copyfileobj(given, stored)
                if mode is not None:
                    os.fchmod(stored.fileno(), mode)
        except OSError as error:
            raise HostError(f"cannot copy {source} to {target}: {error.strerror}", place=self.name) from error

    async def _spawn(
        self, command: Sequence[str], environment: Mapping[str, str] | None, *, has_input: bool
    ) -> asyncio.subprocess.Process:
        variables = _environment(environment)
        if shutil.which(command[0], path=variables["PATH"]) is None:
            raise NotReadyError(
                f"{command[0]}: command not found",
                place=self.name,
                next_step="nicbench doctor names the package to install",
            )
        return await asyncio.create_subprocess_exec(
            *_DIES_WITH_US,
            *command,
            stdin=asyncio.subprocess.PIPE if has_input else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=variables,
            limit=LINE_LIMIT_BYTES,
            start_new_session=True,
        )


class _TooMuchOutputError(Exception):
    """A command wrote more than OUTPUT_LIMIT_BYTES."""


async def _exchange(process: asyncio.subprocess.Process, input_text: str | None) -> tuple[str, str]:
    """Writes stdin and reads both outputs at the same time, so that neither side waits for the other."""
    stdout, stderr, _ = await asyncio.gather(
        _read_bounded(pipe_of(process.stdout)), _read_bounded(pipe_of(process.stderr)), _feed(process, input_text)
    )
    return stdout, stderr


async def _feed(process: asyncio.subprocess.Process, text: str | None) -> None:
    if text is None:
        return
    stdin = pipe_of(process.stdin)
    # A command may end without reading everything; its exit status says whether that matters.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(text.encode())
        await stdin.drain()
    stdin.close()


async def _read_bounded(stream: asyncio.StreamReader) -> str:
    parts = []
    size = 0
    while chunk := await stream.read(65536):
        parts.append(chunk)
        size += len(chunk)
        if size > OUTPUT_LIMIT_BYTES:
            raise _TooMuchOutputError
    return b"".join(parts).decode(errors="replace")


def _read_whole(path: str) -> str:
    """Reads a file without a thread: files of /proc and /sys, and the small ones that a run reads, never block."""
    return Path(path).read_text(encoding="utf-8", errors="replace")


def _write_at_once(path: str, text: str) -> None:
    """Writes a file in one system call: files of /proc and /sys take a value whole or not at all."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    """Returns our environment with the system's folders at the end of PATH, English output, and our mark."""
    variables = dict(os.environ)
    folders = [folder for folder in variables.get("PATH", "").split(":") if folder]
    folders.extend(folder for folder in _SYSTEM_FOLDERS if folder not in folders)
    variables["PATH"] = ":".join(folders)
    variables["LC_ALL"] = "C"
    variables.update(extra or {})
    variables[MARK] = owner_mark()
    return variables
