"""This machine: commands as child processes that never outlive the controller, files directly."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nicbench.errors import HostError, NotReadyError
from nicbench.hosts._copying import storing_at
from nicbench.hosts._process import LINE_LIMIT_BYTES, LocalProcess, end_now, exit_status, pipe_of
from nicbench.hosts.base import OUTPUT_LIMIT_BYTES, Completed, Host, Process
from nicbench.model.base import Frozen

# An ordinary user's PATH on Debian lacks the folders of ip, ethtool and bpftool.
_SYSTEM_FOLDERS = ("/usr/sbin", "/sbin", "/usr/bin", "/bin")
# Set by a program of its own and not by a preexec function, which is unsafe once the controller has threads. It
# survives every exec that follows (ip netns exec among them), so the command itself is killed when the controller
# dies, by SIGKILL too.
_DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")


class LocalOptions(Frozen):
    """``hosts: {tester: {kind: local}}``: nothing to choose."""


class LocalHost(Host):
    """Runs commands on this machine.

    Each in a session of its own: Ctrl-C on the terminal reaches the controller alone, which then stops things in order.
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
            message = f"{_shown(command)}: did not end within {timeout_s:g} s and was killed"
            raise HostError(message, place=self.name) from None
        except _TooMuchOutputError:
            message = f"{_shown(command)}: more than {OUTPUT_LIMIT_BYTES} bytes of output; it was killed"
            raise HostError(message, place=self.name) from None
        finally:
            # After a timeout, too much output or a cancellation: a command that has ended itself may have left a child
            # that holds its pipes. After an ordinary end there is nothing left to kill.
            if not ended:
                await asyncio.shield(end_now(process))
        done = Completed(tuple(command), status, stdout, stderr)
        if check and status != 0:
            reason = stderr.strip()[-2000:] or stdout.strip()[-2000:] or "no message"
            raise HostError(f"{_shown(command)}: exit status {status}: {reason}", place=self.name)
        return done

    async def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Process:
        return LocalProcess(await self._spawn(command, environment, has_input=True), _shown(command), self.name)

    async def read_file(self, path: str) -> str | None:
        return self.read_now(path)

    async def write_file(self, path: str, text: str) -> None:
        self.write_now(path, text)

    def read_now(self, path: str) -> str | None:
        """``read_file`` for a thread that has no event loop."""
        try:
            return _read_whole(path)
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError):  # the last: a process that has just ended
            return None
        except OSError as error:
            raise HostError(f"cannot read {path}: {error.strerror}", place=self.name) from error

    def write_now(self, path: str, text: str) -> None:
        """``write_file`` for a thread that has no event loop."""
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
    """A command wrote more than anything we run should."""


async def _exchange(process: asyncio.subprocess.Process, input_text: str | None) -> tuple[str, str]:
    """Feeds stdin and reads both outputs at once, so that neither side waits for the other."""
    stdout, stderr, _ = await asyncio.gather(
        _read_bounded(pipe_of(process.stdout)), _read_bounded(pipe_of(process.stderr)), _feed(process, input_text)
    )
    return stdout, stderr


async def _feed(process: asyncio.subprocess.Process, text: str | None) -> None:
    if text is None:
        return
    stdin = pipe_of(process.stdin)
    # A command may end without reading everything; its exit status tells.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(text.encode())
        await stdin.drain()
    stdin.close()


async def _read_bounded(stream: asyncio.StreamReader) -> str:
    parts: list[bytes] = []
    size = 0
    while chunk := await stream.read(65536):
        parts.append(chunk)
        size += len(chunk)
        if size > OUTPUT_LIMIT_BYTES:
            raise _TooMuchOutputError
    return b"".join(parts).decode(errors="replace")


def _read_whole(path: str) -> str:
    """Files of /proc and /sys are never waited for; neither are the small files that a run looks at."""
    return Path(path).read_text(encoding="utf-8", errors="replace")


def _write_at_once(path: str, text: str) -> None:
    """In one call: files of /proc and /sys take a value whole or not at all."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    """Ours, with the system's folders at the end of PATH and tools speaking English, as their parsers expect."""
    variables = dict(os.environ)
    folders = [folder for folder in variables.get("PATH", "").split(":") if folder]
    folders.extend(folder for folder in _SYSTEM_FOLDERS if folder not in folders)
    variables["PATH"] = ":".join(folders)
    variables["LC_ALL"] = "C"
    variables.update(extra or {})
    return variables


def _shown(command: Sequence[str]) -> str:
    """The command for a message, cut short."""
    text = " ".join(command)
    return text if len(text) <= 200 else f"{text[:200]}..."
