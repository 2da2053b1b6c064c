"""Removes files, mounts and file systems that nicbench made, and writes old values back to files."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.tuning import detached
from nicbench.tuning.setting import same_value
from nicbench.tuning.undo.base import Undo, ValueUndo


class RestoreFile(ValueUndo):
    """Write ``old`` back to ``path``, unless it no longer holds ``new`` (somebody changed it since)."""

    kind: Literal["restore_file"] = "restore_file"
    path: str
    old: str
    new: str

    async def undo(self, host: Host) -> str | None:
        current = await host.read_file(self.path)
        if current is None or same_value(self.path, current, self.old):
            return None
        if not same_value(self.path, current, self.new):
            return (
                f"{host.name}: {self.path} was left at {current.strip()!r}: somebody changed it since we set "
                f"{self.new!r}; before the run it was {self.old!r}"
            )
        await self.write_old(host)
        read_back = await host.read_file(self.path)
        if read_back is None or not same_value(self.path, read_back, self.old):
            raise HostError(f"{self.path} should be {self.old!r} again and is {read_back!r}", place=host.name)
        return None

    async def write_old(self, host: Host) -> None:
        await host.write_file(self.path, self.old)

    def describe_goal(self) -> str:
        return f"{self.path}, to {self.old!r}"


_REMOVAL_S: Final = 1800.0
"""Thousands of large files over a network take their time."""


class RemovePath(Undo):
    """Remove a file or folder that nicbench made."""

    kind: Literal["remove_path"] = "remove_path"
    path: str

    # It may have been on a mount whose server is gone, and gone itself once that was unmounted.
    retried_after: ClassVar[frozenset[str]] = frozenset({"unmount"})

    async def undo(self, host: Host) -> str | None:
        parts = [part for part in self.path.split("/") if part]
        if not self.path.startswith("/") or len(parts) < 2 or ".." in parts:
            return f"{host.name}: {self.path} was left alone: not a path that nicbench makes"
        await host.run(("rm", "-rf", "--one-file-system", "--", self.path), timeout_s=_REMOVAL_S)
        return None


class Unmount(Undo):
    """Unmount what nicbench mounted at ``path``, lazily where its server is gone or somebody is in it."""

    kind: Literal["unmount"] = "unmount"
    path: str

    async def undo(self, host: Host) -> str | None:
        await detached.unmount(host, self.path)
        return None


_UNMOUNTING_S: Final = 900.0
"""What is not written yet is written first, and a drive takes minutes for the memory of a large machine."""

# $1 device, $2 mount point, $3 our UUID, $4 what of it is taken away. By the UUID it is known: neither mount nor
# content of somebody else is touched. A device that is still being written to after a lazy unmount is waited for.
_REMOVE: Final = """
device=$1 point=$2 uuid=$3 parts=$4
is_ours() { [ "$(blkid --probe --match-tag UUID --output value "$1" 2>/dev/null)" = "$uuid" ]; }
source=$(findmnt --noheadings --first-only --output SOURCE --mountpoint "$point" 2>/dev/null)
if [ -n "$source" ]; then
    if is_ours "$source"; then
        umount "$point" 2>/dev/null || umount --lazy "$point" || exit
    else
        echo "$point was left alone: somebody mounted $source there since"
    fi
fi
case $parts in *folder*) [ -d "$point" ] && rmdir "$point" 2>/dev/null ;; esac
case $parts in
*file*)
    [ -f "$device" ] || exit 0
    if is_ours "$device" || [ -z "$(wipefs --parsable "$device" | grep -v '^#')" ]; then
        rm -f -- "$device"
    else
        echo "$device was left alone: it is no longer as the run made it"
    fi
    ;;
*signature*)
    is_ours "$device" || exit 0
    for _ in $(seq 100); do
        said=$(wipefs --quiet --all "$device" 2>&1) && exit 0
        sleep 0.2
    done
    echo "$said" >&2
    exit 1
    ;;
esac
exit 0
"""

Part = Literal["folder", "file", "signature"]


class RemoveFileSystem(Undo):
    """Unmount the file system with ``uuid`` on ``device`` from ``path``, and take away what of it nicbench added.

    ``added``: the ``folder`` that it is mounted at, the image ``file``, or the ``signature`` on a device that had none.
    A device that had one keeps the new file system: its old content is gone, and cannot be put back.
    """

    kind: Literal["remove_file_system"] = "remove_file_system"
    device: str
    path: str
    uuid: str
    added: tuple[Part, ...] = ()

    retried_after: ClassVar[frozenset[str]] = frozenset({"remove_path", "unmount"})

    async def undo(self, host: Host) -> str | None:
        command = ("sh", "-c", _REMOVE, "remove", self.device, self.path, self.uuid, " ".join(self.added))
        done = await host.run(command, timeout_s=_UNMOUNTING_S)
        return f"{host.name}: {done.stdout.strip()}" if done.stdout.strip() else None

    def describe_goal(self) -> str:
        return f"{self.device} is not mounted at {self.path}" + (
            ", and is as empty as it was" if {"file", "signature"} & set(self.added) else ""
        )
