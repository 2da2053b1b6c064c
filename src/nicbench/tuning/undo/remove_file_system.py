"""Takes a file system down that nicbench made: unmounts it, and leaves the device as empty as it was found."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from nicbench.hosts.base import Host
from nicbench.tuning.undo.base import Undo

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
