"""Settings of file systems, drives and servers of files."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import Field, StringConstraints, field_validator, model_validator

from nicbench.core.base import Frozen
from nicbench.core.frozen import frozen
from nicbench.core.plan import Values
from nicbench.tuning.items.base import Item, Phase
from nicbench.tuning.setting import CannotSetError, Place

# What is mounted where: /proc/self/mountinfo, as proc_pid_mountinfo(5) describes it. Pure.

_ESCAPED = re.compile(r"\\([0-7]{3})")


@frozen
class Mount:
    """A file system at a place; ``options`` are those of the place and of the file system, each once."""

    point: str
    device: str
    """Major and minor number: ``254:0``."""
    filesystem: str
    options: tuple[str, ...]


def mounts_of(text: str) -> dict[str, Mount]:
    """Returns the mounts by mount point, the topmost where several are stacked. Lines of another form are skipped."""
    found = {}
    for line in text.splitlines():
        fields = line.split()
        if "-" not in fields[6:] or len(fields) < fields.index("-", 6) + 4:
            continue
        separator = fields.index("-", 6)
        point = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), fields[4])
        options = dict.fromkeys([*fields[5].split(","), *fields[separator + 3].split(",")])
        found[point] = Mount(point, fields[2], fields[separator + 1], tuple(options))
    return found


_GROUPS: Final = {
    "access time": ("relatime", "noatime", "strictatime"),
    "lazy time": ("nolazytime", "lazytime"),
    "writing": ("async", "sync"),
    "directories": ("diratime", "nodiratime"),
}
"""Of each group one holds; ``group_values`` says which where /proc/self/mountinfo names none of them."""
_WRITTEN: Final = {"relatime": "atime,relatime", "strictatime": "atime,strictatime"}
"""mount(8) takes over what holds already, and `noatime` among it wins until it is taken back."""
_GROUP_OF: Final = {word: group for group, words in _GROUPS.items() for word in words}


class MountOptionsOptions(Frozen):
    """``mount_options: {path: /srv/media, options: [noatime]}``."""

    path: str = Field(pattern=r"^/", max_length=4096)
    options: tuple[str, ...] = Field(min_length=1, max_length=len(_GROUPS))

    @field_validator("options")
    @classmethod
    def _require_known(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        for word in options:
            if word not in _GROUP_OF:
                raise ValueError(f"{word!r} is none of {', '.join(_GROUP_OF)}")
        if len({_GROUP_OF[word] for word in options}) < len(options):
            raise ValueError("two of them contradict each other")
        return options


class MountOptions(Item):
    """Options of file systems that are mounted already, changed by remounting: those that have a word for either way.

    Source: mount(8), "filesystem-independent mount options". What a file system takes only when it is mounted (`rsize`
    of NFS) is not changed under the feet of others.

    A value for each group of options that exclude each other.
    """

    kind = "mount_options"
    Options = MountOptionsOptions
    options: MountOptionsOptions
    scope = "machine"
    phase = Phase.MACHINE

    async def read(self, place: Place) -> Values:
        mount = mounts_of(await place.host.read_file("/proc/self/mountinfo") or "").get(self.options.path)
        if mount is None:
            raise CannotSetError(f"nothing is mounted at {self.options.path}")
        return group_values(mount.options)

    def target_values(self, now: Values) -> Values:
        return {_GROUP_OF[word]: word for word in self.options.options}

    async def write(self, place: Place, values: Values) -> None:
        words = ",".join(_WRITTEN.get(str(value), str(value)) for value in values.values())
        # On top of what holds (mtab), not of what stands in /etc/fstab: what somebody mounted read-only or nosuid would
        # else become writable, and stay so.
        await place.host.run(("mount", "--options-source", "mtab", "-o", f"remount,{words}", self.options.path))


def group_values(options: tuple[str, ...]) -> Values:
    """The option of each group that holds. The kernel shows no word for strict access times."""
    values: Values = {}
    for group, words in _GROUPS.items():
        default = "strictatime" if group == "access time" else words[0]
        values[group] = next((word for word in words if word in options), default)
    return values


class ReadAheadOptions(Frozen):
    """``read_ahead: {of: [nvme0n1, /srv/media], kib: 4096}``: names of block devices, or mount points."""

    of: tuple[str, ...] = Field(min_length=1, max_length=64)
    kib: int = Field(ge=0, le=4_194_304)


class ReadAhead(Item):
    """How much is read ahead from disks and network file systems, which decides what streaming from them reaches.

    Source: Documentation/ABI/stable/sysfs-block (read_ahead_kb), Documentation/ABI/testing/sysfs-class-bdi.

    Of each, in KiB.
    """

    kind = "read_ahead"
    Options = ReadAheadOptions
    options: ReadAheadOptions
    scope = "machine"
    phase = Phase.MACHINE

    async def read(self, place: Place) -> Values:
        values: Values = {}
        for name in self.options.of:
            text = await place.host.read_file(await self._path(place, name))
            if text is None:
                raise CannotSetError(f"{name} has no read-ahead: it is no whole block device and no mount point of one")
            values[name] = int(text)
        return values

    def target_values(self, now: Values) -> Values:
        return dict.fromkeys(now, self.options.kib)

    async def write(self, place: Place, values: Values) -> None:
        for name, kib in values.items():
            await place.host.write_file(await self._path(place, name), str(kib))

    async def _path(self, place: Place, name: str) -> str:
        if not name.startswith("/"):
            return f"/sys/block/{name.replace('/', '!')}/queue/read_ahead_kb"
        mount = mounts_of(await place.host.read_file("/proc/self/mountinfo") or "").get(name)
        if mount is None:
            raise CannotSetError(f"nothing is mounted at {name}")
        return f"/sys/class/bdi/{mount.device}/read_ahead_kb"


_FOLDER = "/proc/fs/nfsd"
_THREADS = "threads"
Version = Annotated[str, StringConstraints(pattern=r"^[2-4](\.[0-2])?$")]


class NfsdOptions(Frozen):
    """``nfsd: {threads: 64, versions: {"3": false, "4.2": true}}``."""

    threads: int | None = Field(default=None, ge=1, le=10_000)
    versions: dict[Version, bool] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _require_something(self) -> NfsdOptions:
        if self.threads is None and not self.versions:
            raise ValueError("give threads or versions")
        return self


class Nfsd(Item):
    """The kernel's NFS server: how many threads it has, and which versions it speaks.

    Source: rpc.nfsd(8), nfsd(7): /proc/fs/nfsd/threads and versions. Versions change only while it has no threads, and
    with its last thread a server closes its listeners: threads alone bring back those of IPv4 and no others
    (fs/nfsd/nfssvc.c, nfsd_init_socks), not IPv6 and RDMA. So versions are only checked.

    ``threads``, and ``version N`` for each that this server knows.
    """

    kind = "nfsd"
    Options = NfsdOptions
    options: NfsdOptions
    scope = "machine"
    phase = Phase.SERVICE
    alone = "threads"

    async def read(self, place: Place) -> Values:
        threads = await place.host.read_file(f"{_FOLDER}/{_THREADS}")
        if threads is None or not threads.strip().isdigit() or int(threads) == 0:
            raise CannotSetError("no NFS server of the kernel runs here")
        versions = await place.host.read_file(f"{_FOLDER}/versions")
        return {_THREADS: int(threads), **versions_of(versions or "")}

    def target_values(self, now: Values) -> Values:
        wanted: Values = {} if self.options.threads is None else {_THREADS: self.options.threads}
        for version, on in self.options.versions.items():
            key = f"version {version}"
            if key not in now:
                raise CannotSetError(f"this NFS server knows no version {version}")
            if now[key] is not on:
                raise CannotSetError(
                    f"version {version} is {'off' if on else 'on'}; to change it the server must be stopped, and its "
                    f"listeners could not be put back: set vers{version} under [nfsd] of /etc/nfs.conf and restart it"
                )
            wanted[key] = on
        return wanted

    async def write(self, place: Place, values: Values) -> None:
        await place.host.write_file(f"{_FOLDER}/{_THREADS}", str(values[_THREADS]))


def versions_of(text: str) -> Values:
    """Of ``-2 +3 +4 +4.1 -4.2``: which are spoken."""
    return {f"version {word[1:]}": word[0] == "+" for word in text.split() if word[0] in "+-" and len(word) > 1}
