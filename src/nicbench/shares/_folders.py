"""The folders that are shared: in memory, each a tmpfs of its own, or inside folders of the user's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from nicbench.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.inventory.meminfo import parse_meminfo
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo import RemovePath, Unmount

SHARE: Final = "{share}"
"""In a folder: the number of the share."""
_TIMEOUT_S: Final = 30.0
_KNOWN: Final = ("findmnt", "--noheadings", "--raw", "--output", "FSTYPE,SOURCE,OPTIONS", "--target")


async def make_private(changes: Changes, host: Host, folder: str) -> None:
    """A folder that nobody but root enters, gone with the run."""

    async def apply() -> None:
        await host.run(("mkdir", "-p", "-m", "700", "--", folder))

    await changes.make(host, RemovePath(path=folder), apply)


async def folders_in_memory(changes: Changes, host: Host, inside: str, count: int, size_bytes: int) -> tuple[str, ...]:
    """So many tmpfs of this size each; NotReadyError where memory has no room for all of them."""
    available = parse_meminfo(await host.read_file("/proc/meminfo") or "").get("MemAvailable")
    if available is not None and available < count * size_bytes:
        raise NotReadyError(
            f"{count} shares of {size_bytes} bytes in memory do not fit: {available} bytes are available",
            place=host.name,
            next_step="write a smaller `memory`, fewer `shares`, or a `folder` on a drive",
        )
    made = tuple(f"{inside}/{number}" for number in range(1, count + 1))
    for path in made:
        await changes.make(host, Unmount(path=path), _mounts_memory(host, path, size_bytes))
    return made


async def folders_inside(changes: Changes, host: Host, pattern: str, own_name: str, count: int) -> tuple[str, ...]:
    """A folder of ours in each of the user's, so that whatever a run leaves is gone, and nothing else.

    NotReadyError where one is not there.
    """
    made: list[str] = []
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
        await changes.make(host, RemovePath(path=path), _makes(host, path))
        made.append(path)
    return tuple(made)


async def file_system_of(host: Host, folder: str) -> str:
    """What the folder is on, for the report."""
    try:
        done = await host.run((*_KNOWN, folder), check=False, timeout_s=_TIMEOUT_S)
    except HostError:  # no findmnt
        return "unknown"
    return done.stdout.strip().splitlines()[0] if done.stdout.strip() else "unknown"


def _makes(host: Host, path: str) -> Callable[[], Awaitable[None]]:
    async def apply() -> None:
        await host.run(("mkdir", "-m", "755", "--", path), timeout_s=_TIMEOUT_S)

    return apply


def _mounts_memory(host: Host, path: str, size_bytes: int) -> Callable[[], Awaitable[None]]:
    async def apply() -> None:
        await host.run(("mkdir", "-m", "755", "--", path))
        await host.run(("mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=755", "nicbench", path))

    return apply
