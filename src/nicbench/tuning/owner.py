"""Who owns a change: a process, recognised by pid, start time and boot, so that a reused pid is not taken for it."""

from __future__ import annotations

import os
from pathlib import Path

from nicbench.model.base import Frozen

_STATE_FIELD = 0  # counted from after the command's name, which may hold anything
_START_TIME_FIELD = 19
_NICE_FIELD = 16


class Owner(Frozen):
    """A process of this machine."""

    pid: int
    start_ticks: int
    boot_id: str

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs. A zombie does not."""
        return self.boot_id == boot_id() and start_ticks(self.pid) == self.start_ticks


def this_process() -> Owner:
    """The controller itself."""
    ticks = start_ticks(os.getpid())
    if ticks is None:
        raise RuntimeError("/proc does not show this process")
    return Owner(pid=os.getpid(), start_ticks=ticks, boot_id=boot_id())


def boot_id() -> str:
    """Changes with every boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int) -> int | None:
    """Start time of a running process in clock ticks since boot, None where there is none."""
    try:
        return start_ticks_of_stat(Path(f"/proc/{pid}/stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None


def start_ticks_of_stat(text: str) -> int | None:
    """The start time in the text of /proc/PID/stat, None for a process that has ended and waits for its parent."""
    fields = text.rpartition(")")[2].split()
    return None if fields[_STATE_FIELD] in ("Z", "X") else int(fields[_START_TIME_FIELD])


def nice_of_stat(text: str) -> int:
    """The niceness in the text of /proc/PID/stat."""
    return int(text.rpartition(")")[2].split()[_NICE_FIELD])
