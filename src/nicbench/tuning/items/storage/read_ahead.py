"""How much is read ahead from disks and network file systems, which decides what streaming from them reaches.

Source: Documentation/ABI/stable/sysfs-block (read_ahead_kb), Documentation/ABI/testing/sysfs-class-bdi.
"""

from __future__ import annotations

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.plan import Values
from nicbench.tuning.items.base import Item, Phase, Place
from nicbench.tuning.items.storage._mounts import mounts_of
from nicbench.tuning.setting import CannotSetError


class ReadAheadOptions(Frozen):
    """``read_ahead: {of: [nvme0n1, /srv/media], kib: 4096}``: names of block devices, or mount points."""

    of: tuple[str, ...] = Field(min_length=1, max_length=64)
    kib: int = Field(ge=0, le=4_194_304)


class ReadAhead(Item):
    """Of each, in KiB."""

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
