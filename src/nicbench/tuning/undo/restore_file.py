"""Writes the old value of a file back: a setting under /proc or /sys."""

from __future__ import annotations

from typing import Literal

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.tuning.setting import same_value
from nicbench.tuning.undo.base import ValueUndo


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
