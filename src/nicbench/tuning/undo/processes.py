"""Ends what was started: processes, servers in the background, namespaces with all that runs in them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Final, Literal

from nicbench.core.errors import HostError
from nicbench.hosts import close_connections
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NAMESPACE_FOLDER
from nicbench.hosts.owner import nice_of_stat, start_ticks_of_stat
from nicbench.tuning.undo.base import Undo

_END_TRIES = 100
_END_STEP_S = 0.05


async def is_running(host: Host, pid: int, ticks: int) -> bool:
    """Whether the process of this number is the one that was started then."""
    stat = await host.read_file(f"/proc/{pid}/stat")
    return stat is not None and start_ticks_of_stat(stat) == ticks


async def kill(host: Host, pid: int, ticks: int) -> None:
    """Kill it and wait for its end; HostError where it does not die."""
    await host.run(("sh", "-c", 'kill -KILL "$1"', "kill", str(pid)), check=False)
    for _ in range(_END_TRIES):
        if not await is_running(host, pid, ticks):
            return
        await asyncio.sleep(_END_STEP_S)
    raise HostError(f"process {pid} does not die", place=host.name)


class KillProcess(Undo):
    """Kill a process that nicbench started, recognised by pid and start time."""

    kind: Literal["kill_process"] = "kill_process"
    pid: int
    start_ticks: int

    ends_with_lease = True

    async def undo(self, host: Host) -> str | None:
        if await is_running(host, self.pid, self.start_ticks):
            await kill(host, self.pid, self.start_ticks)
        return None


class EndServer(Undo):
    """End a server that nicbench put into the background; ``known_by`` is the file with its pid and start time."""

    kind: Literal["end_server"] = "end_server"
    known_by: str

    async def undo(self, host: Host) -> str | None:
        await end_server(host, self.known_by)
        return None


class StopNfsServer(Undo):
    """Stop the kernel's NFS server of a network namespace, which did not run before."""

    kind: Literal["stop_nfs_server"] = "stop_nfs_server"

    async def undo(self, host: Host) -> str | None:
        await host.run(STOP_NFS_SERVER)
        return None


class RestoreNice(Undo):
    """Give a process its old priority back, unless somebody changed it since; recognised by pid and start time."""

    kind: Literal["restore_nice"] = "restore_nice"
    pid: int
    start_ticks: int
    old: int
    new: int

    # By its number alone a process might be another one by then.
    can_be_scripted = False

    async def undo(self, host: Host) -> str | None:
        stat = await host.read_file(f"/proc/{self.pid}/stat")
        if stat is None or start_ticks_of_stat(stat) != self.start_ticks or nice_of_stat(stat) == self.old:
            return None
        if nice_of_stat(stat) != self.new:
            return (
                f"{host.name}: process {self.pid} was left at nice {nice_of_stat(stat)}: somebody changed it since we "
                f"set {self.new}; before the run it was {self.old}"
            )
        await host.run(("renice", "-n", str(self.old), "-p", str(self.pid)))
        return None


class DeleteNamespace(Undo):
    """Kill what still runs in the namespace and delete it; its interfaces go with it.

    Not while it still holds one of ``holding``: those were moved there, and come back before.
    """

    kind: Literal["delete_namespace"] = "delete_namespace"
    namespace: str
    holding: tuple[str, ...] = ()

    async def undo(self, host: Host) -> str | None:
        # What came into a lab by ssh lets go first, and tidies up: the namespace takes its processes along.
        await close_connections(through=self.namespace)
        path = f"{NAMESPACE_FOLDER}/{self.namespace}"
        if (await host.run(("test", "-e", path), check=False)).status != 0:
            return None
        if held := await self._find_held(host):
            raise HostError(
                f"namespace {self.namespace} still holds {', '.join(held)}, which did not come back", place=host.name
            )
        # A process inside would keep the namespace alive without a name.
        inside = await host.run(("ip", "netns", "pids", self.namespace), check=False)
        for pid in map(int, inside.stdout.split()):
            stat = await host.read_file(f"/proc/{pid}/stat")
            ticks = start_ticks_of_stat(stat) if stat else None
            if ticks is not None:
                await kill(host, pid, ticks)
        deleted = await host.run(("ip", "netns", "delete", self.namespace), check=False)
        if (await host.run(("test", "-e", path), check=False)).status == 0:
            raise HostError(f"namespace {self.namespace} cannot be deleted: {deleted.stderr.strip()}", place=host.name)
        return None

    async def _find_held(self, host: Host) -> list[str]:
        """Which of the interfaces that were moved there are still in the namespace."""
        shown = await host.run(("ip", "-j", "-n", self.namespace, "link", "show"), check=False)
        there = {str(link.get("ifname")) for link in json.loads(shown.stdout or "[]")} if shown.status == 0 else set()
        return [device for device in self.holding if device in there]


# What outlives the controller until it is undone: servers in the background, and mounts. Shell that ends them.  Each
# is one command, so that a host which hears nothing of nicbench any more can do it by itself (``guards.py``).

# A process is known by its pid and start time (proc(5), field 22 of stat, the 20th after the name in brackets).
_START_TICKS: Final = 'ticks() { read -r stat <"/proc/$1/stat" || return 1; set -- ${stat##*) }; shift 19; echo "$1"; }'
# $1 is the file that it is known by, $2 its log. In a session of its own, which it leads: what it starts ends with it.
_START: Final = f"""
{_START_TICKS}
known=$1 log=$2
shift 2
cd / || exit
setsid "$@" </dev/null >"$log" 2>&1 &
echo "$! $(ticks $!)" >"$known"
"""
_LIVES: Final = f"""
{_START_TICKS}
read -r pid started <"$1" && [ "$(ticks "$pid")" = "$started" ] || exit 1
read -r stat <"/proc/$pid/stat" && case ${{stat##*) }} in Z*) exit 1 ;; esac
"""
_END: Final = f"""
lives() {{ ( {_LIVES} ) 2>/dev/null; }}
lives "$1" || exit 0
read -r pid started <"$1"
kill -KILL "-$pid" 2>/dev/null || kill -KILL "$pid"
for _ in $(seq 100); do
    lives "$1" || exit 0
    sleep 0.05
done
echo "process $pid does not die" >&2
exit 1
"""
# Lazily where somebody is still in it or its server is gone; forced, so that what waits for that server gets an error.
_DETACH: Final = 'umount --no-canonicalize --lazy --force "$1"'
_IF_MOUNTED: Final = 'grep -qF -- " $1 " /proc/self/mountinfo || exit 0; '
_UNMOUNT: Final = f'{_IF_MOUNTED}umount --no-canonicalize "$1" 2>/dev/null || {_DETACH}'
_UNMOUNT_S: Final = 10.0

# Its control files are those of the network namespace that they are mounted in (nfsd(7)). The number of threads is the
# last thing that it has: at 0 it lets go of its exports.
STOP_NFS_SERVER: Final = (
    *("unshare", "--mount", "sh", "-c"),
    "grep -qw nfsd /proc/filesystems || exit 0; mount -t nfsd nicbench /proc/fs/nfsd && echo 0 >/proc/fs/nfsd/threads",
)


def start_command(known_by: str, log: str, command: tuple[str, ...]) -> tuple[str, ...]:
    """Starts a server in the background; how to end it is then in the file ``known_by``."""
    return ("sh", "-c", _START, "start", known_by, log, *command)


async def is_alive(host: Host, known_by: str) -> bool:
    """Whether that server still runs."""
    return (await host.run(("sh", "-c", _LIVES, "lives", known_by), check=False)).status == 0


async def end_server(host: Host, known_by: str) -> None:
    """Ends it with all that it started; HostError where it does not die."""
    await host.run(("sh", "-c", _END, "end", known_by))


async def is_mounted(host: Host, path: str) -> bool:
    """By the kernel's list: asking the mount itself would wait for a server that is gone."""
    return (await host.run(("grep", "-qF", "--", f" {path} ", "/proc/self/mountinfo"), check=False)).status == 0


async def unmount(host: Host, path: str) -> None:
    """Unmounts what nicbench mounted, whoever is in it, and whether or not its server answers. HostError."""
    with contextlib.suppress(HostError):  # it waits for a server that does not answer
        await host.run(("sh", "-c", _UNMOUNT, "unmount", path), check=False, timeout_s=_UNMOUNT_S)
    if await is_mounted(host, path):
        await host.run(("sh", "-c", _IF_MOUNTED + _DETACH, "detach", path), timeout_s=_UNMOUNT_S)
