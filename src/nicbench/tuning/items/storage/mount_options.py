"""Options of file systems that are mounted already, changed by remounting: those that have a word for either way.

Source: mount(8), "filesystem-independent mount options". What a file system takes only when it is mounted (`rsize` of
NFS) is not changed under the feet of others.
"""

from __future__ import annotations

from typing import Final

from pydantic import Field, field_validator

from nicbench.core.base import Frozen
from nicbench.core.plan import Values
from nicbench.tuning.items.base import Item, Phase, Place
from nicbench.tuning.items.storage._mounts import mounts_of
from nicbench.tuning.setting import CannotSetError

_GROUPS: Final[dict[str, tuple[str, ...]]] = {
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
    """A value for each group of options that exclude each other."""

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
