"""A file system for the test: made on a drive or in an image file, mounted, and taken down afterwards."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError
from nicbench.core.frozen import frozen
from nicbench.core.plan import Values
from nicbench.core.quantity import Bytes
from nicbench.hosts.base import Host
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.base import Item, Phase
from nicbench.tuning.items.storage import mounts_of
from nicbench.tuning.setting import CannotSetError, Place
from nicbench.tuning.undo.files import Part, RemoveFileSystem

# What is on a block device or an image file, and who uses it: what wipefs, lsblk and losetup print. Pure.


def signatures_of(text: str) -> tuple[str, ...]:
    """Types of the signatures that ``wipefs --parsable`` lists, each once: file systems, partition tables, RAID, LVM.

    Its lines are ``offset,uuid,label,type``, of which the label is free text (util-linux, wipefs(8)). ValueError.
    """
    found: dict[str, None] = {}
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        offset, *others = line.split(",")
        if not offset.startswith("0x") or len(others) < 3:
            raise ValueError(f"no line of wipefs: {line!r}")
        found[others[-1].strip()] = None
    return tuple(found)


def users_of(text: str) -> tuple[str, ...]:
    """Who uses a device, in words, by ``lsblk --json --paths --output NAME,TYPE,MOUNTPOINT DEVICE``. ValueError.

    What stands on it counts, mounted or not: partitions, RAID, LVM, encryption.
    """
    devices = json.loads(text)["blockdevices"]
    return tuple(word for device in devices for word in _users(device, is_itself=True))


def _users(device: dict[str, Any], *, is_itself: bool) -> Iterator[str]:
    if not is_itself:
        yield f"{device['name']} ({device['type']}) is on it"
    if device.get("mountpoint"):
        use = "swapped to" if device["mountpoint"] == "[SWAP]" else f"mounted at {device['mountpoint']}"
        yield f"{'it' if is_itself else device['name']} is {use}"
    for child in device.get("children", ()):
        yield from _users(child, is_itself=False)


def loop_devices_of(text: str) -> tuple[str, ...]:
    """Loop devices of an image, by ``losetup --json --associated IMAGE --output NAME``, which may say nothing."""
    return tuple(str(one["name"]) for one in json.loads(text)["loopdevices"]) if text.strip() else ()


_FORMATTING_S: Final = 1800.0
"""mkfs discards all blocks of a drive first, which takes minutes."""
_NOTHING, _NO_FILE = "nothing", "no file"
_SMALLEST_IMAGE = 16 * 2**20
_USED, _POINT = "used", "mount point"


@frozen
class _Kind:
    """How a file system is made with a UUID and whatever is there: its package, and mkfs's words before the UUID."""

    package: str
    words: tuple[str, ...]


_PATH: Final = re.compile(r"(/[A-Za-z0-9_@%+=:.-]+)+")
_KINDS: Final = {
    "ext4": _Kind("e2fsprogs", ("-q", "-F", "-U", "{}")),
    "xfs": _Kind("xfsprogs", ("-q", "-f", "-m", "uuid={}")),
    "btrfs": _Kind("btrfs-progs", ("-q", "-f", "-U", "{}")),
}


def _split_mkfs_option(text: str) -> str:
    """An option with its value cannot be taken for another device, and the UUID is ours: the undo knows it by that."""
    option, _, value = text.partition(" ")
    if "UUID=" in value or "LABEL=" in value or "uuid=" in value or option in ("-U", "--uuid"):
        raise ValueError(f"{text!r}: the UUID is chosen by nicbench, and no other device is named")
    return text


MkfsOption = Annotated[
    str,
    StringConstraints(pattern=r"^-[A-Za-z0-9-]+( [A-Za-z0-9_^,=.:+-]+)?$", max_length=200),
    AfterValidator(_split_mkfs_option),
]
"""An option of mkfs with its value: ``-m reflink=0``."""


def _refuse_other_mounts(text: str) -> str:
    if text.partition("=")[0] in ("remount", "bind", "rbind", "move", "ro", "loop", "offset", "sizelimit"):
        raise ValueError(f"{text!r} is no option of a file system that is made for a test and written to")
    return text


MountOption = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.:=+-]*$", max_length=100),
    AfterValidator(_refuse_other_mounts),
]


def _check_path(text: str) -> str:
    if not _PATH.fullmatch(text) or any(part in (".", "..") for part in text.split("/")):
        raise ValueError(f"{text!r} is no absolute path of plain letters: write it like /dev/nvme1n1 or /stor/d1")
    return text


Path = Annotated[str, Field(max_length=255), AfterValidator(_check_path)]


class FileSystemOptions(Frozen):
    """``file_system: {device: /dev/nvme1n1, type: xfs, mount: [noatime], path: /stor/d1}``."""

    device: Path
    path: Path
    type: Literal["ext4", "xfs", "btrfs"] = "xfs"
    mkfs: tuple[MkfsOption, ...] = Field(default=(), max_length=32)
    mount: tuple[MountOption, ...] = Field(default=(), max_length=32)
    erase: bool = False
    image: Bytes | None = Field(default=None, ge=_SMALLEST_IMAGE)


class FileSystem(Item):
    """A file system for the test: made on a drive or in an image file, mounted, and taken down afterwards.

    Source: mkfs(8) and mkfs.ext4(8), mkfs.xfs(8), mkfs.btrfs(8); mount(8). A format cannot be undone. So a device is
    formatted only where it has no signature of anything (wipefs(8)), and has none again after the run; or where the
    bench file says `erase: true`, and then what was on it is lost. One that is in use is never formatted.

    What is on the device, what is mounted and with which options; further keys say what may prevent it.
    """

    kind = "file_system"
    Options = FileSystemOptions
    options: FileSystemOptions
    scope = "machine"
    phase = Phase.MACHINE

    async def read(self, place: Place) -> Values:
        if not await _has(place.host, self._mkfs):
            package = _KINDS[self.options.type].package
            raise CannotSetError(f"{self._mkfs} is not installed there: apt-get install {package}")
        mount = mounts_of(await place.host.read_file("/proc/self/mountinfo") or "").get(self.options.path)
        content, used = await self._look_at_device(place.host)
        return {
            self._content: content,
            self._mounted: _NOTHING if mount is None else mount.filesystem,
            self._options: ",".join(options_in_force(self.options.mount, mount.options) if mount else ()) or "none",
            _USED: used,
            _POINT: "mounted" if mount else await _answer(place.host, _LOOK_AT_FOLDER, self.options.path),
        }

    def target_values(self, now: Values) -> Values:
        asked = self.options
        if now[_USED]:
            raise CannotSetError(f"{asked.device} is in use, and is not formatted: {now[_USED]}")
        if now[self._content] == _NO_FILE:
            if asked.image is None or asked.device.startswith("/dev/"):
                raise CannotSetError(
                    f"there is no {asked.device}: lsblk shows the devices of the machine; an image file is made where "
                    "its size is given: `image: 4 GiB`"
                )
        elif asked.image is not None:
            raise CannotSetError(f"{asked.device} is there already; leave `image` out, or remove the file")
        elif now[self._content] != _NOTHING and not asked.erase:
            raise CannotSetError(
                f"{asked.device} is not empty, there is {now[self._content]} on it; a format cannot be undone: write "
                "`erase: true` if all that is on it may be lost"
            )
        why = {
            "mounted": "something is mounted there",
            "full": "it holds files, which a mount would hide",
            "orphan": f"its parent folder is missing: mkdir -p {asked.path.rpartition('/')[0]}",
            "file": "it is no folder",
        }.get(str(now[_POINT]))
        if why is not None:
            raise CannotSetError(f"nothing can be mounted at {asked.path}: {why}")
        options: Values = {self._options: ",".join(asked.mount)} if asked.mount else {}
        return {self._content: asked.type, self._mounted: asked.type, **options}

    def commands(self) -> tuple[str, ...]:
        return (
            *((f"truncate --size={self.options.image:.0f} {self.options.device}",) if self.options.image else ()),
            " ".join((self._mkfs, *_KINDS[self.options.type].words[:-2], *self._mkfs_words, self.options.device)),
            " ".join((*self._mount_command(self.options.mount), self.options.path)),
        )

    async def apply(self, changes: Changes, place: Place, before: Values, asked: Values) -> None:
        """The undo has the UUID of what is made, and is written before anything is."""
        now = await self.read(place)
        added: list[Part] = [*(("folder",) if now[_POINT] == "missing" else ())]
        if now[self._content] in (_NOTHING, _NO_FILE):
            added.append("signature" if now[self._content] == _NOTHING else "file")
        # Known again after a crash, and the same in each turn of a run: nothing is left to chance.
        name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"nicbench:{changes.run_id}:{self.options.device}"))
        undo = RemoveFileSystem(device=self.options.device, path=self.options.path, uuid=name, added=tuple(added))
        try:
            await changes.make(place.host, undo, lambda: self._make(place.host, name))
        except HostError:
            await undo.undo(place.host)
            raise

    async def write(self, place: Place, values: Values) -> None:
        raise CannotSetError("a format cannot be undone")

    @property
    def _content(self) -> str:
        return f"content of {self.options.device}"

    @property
    def _mounted(self) -> str:
        return f"mounted at {self.options.path}"

    @property
    def _options(self) -> str:
        return f"options of {self.options.path}"

    @property
    def _mkfs(self) -> str:
        return f"mkfs.{self.options.type}"

    @property
    def _mkfs_words(self) -> tuple[str, ...]:
        return tuple(word for option in self.options.mkfs for word in option.split(" "))

    def _mount_command(self, options: tuple[str, ...]) -> tuple[str, ...]:
        # A file is mounted by a loop device, which the kernel lets go of with the mount.
        words = (*options, *(() if self.options.device.startswith("/dev/") else ("loop",)))
        return ("mount", "-t", self.options.type, *(("-o", ",".join(words)) if words else ()), self.options.device)

    async def _make(self, host: Host, name: str) -> None:
        device, path = self.options.device, self.options.path
        if self.options.image is not None:
            await host.run(("truncate", f"--size={self.options.image:.0f}", device))
        if self.options.erase:  # mkfs leaves what it does not overwrite: the signature of another file system
            await host.run(("wipefs", "--quiet", "--all", device))
        words = tuple(word.format(name) for word in _KINDS[self.options.type].words)
        command = ("env", "--chdir=/", self._mkfs, *words, *self._mkfs_words, device)
        done = await host.run(command, check=False, timeout_s=_FORMATTING_S)
        if done.status != 0:
            said = next(iter((done.stderr.strip() or done.stdout.strip()).splitlines()), f"exit status {done.status}")
            raise HostError(f"it cannot be formatted: {said}", place=host.name)
        await host.run(("mkdir", "-p", "--", path))
        done = await host.run((*self._mount_command(self.options.mount), path), check=False, timeout_s=_FORMATTING_S)
        if done.status != 0:
            wrong = [word for word in self.options.mount if not await self._can_mount(host, word)]
            which = f"{self.options.type} does not take the option {', '.join(wrong)}" if wrong else done.stderr.strip()
            raise HostError(f"it cannot be mounted: {which}", place=host.name)

    async def _can_mount(self, host: Host, option: str) -> bool:
        done = await host.run((*self._mount_command((option,)), self.options.path), check=False)
        if done.status == 0:
            await host.run(("umount", self.options.path))
        return done.status == 0

    async def _look_at_device(self, host: Host) -> tuple[str, str]:
        """What is on it, and who uses it; "" where nobody does."""
        device = self.options.device
        what = await _answer(host, _LOOK_AT_DEVICE, device)
        if what == "absent":
            return _NO_FILE, ""
        if what == "other" or (what == "file" and device.startswith("/dev/")):
            raise CannotSetError(f"{device} is neither a block device nor an image file")
        if what == "file":
            listed = await host.run(("losetup", "--json", "--associated", device, "--output", "NAME"))
            used = tuple(f"{loop} has it" for loop in loop_devices_of(listed.stdout))
        else:
            listed = await host.run(("lsblk", "--json", "--paths", "--output", "NAME,TYPE,MOUNTPOINT", device))
            used = users_of(listed.stdout)
        done = await host.run(("wipefs", "--parsable", device), check=False)
        if done.status != 0 and not used:
            raise CannotSetError(f"{device} cannot be read: {done.stderr.strip()}")
        content = "unknown" if done.status != 0 else ", ".join(signatures_of(done.stdout)) or _NOTHING
        return content, "; ".join(used)


def options_in_force(asked: tuple[str, ...], shown: tuple[str, ...]) -> tuple[str, ...]:
    """Of the options asked for those that the kernel does not contradict: it shows few that are its defaults.

    ``noatime`` is contradicted by ``atime`` and the reverse, ``logbufs=8`` by ``logbufs=4``.
    """
    values = {name: value for name, _, value in (word.partition("=") for word in shown)}

    def holds(word: str) -> bool:
        name, _, value = word.partition("=")
        opposite = name[2:] if name.startswith("no") else f"no{name}"
        return values.get(name, value) == value and opposite not in values

    return tuple(word for word in asked if holds(word))


_LOOK_AT_DEVICE: Final = """
if [ -b "$1" ]; then echo block; elif [ -f "$1" ]; then echo file; elif [ -e "$1" ]; then echo other
else echo absent; fi
"""
_LOOK_AT_FOLDER: Final = """
if [ -d "$1" ]; then [ -z "$(ls -A "$1")" ] && echo empty || echo full
elif [ -e "$1" ]; then echo file; elif [ -d "${1%/*}/" ]; then echo missing; else echo orphan; fi
"""


async def _answer(host: Host, script: str, path: str) -> str:
    return (await host.run(("sh", "-c", script, "look", path))).stdout.strip()


async def _has(host: Host, program: str) -> bool:
    return (await host.run(("sh", "-c", 'command -v -- "$1"', "look", program), check=False)).status == 0
