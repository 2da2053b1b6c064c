"""A host: where commands run and files are read and written. Wrappers (a namespace, a container) hold another host.

To add one:

1. Write ``src/nicbench/hosts/kinds/NAME.py`` with one subclass of ``nicbench.hosts.base.Host``, its ``kind`` and its
   ``Options``. A host that is reached through another (a namespace, a container) wraps it and prefixes its commands,
   as ``netns.py`` does.
2. Implement ``run``, ``start``, ``read_file``, ``write_file``, ``put`` and ``get``, all async, and say in
   ``shares_files`` whether the controller's files are there. Output is bounded; a command that hangs ends in a
   ``HostError`` with the command, its status and its last words. ``start`` gives a ``Process``, which never outlives
   the controller.
3. ``spec()`` gives what is needed to make the same host again in another process, its ``kind`` and options:
   ``nicbench restore`` undoes by it. ``of_spec(spec, name, make)`` is its inverse, and also makes the host of a bench
   file; a wrapper gives its inner host's spec to ``make``. A host that is another machine also has ``when_unheard``:
   it runs a script there once nothing is heard of the controller (``tuning/guards.py`` writes it,
   ``tuning/dry_undo.py`` finds out what an undo would do), and ``reconnect``, by which the undo comes back after a
   lost connection. A host that is made on another says in ``stands_on`` which wrappers that may be: bench files then
   name it by ``on`` (``bench_file/port_checks.py``). What nicbench makes for one run alone (``made_here``) is
   started by ``stages/hosts.py``; ``statements()`` and ``disclosure()`` are what the report says of it. Hosts are
   made there once, live, and given to whoever needs them. A wrapper says in ``machine`` which host is the whole
   machine, and in ``network`` where its interfaces are read and set: a container has few rights inside. Programs of a
   test run on the host itself; settings of the machine, the inventory and leases (``stages/machine.py``) go to
   ``host.machine``, commands about interfaces to ``host.network``.
4. Write ``tests/hosts/test_NAME.py``: the same behaviour as ``local``, a timeout, a process whose controller dies.
5. Write a docstring below each option, and add a section to ``docs/bench-file/hosts.md``; a test compares.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError
from nicbench.core.frozen import frozen

# Copies files to and from hosts, whole or not at all.

CHUNK_BYTES = 256 * 1024
MOST_BYTES = 2 * 1024 * 1024 * 1024
COPY_TIMEOUT_S = 600.0
# Length of a line of base64: fits whole into the smallest pipe.
_LINE_CHARACTERS = 4000

_RECEIVE = """
new=$(mktemp "$1.XXXXXX") || exit 1
if ${4:-cat} >"$new" && [ "$(stat -c %s "$new")" = "$3" ] && chmod "$2" "$new" && mv -f -- "$new" "$1"; then exit 0; fi
[ -s "$new" ] && echo "$1: not all of it arrived" >&2
rm -f -- "$new"
exit 1
"""


def receiving_script() -> str:
    """Returns a shell script that stores its stdin in a file.

    ``$1`` is the path, ``$2`` the mode in octal, ``$3`` the expected size, ``$4`` a filter for stdin (``cat``).
    """
    return _RECEIVE


def whole_file(path: Path) -> bytes:
    """Reads a file of this machine. OSError; ValueError where it is larger than MOST_BYTES."""
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} is larger than {MOST_BYTES} bytes")
    return path.read_bytes()


@contextlib.contextmanager
def storing_at(path: Path) -> Iterator[BinaryIO]:
    """Opens a temporary file for writing and renames it to ``path`` once it is complete."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            yield stream
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)


async def put_as_text(host: Host, local: Path, remote: str, mode: int) -> None:
    """Copies a file to a host as base64 in the input of a command, for hosts that have no better way."""
    text = base64.encodebytes(await asyncio.to_thread(whole_file, local)).decode()
    size = str((await asyncio.to_thread(local.stat)).st_size)
    command = ("sh", "-c", receiving_script(), "put", remote, f"{mode:o}", size, "base64 -d")
    done = await host.run(command, input_text=text, timeout_s=COPY_TIMEOUT_S, check=False)
    if done.status != 0:
        raise HostError(f"cannot copy {local} to {remote}: {done.stderr.strip()}", place=host.name)


async def get_as_text(host: Host, remote: str, local: Path) -> None:
    """Copies a file from a host as base64, line by line."""
    process = await host.start(("base64", "-w", str(_LINE_CHARACTERS), "--", remote))
    with storing_at(local) as stream:
        while (line := await process.read_line(COPY_TIMEOUT_S)) is not None:
            stream.write(base64.b64decode(line))
        if await process.wait(COPY_TIMEOUT_S) != 0:
            raise HostError(f"cannot copy {remote}: {process.stderr_tail()}", place=host.name)


OUTPUT_LIMIT_BYTES = 16 * 1024 * 1024
"""Largest output that ``Host.run`` accepts from a command."""


@frozen
class Completed:
    """A finished command. ``status`` is the exit status, negative for a signal."""

    command: tuple[str, ...]
    status: int
    stdout: str
    stderr: str

    @property
    def reason(self) -> str:
        """Why it failed: the last line of stderr, where tools write it, or the exit status."""
        lines = self.stderr.strip().splitlines()
        return lines[-1] if lines else f"exit status {self.status}"


@frozen
class Presence:
    """The process that stands for the controller on another machine: it ends with the connection, or with the lease."""

    pid: int
    start_ticks: int
    boot_id: str

    @property
    def name(self) -> str:
        """What tells it from every other since the machine was booted."""
        return f"{self.pid}.{self.start_ticks}"


class Process(ABC):
    """A running command with its pipes. It never outlives the controller: it is killed when the controller dies."""

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """Process id on the host, None where it cannot be known."""

    @abstractmethod
    async def write_line(self, line: str) -> None:
        """Writes one line to stdin and flushes; HostError when the process is gone."""

    @abstractmethod
    async def read_line(self, timeout_s: float | None = None) -> str | None:
        """Reads one line of stdout, without its newline; None at the end of the output.

        HostError after ``timeout_s`` or an over-long line.
        """

    async def read_some(self) -> bytes:
        """Reads the next bytes of stdout, empty at its end. For output that is large or has no lines."""
        line = await self.read_line()
        return b"" if line is None else line.encode() + b"\n"

    @abstractmethod
    async def close_stdin(self) -> None:
        """Closes stdin, so that the process reads the end of its input."""

    @abstractmethod
    async def wait(self, timeout_s: float | None = None) -> int:
        """Waits for the process and returns its exit status (negative: signal). HostError after ``timeout_s``."""

    @abstractmethod
    async def signal(self, number: int) -> None:
        """Sends a signal; nothing happens when the process has ended."""

    @abstractmethod
    def stderr_tail(self) -> str:
        """Returns the last lines of stderr (bounded), for error messages."""


class Host(ABC):
    """A place where commands run and files are read and written. ``name`` is its name in the bench file."""

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]
    stands_on: ClassVar[tuple[str, ...] | None] = None
    """Kinds of other wrappers (hosts with ``on`` in a bench file) that this wrapper may stand on.

    Every wrapper may stand on a machine. None: this kind does not wrap another host.
    """
    name: str
    made_here: ClassVar[bool] = False
    """Whether nicbench makes this machine for one run and discards it afterwards, so that nobody else can use it."""

    @property
    def machine(self) -> Host:
        """The host of the whole machine: this host itself or, for a wrapper, the machine that it runs on."""
        return self

    @property
    def network(self) -> Host:
        """The host where its interfaces are read and set: itself or, for a container, the one whose network it uses."""
        return self

    def statements(self) -> tuple[str, ...]:
        """Sentences that a report must state about measurements on this host."""
        return ()

    def disclosure(self) -> dict[str, Any]:
        """What a report discloses about how nicbench made this host; empty for a host that existed before."""
        return {}

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """Returns plain data from which another process can make this host again (undo.json).

        E.g. ``{"kind": "netns", "namespace": "x", "inner": {..}}``; ``hosts.host_from_spec`` is the inverse.
        """

    @classmethod
    @abstractmethod
    def of_spec(cls, spec: Mapping[str, Any], name: str | None, make: Callable[[Mapping[str, Any]], Host]) -> Host:
        """Makes a host from its ``spec``; a wrapper passes its inner host's spec to ``make``."""

    @abstractmethod
    async def run(
        self,
        command: Sequence[str],
        *,
        input_text: str | None = None,
        timeout_s: float = 30.0,
        check: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> Completed:
        """Runs a command to its end and returns its output, at most OUTPUT_LIMIT_BYTES of it.

        With ``check`` a failure raises HostError with the command, status and stderr.
        """

    @abstractmethod
    async def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Process:
        """Starts a process with pipes."""

    @abstractmethod
    async def read_file(self, path: str) -> str | None:
        """Reads the text of a file (in /proc and /sys too); None where it does not exist."""

    @abstractmethod
    async def write_file(self, path: str, text: str) -> None:
        """Writes text to a file (in /proc and /sys too). HostError with the kernel's reason."""

    async def put(self, local: Path, remote: str, mode: int = 0o644) -> None:
        """Copies a file of this machine to the host; it appears under its name only when complete. HostError."""
        await put_as_text(self, local, remote, mode)

    async def get(self, remote: str, local: Path) -> None:
        """Copies a file of the host to this machine; it appears under its name only when complete. HostError."""
        await get_as_text(self, remote, local)

    @property
    def shares_files(self) -> bool:
        """Whether a path of this machine is the same file on the host."""
        return False

    async def close(self) -> None:  # noqa: B027 - most hosts hold nothing
        """Releases what the host holds, such as a container or a connection; later use acquires it again."""

    async def is_gone(self) -> bool:
        """Whether the machine no longer exists, and with it every change that was made in it."""
        return False

    async def when_unheard(self, script: str) -> Presence | None:
        """Arranges that the host runs a script stored on it, given by path, once it loses contact with the controller.

        The script is given the name of the presence that is returned.

        None where that is not needed: on the machine that the controller runs on.
        """
        return None

    async def reconnect(self) -> None:  # noqa: B027 - most hosts have nothing to connect
        """Reconnects after a lost connection, which ended every process on the host. Only the undo uses it."""


def short_command(command: Sequence[str]) -> str:
    """Joins a command for a message, cut to 200 characters."""
    text = " ".join(command)
    return text if len(text) <= 200 else f"{text[:200]}..."
