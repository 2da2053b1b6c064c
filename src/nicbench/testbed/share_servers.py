"""Shares: folders and mounts, servers in the background, each with its undo, and clients that reach them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.frozen import frozen
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NAMESPACE_FOLDER, NetnsHost
from nicbench.system.inventory.base import parse_meminfo
from nicbench.testbed.shares.base import Command, FileSystem, Program, Server, Share
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.files import RemovePath, Unmount
from nicbench.tuning.undo.processes import EndServer, end_server, is_alive, is_mounted, start_command
from nicbench.workloads.base import Listening, last_words
from nicbench.workloads.processes import inode_of, is_open, listeners_of, sockets_of

# Folders and mounts of shares: made on the server, mounted on clients and verified, outside a host's namespace but in
# its network.
#
# ``ip netns exec`` gives each command a private mount namespace, which ends with it. So commands of a namespace are
# run on the host outside it by ``nsenter``, which changes the network and nothing else.


_WHERE = 'for each; do command -v "$each" && exit; done; exit 1'


@frozen
class Place:
    """Where a command runs: ``host`` has the files and mounts, ``prefix`` puts the command into the network."""

    host: Host
    prefix: Command = ()

    def inside(self, command: Sequence[str]) -> Command:
        """The command for ``host`` that runs in the network."""
        return (*self.prefix, *command)


def place_of(host: Host) -> Place:
    """The place of a host of the testbed."""
    if not isinstance(host, NetnsHost):
        return Place(host)
    return Place(host.inner, ("nsenter", f"--net={NAMESPACE_FOLDER}/{host.namespace}"))


async def find_programs(host: Host, programs: Sequence[Program]) -> dict[str, str]:
    """The paths of programs by name; NotReadyError names the package of a missing one."""
    found = {}
    for program in programs:
        done = await host.run(("sh", "-c", _WHERE, "where", program.name, *program.paths), check=False)
        if done.status != 0 or not done.stdout.strip():
            raise NotReadyError(
                f"there is no program {program.name}",
                place=host.name,
                next_step=f"apt-get install {program.package}",
            )
        found[program.name] = done.stdout.split("\n")[0].strip()
    return found


async def require_file_system(host: Host, wanted: FileSystem) -> None:
    """Loads the kernel's module of a file system where needed; NotReadyError where the kernel has none."""
    if _lists(await host.read_file("/proc/filesystems"), wanted.name):
        return
    done = await host.machine.run(
        ("sh", "-c", 'PATH=$PATH:/usr/sbin:/sbin; modprobe -- "$1"', "sh", wanted.name), check=False
    )
    if _lists(await host.read_file("/proc/filesystems"), wanted.name):
        return
    raise NotReadyError(
        f"the kernel has no {wanted.words}: {wanted.name} is not in /proc/filesystems"
        + (f", and modprobe says: {last_words(done.stderr)}" if done.stderr.strip() else ""),
        place=host.name,
        next_step="use a real or virtual machine whose kernel has it, or another kind of share",
    )


async def require_check(host: Host, check: Command) -> None:
    """Runs a check; where it fails, NotReadyError has its output."""
    done = await host.run(check, check=False)
    if done.status != 0:
        raise NotReadyError(
            last_words(done.stdout) or last_words(done.stderr) or f"{' '.join(check)} fails",
            place=host.name,
            next_step="stop that server during the test, or name directories that are mounted already",
        )


def _lists(file_systems: str | None, name: str) -> bool:
    return any(line.split()[-1:] == [name] for line in (file_systems or "").splitlines())


SHARE: Final = "{share}"
"""Stands for the number of the share in a folder's path."""
_TIMEOUT_S: Final = 30.0
_FIND_FILE_SYSTEM: Final = ("findmnt", "--noheadings", "--raw", "--output", "FSTYPE,SOURCE,OPTIONS", "--target")


async def make_private(changes: Changes, host: Host, folder: str) -> None:
    """Makes a folder that only root can enter, and that the undo removes."""

    async def apply() -> None:
        await host.run(("mkdir", "-p", "-m", "700", "--", folder))

    await changes.make(host, RemovePath(path=folder), apply)


async def folders_in_memory(changes: Changes, host: Host, inside: str, count: int, size_bytes: int) -> tuple[str, ...]:
    """Makes ``count`` tmpfs of this size each; NotReadyError where memory has no room for all of them."""
    available = parse_meminfo(await host.read_file("/proc/meminfo") or "").get("MemAvailable")
    if available is not None and available < count * size_bytes:
        raise NotReadyError(
            f"{count} shares of {size_bytes} bytes in memory do not fit: {available} bytes are available",
            place=host.name,
            next_step="write a smaller `memory`, fewer `shares`, or a `folder` on a drive",
        )
    made = tuple(f"{inside}/{number}" for number in range(1, count + 1))
    for path in made:
        await changes.make(host, Unmount(path=path), _tmpfs_mounter(host, path, size_bytes))
    return made


async def folders_inside(changes: Changes, host: Host, pattern: str, own_name: str, count: int) -> tuple[str, ...]:
    """Makes a folder of the run in each of the user's, so that the undo removes files of the run and nothing else.

    NotReadyError where one of the user's folders is missing.
    """
    made = []
    for number in range(1, count + 1):
        theirs = pattern.replace(SHARE, str(number))
        looked = await host.run(("sh", "-c", 'test -d "$1" && test -w "$1"', "look", theirs), check=False)
        if looked.status != 0:
            raise NotReadyError(
                f"there is no folder {theirs} that can be written to",
                place=host.name,
                next_step=f"mount its drive or make it (mkdir -p {theirs}), or write another `folder`",
            )
        path = f"{theirs.rstrip('/')}/{own_name}"
        await changes.make(host, RemovePath(path=path), _directory_maker(host, path))
        made.append(path)
    return tuple(made)


async def file_system_of(host: Host, folder: str) -> str:
    """The file system that a folder is on, for the report."""
    try:
        done = await host.run((*_FIND_FILE_SYSTEM, folder), check=False, timeout_s=_TIMEOUT_S)
    except HostError:  # no findmnt
        return "unknown"
    return done.stdout.strip().splitlines()[0] if done.stdout.strip() else "unknown"


def _directory_maker(host: Host, path: str) -> Callable[[], Awaitable[None]]:
    async def apply() -> None:
        await host.run(("mkdir", "-m", "755", "--", path), timeout_s=_TIMEOUT_S)

    return apply


def _tmpfs_mounter(host: Host, path: str, size_bytes: int) -> Callable[[], Awaitable[None]]:
    async def apply() -> None:
        await host.run(("mkdir", "-m", "755", "--", path))
        await host.run(("mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=755", "nicbench", path))

    return apply


_MOUNT_S: Final = 60.0
"""The time that the kernel's client may wait for a server that does not answer."""
_USE_S: Final = 60.0
_USE: Final = 'grep -qF -- " $1 " /proc/self/mountinfo && : >"$1/.nicbench" && rm -- "$1/.nicbench"'


async def mount(changes: Changes, share: Share, command: Command) -> str:
    """Mounts the share and gives the mount as the client's kernel shows it, with its actual options.

    HostError where it cannot be mounted.
    """
    place = place_of(share.client.host)

    async def apply() -> None:
        await place.host.run(("mkdir", "-m", "700", "--", share.directory))
        await place.host.run(place.inside(command), timeout_s=_MOUNT_S)

    await changes.make(place.host, Unmount(path=share.directory), apply)
    if not await is_mounted(place.host, share.directory):
        raise HostError(f"{' '.join(command)}: ended without a mount", place=share.client.host.name)
    await require_use(share)
    shown = await place.host.run(("grep", "-F", "--", f" {share.directory} ", "/proc/self/mountinfo"))
    return describe_mount(shown.stdout)


def describe_mount(mountinfo: str) -> str:
    """A line of ``/proc/self/mountinfo`` (proc(5)) as words: type, source, options of the mount and of the server."""
    here, _, there = mountinfo.strip().partition(" - ")
    return " ".join((*there.split()[:2], *here.split()[5:6], *there.split()[2:]))


async def require_use(share: Share) -> None:
    """Raises NotReadyError where workloads do not see the mount, or cannot write to it.

    A file is made and removed: reading from the client's cache would not show that it is connected to its server again,
    and the reconnection would fall into the first seconds of a round.
    """
    host = share.client.host
    used = await host.run(
        ("sh", "-c", _USE, "use", share.directory),
        check=False,
        timeout_s=_USE_S,
    )
    if used.status != 0:
        raise NotReadyError(
            f"{share.directory} is mounted but cannot be used",
            place=host.name,
            next_step="check that the server lets its client write, and see `dmesg`",
        )


# Starts the servers of shares in the background, each with its undo, and waits until clients can connect to them.
#
# They may be restarted between rounds. Whether one ended during a round is found by comparing before and after: its
# process, and the inode of the socket that it listens on, which changes with a restart.


_READY_S: Final = 30.0
_LOOK_S: Final = 0.1


class Servers:
    """The servers of one host; ``folder`` is the run's folder there for their logs and pids."""

    def __init__(self, host: Host, changes: Changes, folder: str) -> None:
        self._host = host
        self._place = place_of(host)
        self._changes = changes
        self._folder = folder
        self._names: dict[str, int] = {}
        self._servers: tuple[Server, ...] = ()
        self._seen: dict[str, str | None] = {}

    async def start(self, servers: Sequence[Server]) -> None:
        """Starts the servers; NotReadyError where a port is in use or a server not ready in time, with its output."""
        taken = await sockets_of(self._host)
        for server in servers:
            if is_open(_socket(server), taken):
                raise NotReadyError(
                    f"another process listens on TCP port {server.tcp_port}, which the {server.name} needs",
                    place=self._host.name,
                    next_step="find the process with `ss -lntp` on that host and end it, or choose another port",
                )
        for server in servers:
            self._servers = (*self._servers, server)
            await self._start(server)
        await self._wait(servers)

    async def restart(self) -> None:
        """Ends all servers and starts them again; the recorded undo stays valid. NotReadyError as in ``start``."""
        for server in self._servers:
            if server.stop is not None:
                await self._host.run(server.stop)
            await end_server(self._place.host, self._pid_file(server.name))
        for server in self._servers:
            await self._place.host.run(self._command(server))
        await self._wait(self._servers)

    async def look(self) -> None:
        """Remembers the sockets that the servers listen on now, for ``failure``."""
        self._seen = await self._inodes()

    async def failure(self) -> str | None:
        """How a server ended since ``look``, with its last output; None where all still run."""
        now = await self._inodes()
        for server in self._servers:
            if not await is_alive(self._place.host, self._pid_file(server.name)):
                return f"the {server.name} has ended{await self.last_words(server.name)}"
            if now[server.name] is None:
                return f"the {server.name} no longer listens on TCP port {server.tcp_port}"
            if now[server.name] != self._seen.get(server.name):
                return f"the {server.name} was restarted by another program"
        return None

    async def _inodes(self) -> dict[str, str | None]:
        sockets = await listeners_of(self._host)
        return {server.name: inode_of(_socket(server), sockets) for server in self._servers}

    async def last_words(self, name: str) -> str:
        """The last output of the server of this name, as the end of a sentence."""
        text = await self._place.host.read_file(self._log(name)) or ""
        return f"; the {name} says: {last_words(text)}" if text.strip() else ""

    async def _start(self, server: Server) -> None:
        self._names[server.name] = len(self._names) + 1
        place, pid_file, command = self._place, self._pid_file(server.name), self._command(server)

        async def apply() -> None:
            await place.host.run(command)

        if server.undo is not None:
            await self._changes.make(self._host, server.undo)
        await self._changes.make(place.host, EndServer(known_by=pid_file), apply)

    async def _wait(self, servers: Sequence[Server]) -> None:
        """Waits until each server has its socket; NotReadyError where one ends or is too slow."""
        waiting = list(servers)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READY_S):
                while True:
                    sockets = await sockets_of(self._host)
                    waiting = [server for server in waiting if not is_open(_socket(server), sockets)]
                    if not waiting:
                        return
                    for server in waiting:
                        if not await is_alive(self._place.host, self._pid_file(server.name)):
                            await self._refuse(server, "ended at once")
                    await asyncio.sleep(_LOOK_S)
        await self._refuse(waiting[0], f"did not listen on TCP port {waiting[0].tcp_port} within {_READY_S:g} s")

    async def _refuse(self, server: Server, what: str) -> None:
        raise NotReadyError(
            f"the {server.name} {what}{await self.last_words(server.name)}",
            place=self._host.name,
            next_step=f"run it by hand for more output: {server.words}",
        )

    def _command(self, server: Server) -> Command:
        pid_file, log = self._pid_file(server.name), self._log(server.name)
        return self._place.inside(start_command(pid_file, log, server.command))

    def _pid_file(self, name: str) -> str:
        return f"{self._folder}/server-{self._names[name]}.pid"

    def _log(self, name: str) -> str:
        return f"{self._folder}/server-{self._names[name]}.log"


def _socket(server: Server) -> Listening:
    return Listening("tcp", server.tcp_port, server.address)
