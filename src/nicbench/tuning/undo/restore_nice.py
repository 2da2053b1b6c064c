"""Gives a process its old priority back."""

from __future__ import annotations

from typing import ClassVar, Literal

from nicbench.hosts.base import Host
from nicbench.hosts.owner import nice_of_stat, start_ticks_of_stat
from nicbench.tuning.undo.base import Undo


class RestoreNice(Undo):
    """Give a process its old priority back, unless somebody changed it since; recognised by pid and start time."""

    kind: Literal["restore_nice"] = "restore_nice"
    pid: int
    start_ticks: int
    old: int
    new: int

    # By its number alone a process might be another one by then.
    can_be_scripted: ClassVar[bool] = False

    async def undo(self, host: Host) -> str | None:
        stat = await host.read_file(f"/proc/{self.pid}/stat")
        if stat is None or start_ticks_of_stat(stat) != self.start_ticks or nice_of_stat(stat) == self.old:
            return None
        if nice_of_stat(stat) != self.new:
            return (
                f"{host.name}: process {self.pid} was left at nice {nice_of_stat(stat)}: somebody changed it since we "
                f"set {self.new}; before the run it was {self.old}"
            )
        await host.run(("renice", "-n", str(self.old), "-p", str(self.pid)))
        return None
