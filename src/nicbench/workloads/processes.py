"""The process of a tool: its output, read up to a limit; the ports that it listens on; its files in ``raw``."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import shlex
import signal
import socket
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host, Process
from nicbench.store.files import storage_error
from nicbench.workloads.base import MEBIBYTE, Listening, Output, clean

_FILES: Final = ("/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6")
_LISTEN: Final = "0A"
_LOOKS_PER_S: Final = 10
LARGEST_FILE_BYTES = 4 * MEBIBYTE
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME = 60
# How long a process may take to end after a signal, before it is killed, and again after SIGKILL.
_ENDING_S = 3.0

Protocol = Literal["tcp", "udp"]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Socket = tuple[Protocol, int, Address]
Sockets = Collection[Socket]


# Listening sockets, from ``/proc/net``: a look there does not disturb a server, as a connection would.


async def sockets_of(host: Host) -> Sockets:
    """Reads the sockets of the host that listen for connections or datagrams."""
    return await listeners_of(host)


async def listeners_of(host: Host) -> Mapping[Socket, str]:
    """Reads the listening sockets of the host with their inodes, which tell a socket from its replacement."""
    # One command, because each costs a host that is reached over a network a round trip.
    script = 'for file; do echo "@$file"; cat "$file" 2>/dev/null; done'
    done = await host.network.run(("sh", "-c", script, "sh", *_FILES), check=False, timeout_s=20.0)
    if done.status != 0 and not done.stdout:
        raise HostError(f"its sockets cannot be read from /proc/net: {done.stderr.strip()[-200:]}", place=host.name)
    return parse_listeners(done.stdout)


def parse_listeners(text: str) -> Mapping[Socket, str]:
    """Parses the files of /proc/net, each after a line ``@NAME`` (proc_net_tcp in the kernel's documentation)."""
    found: dict[Socket, str] = {}
    protocol: Protocol = "tcp"
    for line in text.splitlines():
        if line.startswith("@"):
            protocol = "udp" if "/udp" in line else "tcp"
            continue
        fields = line.split()
        if len(fields) < 4 or not fields[0].endswith(":") or (protocol == "tcp" and fields[3] != _LISTEN):
            continue
        address, _, port = fields[1].partition(":")
        try:
            found[protocol, int(port, 16), _address(address)] = fields[9] if len(fields) > 9 else ""
        except (ValueError, struct.error):
            continue
    return found


def is_open(wanted: Listening, sockets: Sockets) -> bool:
    """Whether a socket listens there: on that very address, or on all addresses."""
    return any(_fits(wanted, one) for one in sockets)


def inode_of(wanted: Listening, listeners: Mapping[Socket, str]) -> str | None:
    """Returns the inode of the socket that listens there (see ``is_open``); None where there is none."""
    return next((inode for one, inode in listeners.items() if _fits(wanted, one)), None)


def _fits(wanted: Listening, one: Socket) -> bool:
    protocol, port, bound = one
    address = None if wanted.address is None else _plain(ipaddress.ip_address(wanted.address.partition("%")[0]))
    return (
        protocol == wanted.protocol
        and port == wanted.port
        and (address is None or bound.is_unspecified or _plain(bound) == address)
    )


async def wait_until_open(
    host: Host, waiting: Mapping[int, Iterable[Listening]], is_gone: Callable[[int], bool], timeout_s: float
) -> frozenset[int]:
    """Waits until the sockets of each server are open, and returns the numbers of those that are.

    ``waiting`` has the servers by number; those that are gone are not waited for. One look serves all of them.
    """
    clock = asyncio.get_running_loop().time
    end_s = clock() + timeout_s
    pending, ready = dict(waiting), set()
    while pending:
        sockets = await sockets_of(host)
        here = {number for number, wanted in pending.items() if all(is_open(one, sockets) for one in wanted)}
        ready |= here
        pending = {number: wanted for number, wanted in pending.items() if number not in here and not is_gone(number)}
        if not pending or clock() >= end_s:
            break
        await asyncio.sleep(1 / _LOOKS_PER_S)
    return frozenset(ready)


def _address(text: str) -> Address:
    """Parses an address as the kernel prints it: 32-bit words in the machine's byte order, here little-endian."""
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    raw = b"".join(struct.pack("<I", word) for word in words)
    return ipaddress.ip_address(socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw))


def _plain(address: Address) -> Address:
    """Converts an IPv4-mapped IPv6 address to the IPv4 address."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


# The run folder's ``raw``: the command and output of every process of a round.


class RawFolder:
    """The files with what the processes of one round wrote: ``raw/ROUND/1-iperf3-c1-client.out`` and the like.

    Control characters are written as escapes, so that a terminal shows a file and does not obey it. ``redact`` removes
    what identifies a machine.
    """

    def __init__(self, run_folder: Path, round_name: str, redact: Callable[[str], str] | None = None) -> None:
        self._redact = redact or _leave
        self._run_folder = run_folder
        self._folder = Path("raw") / safe_name(round_name)

    def keep(self, name: str, text: str) -> str:
        """Writes one file, cut at 4 MiB with a line that says so; returns its path in the run folder."""
        path = self._folder / safe_name(name)
        content = clean(self._redact(text)).encode(errors="replace")
        if len(content) > LARGEST_FILE_BYTES:
            note = f"\n[cut by nicbench: {len(content)} bytes, of which these are the first {LARGEST_FILE_BYTES}]\n"
            content = content[:LARGEST_FILE_BYTES] + note.encode()
        try:
            (self._run_folder / self._folder).mkdir(parents=True, exist_ok=True)
            (self._run_folder / path).write_bytes(content)
        except OSError as error:
            raise storage_error(error, self._run_folder / path) from error
        return str(path)

    def keep_process(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], output: Output
    ) -> tuple[str, ...]:
        """Writes the command with its variables and exit status, stdout, and stderr if any; returns the paths."""
        variables = "".join(f"{key}={shlex.quote(value)} " for key, value in environment.items())
        status = "had to be ended" if output.status is None else str(output.status)
        files = [self.keep(f"{name}.command", f"{variables}{shlex.join(command)}\nexit status: {status}\n")]
        files.append(self.keep(f"{name}.out", output.stdout))
        if output.stderr:
            files.append(self.keep(f"{name}.err", output.stderr))
        return tuple(files)


def _leave(text: str) -> str:
    return text


def safe_name(text: str) -> str:
    """Makes a file name of plain characters, which leads to no other folder and is no option of a tool."""
    return _UNSAFE.sub("-", text).strip(".-")[:_LONGEST_NAME] or "unnamed"


# Processes.


class HungError(Exception):
    """The process did not end in time."""


class FloodError(Exception):
    """The process wrote more than its limit, and was killed."""


class Running:
    """A started process, whose output is collected until it ends.

    The end of its output is not its own end: a server may close its output as soon as it has begun (nuttcp).
    """

    def __init__(self, process: Process, limit_bytes: int) -> None:
        self._process = process
        self._limit_bytes = limit_bytes
        self._parts: list[bytes] = []
        self._flooded = False
        self._status: int | None = None
        self._reader = asyncio.create_task(self._follow())

    @classmethod
    async def start(
        cls, host: Host, command: Sequence[str], environment: Mapping[str, str], limit_bytes: int
    ) -> Running:
        """Starts a process. HostError where it cannot be started."""
        return cls(await host.start(command, environment=environment), limit_bytes)

    @property
    def pid(self) -> int | None:
        """The process id on its host; None where that cannot be known."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._reader.done()

    @property
    def output(self) -> Output:
        """The output so far, and the exit status if it is known."""
        text = b"".join(self._parts).decode(errors="replace")
        return Output(text, self._process.stderr_tail(), self._status)

    async def finish(self, timeout_s: float) -> Output:
        """Waits for its end. HungError after the time, FloodError where it wrote too much; ``output`` remains."""
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(self._reader)
        except TimeoutError:
            raise HungError from None
        except asyncio.CancelledError:
            if not self._reader.cancelled():
                raise
            # `stop` gave up on it: no signal ends a process that waits for a file system which does not answer.
            raise HungError from None
        if self._flooded:
            raise FloodError
        return self.output

    async def stop(self, number: int = signal.SIGTERM) -> None:
        """Ends the process by the signal ``number``, then by SIGKILL. It never raises HostError."""
        with contextlib.suppress(HostError):
            if self._status is None and not self._flooded:
                await self._process.signal(number)
                with contextlib.suppress(HungError, FloodError):
                    await self.finish(_ENDING_S)
            # Kills also the children that it left behind.
            await self._process.signal(signal.SIGKILL)
            if self._status is None:
                self._status = await self._process.wait(_ENDING_S)
        self._reader.cancel()
        with contextlib.suppress(asyncio.CancelledError, HostError):
            await self._reader

    async def _follow(self) -> None:
        await self._collect()
        if not self._flooded:
            self._status = await self._process.wait()

    async def _collect(self) -> None:
        taken = 0
        while piece := await self._process.read_some():
            taken += len(piece)
            self._parts.append(piece)
            if taken > self._limit_bytes:
                self._flooded = True
                await self._process.signal(signal.SIGKILL)
                return
