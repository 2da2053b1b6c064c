"""Settings that are files under /sys or /proc, one value each: read with patterns, written one by one."""

from __future__ import annotations

from typing import ClassVar

from nicbench.core.base import Frozen
from nicbench.core.errors import UnknownFactError
from nicbench.core.plan import Values
from nicbench.hosts.asking import values_of
from nicbench.tuning.items.base import Item, Place
from nicbench.tuning.setting import CannotSetError, plain_value, same_value


class FilesItem(Item):
    """Keys are paths below ``folder``; the values are text, of ``always [madvise] never`` the selected word."""

    folder: ClassVar[str]
    patterns: ClassVar[tuple[str, ...]]
    missing: ClassVar[str]
    """What is said of a machine where none of the files is there."""

    async def read(self, place: Place) -> Values:
        try:
            found = await values_of(place.host, tuple(self.folder + pattern for pattern in self.patterns))
        except UnknownFactError as error:
            raise CannotSetError(self.missing) from error
        return {path.removeprefix(self.folder): plain_value(text) for path, text in found.items()}

    async def write(self, place: Place, values: Values) -> None:
        for key, value in values.items():
            await place.host.write_file(self.folder + key, str(value))

    def is_same(self, key: str, one: object, other: object) -> bool:
        return same_value(self.folder + key, str(one), str(other))


class SwitchOptions(Frozen):
    """``ITEM: false`` or ``ITEM: true``."""

    on: bool


class SwitchItem(FilesItem):
    """A few files that are all set to one value where a thing is on, and to another where it is off."""

    on: ClassVar[str] = "1"
    off: ClassVar[str] = "0"

    def target_values(self, now: Values) -> Values:
        value = self.on if getattr(self.options, "on", False) else self.off
        return dict.fromkeys(now, value)
