"""What outlives the controller until it is undone: servers in the background, and mounts. Shell that ends them.

Each is one command, so that a host which hears nothing of nicbench any more can do it by itself (``guards.py``).
"""

from __future__ import annotations

import contextlib
from typing import Final

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host

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
