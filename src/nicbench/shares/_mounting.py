"""Mounts a share on its client, with the undo, and makes sure that it can be used."""

from __future__ import annotations

from typing import Final

from nicbench.errors import HostError, NotReadyError
from nicbench.shares._place import place_of
from nicbench.shares.base import Command, Share
from nicbench.tuning.changes import Changes
from nicbench.tuning.detached import is_mounted
from nicbench.tuning.undo import Unmount

_MOUNT_S: Final = 60.0
"""A kernel's client waits so long for a server that does not answer."""
_USE_S: Final = 60.0
_USE: Final = 'grep -qF -- " $1 " /proc/self/mountinfo && : >"$1/.nicbench" && rm -- "$1/.nicbench"'


async def mount(changes: Changes, share: Share, command: Command) -> str:
    """Gives the mount as the client's kernel shows it: options as they came to be. HostError where it cannot be had."""
    place = place_of(share.client.host)

    async def apply() -> None:
        await place.host.run(("mkdir", "-m", "700", "--", share.directory))
        await place.host.run(place.inside(command), timeout_s=_MOUNT_S)

    await changes.make(place.host, Unmount(path=share.directory), apply)
    if not await is_mounted(place.host, share.directory):
        raise HostError(f"{' '.join(command)}: has ended, and nothing is mounted", place=share.client.host.name)
    await require_use(share)
    shown = await place.host.run(("grep", "-F", "--", f" {share.directory} ", "/proc/self/mountinfo"))
    return in_words(shown.stdout)


def in_words(mountinfo: str) -> str:
    """A line of ``/proc/self/mountinfo`` (proc(5)) without its numbers: type, source, options of mount and server."""
    here, _, there = mountinfo.strip().partition(" - ")
    return " ".join((*there.split()[:2], *here.split()[5:6], *there.split()[2:]))


async def require_use(share: Share) -> None:
    """Where workloads will run it is there as well, and can be written to; NotReadyError.

    A file is made and removed: what a client only remembers would not show that it has its server again, and the first
    seconds of a round would be those of its reconnecting.
    """
    host = share.client.host
    used = await host.run(
        ("sh", "-c", _USE, "use", share.directory),
        check=False,
        timeout_s=_USE_S,
    )
    if used.status != 0:
        raise NotReadyError(
            f"{share.directory} is mounted and cannot be used",
            place=host.name,
            next_step="see whether the server lets its client write, and what `dmesg` says",
        )
