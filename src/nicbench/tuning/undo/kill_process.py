"""Kills a process."""

from __future__ import annotations

from typing import ClassVar, Literal

from nicbench.hosts.base import Host
from nicbench.tuning.undo._processes import is_running, kill
from nicbench.tuning.undo.base import Undo


class KillProcess(Undo):
    """Kill a process that nicbench started, recognised by pid and start time."""

    kind: Literal["kill_process"] = "kill_process"
    pid: int
    start_ticks: int

    ends_with_lease: ClassVar[bool] = True

    async def undo(self, host: Host) -> str | None:
        if await is_running(host, self.pid, self.start_ticks):
            await kill(host, self.pid, self.start_ticks)
        return None
