"""Removes files, mounts and file systems that nicbench made, and writes old values back to files and settings."""

from __future__ import annotations

from typing import Any, Final, Literal, Self

from pydantic import ValidationError

from nicbench.core.base import why_of
from nicbench.core.errors import HostError, NicbenchError
from nicbench.core.plan import Values
from nicbench.core.registry import find
from nicbench.hosts.base import Host
from nicbench.tuning.setting import CannotSetError, Place, Setting, same_value, values_in_words
from nicbench.tuning.undo import processes
from nicbench.tuning.undo.base import Undo, ValueUndo

# Removes files, mounts and file systems that nicbench made, and writes old values back to files.


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
    retried_after = frozenset({"unmount"})

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
        await processes.unmount(host, self.path)
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

    retried_after = frozenset({"remove_path", "unmount"})

    async def undo(self, host: Host) -> str | None:
        command = ("sh", "-c", _REMOVE, "remove", self.device, self.path, self.uuid, " ".join(self.added))
        done = await host.run(command, timeout_s=_UNMOUNTING_S)
        return f"{host.name}: {done.stdout.strip()}" if done.stdout.strip() else None

    def describe_goal(self) -> str:
        return f"{self.device} is not mounted at {self.path}" + (
            ", and is as empty as it was" if {"file", "signature"} & set(self.added) else ""
        )


# Gives a setting of a tuning item its old values back.


class RestoreSetting(ValueUndo):
    """Give a setting of a tuning item its values back, by the item's own reading and writing.

    Only keys that still read as ``asked`` get their value of ``before``; others were changed by somebody since. Keys
    that nobody asked for changed along with them, and are put back along with them.
    """

    kind: Literal["restore_setting"] = "restore_setting"
    item: str
    options: dict[str, Any]
    device: str | None
    before: Values
    asked: Values

    @classmethod
    def of(cls, item: Setting, device: str | None, before: Values, asked: Values) -> Self:
        """The undo of writing ``asked`` where ``before`` was read."""
        options = item.options.model_dump(mode="json")
        return cls(item=item.kind, options=options, device=device, before=before, asked=asked)

    async def undo(self, host: Host) -> str | None:
        """Key by key, in the order in which they were set: what somebody changed since is left.

        What cannot be read any more has gone with its place.
        """
        item, place = self._item(), Place(host, self.device)
        try:
            now = await item.read_checked(place)
        except CannotSetError:
            return None
        asked_for = {key: old for key, old in self.before.items() if key in self.asked}
        entailed = {key: old for key, old in self.before.items() if key not in self.asked}
        old = {key: old for key, old in asked_for.items() if key in now and not item.is_same(key, now[key], old)}
        ours = {key: value for key, value in old.items() if item.is_same(key, now[key], self.asked[key])}
        left = {key: now[key] for key in old if key not in ours}
        if ours:
            ours |= entailed
            await item.write(place, ours)
            after = await item.read_checked(place)
            if wrong := item.find_differing(ours, after):
                got = {key: after.get(key) for key in wrong}
                raise HostError(
                    f"{self.item} should be {values_in_words(wrong)} again and is {values_in_words(got)}",
                    place=str(place),
                )
        if left:
            asked, before = ({key: values[key] for key in left} for values in (self.asked, self.before))
            return (
                f"{place}: {self.item} was left at {values_in_words(left)}: somebody changed it since we set "
                f"{values_in_words(asked)}; "
                f"before the run it was {values_in_words(before)}"
            )
        return None

    async def read_values(self, host: Host) -> Values | None:
        try:
            now = await self._item().read_checked(Place(host, self.device))
        except (CannotSetError, NicbenchError):
            return None
        return {key: now.get(key) for key in self.asked}

    async def write_old(self, host: Host) -> None:
        await self._item().write(Place(host, self.device), self.before)

    async def question(self, host: Host) -> None:
        await self._item().read_checked(Place(host, self.device))

    def describe_goal(self) -> str:
        of = f" of {self.device}" if self.device else ""
        return f"{self.item}{of}, to {values_in_words(self.before)}"

    def _item(self) -> Setting:
        """The item made again; HostError where this nicbench does not know it."""
        kinds = find("nicbench.tuning.items", Setting)
        if self.item not in kinds:
            raise HostError(f"this nicbench does not know the tuning item {self.item!r}: undo it with the one that ran")
        try:
            return kinds[self.item](kinds[self.item].Options.model_validate(self.options))
        except ValidationError as error:
            raise HostError(f"the options of {self.item} are not understood: {why_of(error.errors()[0])}") from error
