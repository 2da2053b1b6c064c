"""The process of a tool: its output, read up to a limit; the ports that it listens on; its files in ``raw``."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import re
import shlex
import signal
import socket
import struct
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.core.lists import grouped
from nicbench.core.redaction import hide_secrets
from nicbench.core.round import JobSpec, Placement, ToolEnvironment
from nicbench.hosts.base import Host, Process
from nicbench.hosts.containers import BEGIN_VARIABLE
from nicbench.hosts.containers import MARK as COMMAND_MARK
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.owner import MARK as OWNER_MARK
from nicbench.store.files import storage_error
from nicbench.workloads.base import MEBIBYTE, Command, Listening, Output, Workload, clean, last_words

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
    """Returns the inode of the socket that listens there (see ``is_open``), or None."""
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
    """Makes a file name of plain characters, which cannot lead to another folder or be read as an option of a tool."""
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


# Finds out a tool's version and environment on a machine, and whether processes can be placed on CPUs and memory.
# Each is found out once per machine and cached for the run.

_TIMEOUT_S = 20.0
_STATUS = "/proc/self/status"
# By these nicbench finds its processes: they differ each time, and no tool knows them. The shell sets the last.
_OUR_MARKS = frozenset({OWNER_MARK, COMMAND_MARK, BEGIN_VARIABLE, "_"})

Finder = Callable[[Host, str], Awaitable[str]]
"""Returns the path of a nicbench program on a host, and copies the program there if it is missing."""


class Programs:
    """Caches versions and placements; a run makes one and passes it to every round."""

    def __init__(self, own: Finder | None = None) -> None:
        self._own = own
        self._versions: dict[tuple[str, Command], str | None] = {}
        self._placements: dict[tuple[str, Placement], str | None] = {}
        self._environments: dict[tuple[str, str, str], dict[str, str]] = {}
        self._asking: dict[object, asyncio.Lock] = {}

    async def version(self, host: Host, workload: Workload, ask: JobSpec) -> str | None:
        """Returns the tool's version on the host, None where it prints none. NotReadyError where it is missing."""
        command = workload.version_command(ask)
        key = (_machine(host), command)
        async with self._one_asks(key):
            if key not in self._versions:
                if workload.is_ours:
                    command = await self.locate(host, workload, command)
                else:
                    await _need(host, workload.program(ask), workload.package)
                done = await host.run(command, check=False, timeout_s=_TIMEOUT_S, environment=workload.environment)
                self._versions[key] = workload.parse_version(f"{done.stdout}\n{done.stderr}")
        return self._versions[key]

    async def require_somewhere(self, hosts: Iterable[Host], workload: Workload, ask: JobSpec) -> None:
        """Raises NotReadyError where none of the machines of these hosts has the tool, so that no job could run."""
        if workload.is_ours:
            return
        missing = None
        for host in {_machine(host): host for host in hosts}.values():
            try:
                await self.version(host, workload, ask)
            except NotReadyError as error:
                missing = missing or error
            else:
                return
        if missing is not None:
            raise missing

    async def learn_environment(self, host: Host, workload: Workload) -> None:
        """Finds out, once, what environment the tool's processes get on the host: that of any command there.

        Nothing is known where the host has no ``env``; the tool runs all the same.
        """
        key = (_machine(host), host.name, workload.kind)
        async with self._one_asks(key):
            if key in self._environments:
                return
            try:
                done = await host.run(
                    ("env", "-0"), check=False, timeout_s=_TIMEOUT_S, environment=workload.environment
                )
            except NicbenchError:
                self._environments[key] = {}
            else:
                self._environments[key] = parse_environment(done.stdout) if done.status == 0 else {}

    def environments(self, workloads: Collection[str]) -> tuple[ToolEnvironment, ...]:
        """Returns what is known of these tools, those hosts together that have the same."""
        found = grouped(
            ((workload, tuple(variables.items())), host)
            for (_, host, workload), variables in self._environments.items()
            if workload in workloads and variables
        )
        return tuple(
            ToolEnvironment(workload=workload, hosts=tuple(sorted(hosts)), variables=dict(variables))
            for (workload, variables), hosts in found.items()
        )

    async def locate(self, host: Host, workload: Workload, command: Command) -> Command:
        """Replaces the program of a command by its path on the host, if it is one of nicbench's own."""
        if not workload.is_ours or self._own is None:
            return command
        return (await self._own(host, command[0]), *command[1:])

    async def cannot_place(self, host: Host, placement: Placement) -> str | None:
        """Tries a placement on the host; returns why processes cannot be placed so, None where they can."""
        key = (_machine(host), placement)
        async with self._one_asks(key):
            if key not in self._placements:
                self._placements[key] = await _try(host, placement)
        return self._placements[key]

    def _one_asks(self, key: object) -> asyncio.Lock:
        """Returns the lock of a question: jobs of a round ask the same at the same time, so the others wait."""
        return self._asking.setdefault(key, asyncio.Lock())


def parse_environment(text: str) -> dict[str, str]:
    """Parses what ``env -0`` prints, by name: without our own marks, with nothing that looks like a secret."""
    variables = dict(part.split("=", 1) for part in text.split("\0") if "=" in part)
    shown = {name: clean(variables[name]) for name in sorted(variables) if name not in _OUR_MARKS}
    return hide_secrets(shown)


def place(command: Command, placement: Placement) -> Command:
    """Prefixes a command so that it runs on the CPUs and with the memory node of its placement."""
    return (*_cpu_prefix(placement), *_memory_prefix(placement), *command)


def _cpu_prefix(placement: Placement) -> Command:
    return () if placement.cpus is None else ("taskset", "-c", ",".join(str(cpu) for cpu in placement.cpus))


def _memory_prefix(placement: Placement) -> Command:
    return () if placement.memory_node is None else ("numactl", f"--membind={placement.memory_node}")


async def _try(host: Host, placement: Placement) -> str | None:
    """Tries a placement and reads it back, because the kernel silently ignores CPUs that are offline or not allowed."""
    if placement.cpus is not None:
        await _need(host, "taskset", "util-linux")
        script = "s/^Cpus_allowed_list:[[:space:]]*//p"
        allowed = await _read_output(host, (*_cpu_prefix(placement), "sed", "-n", script, _STATUS))
        if allowed is None or _parse_numbers(allowed) != set(placement.cpus):
            wanted = ",".join(str(cpu) for cpu in placement.cpus)
            return f"its processes cannot be kept on the CPUs {wanted}: the kernel allows {allowed or 'none of them'}"
    if placement.memory_node is not None:
        await _need(host, "numactl", "numactl")
        policy = await _read_output(host, (*_memory_prefix(placement), "numactl", "--show"))
        bound = [line for line in (policy or "").splitlines() if line.startswith("membind:")]
        if not bound or bound[0].split()[1:] != [str(placement.memory_node)]:
            return f"its processes cannot be given memory of node {placement.memory_node}: {policy or 'refused'}"
    return None


async def _read_output(host: Host, command: Sequence[str]) -> str | None:
    done = await host.run(command, check=False, timeout_s=_TIMEOUT_S)
    return done.stdout.strip() if done.status == 0 else None


async def _need(host: Host, program: str, package: str) -> None:
    try:
        done = await host.run(("sh", "-c", 'command -v -- "$1"', "sh", program), check=False, timeout_s=_TIMEOUT_S)
    except NotReadyError:
        raise
    except HostError as error:
        raise HostError(f"{program} cannot be looked for: {last_words(str(error))}", place=host.name) from error
    if done.status != 0:
        raise NotReadyError(
            f"{program} is not installed there",
            place=host.name,
            next_step=f"install it on that machine: apt-get install {package}",
        )


def _machine(host: Host) -> str:
    """Returns a key for a machine: its network namespaces share programs and CPUs; a container has its own."""
    while isinstance(host, NetnsHost):
        host = host.inner
    return json.dumps(host.spec(), sort_keys=True, default=str)


def _parse_numbers(text: str) -> set[int]:
    """Parses a list like ``0-3,8``; empty where it is invalid."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            return set()
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers
