"""The process that owns a change, identified by pid, start time and boot id, so that a reused pid is not mistaken."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from nicbench.core.base import Frozen

MARK = "NICBENCH_OWNER"
"""Environment variable of every process that nicbench starts on a host, and so of what these start."""
_MOST_PIDS = 2**22
"""Pids are lower than this on every kernel (``PID_MAX_LIMIT``)."""
_STATE_FIELD = 0  # fields are counted from behind the command's name, which may hold spaces and parentheses
_START_TIME_FIELD = 19
_NICE_FIELD = 16


class Owner(Frozen):
    """A process of this machine that owns changes to its settings."""

    pid: int
    start_ticks: int
    boot_id: str

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs; a zombie counts as ended."""
        return self.boot_id == boot_id() and start_ticks(self.pid) == self.start_ticks


def this_process() -> Owner:
    """Returns the controller's own process."""
    ticks = start_ticks(os.getpid())
    if ticks is None:
        raise RuntimeError("/proc does not show this process")
    return Owner(pid=os.getpid(), start_ticks=ticks, boot_id=boot_id())


@cache
def owner_mark() -> str:
    """Returns the value of MARK that identifies this controller's processes on any host."""
    owner = this_process()
    return f"{owner.pid}.{owner.start_ticks}.{owner.boot_id}"


def boot_id() -> str:
    """Reads the kernel's boot id, which changes with every boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int) -> int | None:
    """Returns the start time of a running process in clock ticks since boot; None where no such process runs."""
    if not 0 < pid < _MOST_PIDS:  # of a damaged record: its path may be longer than the kernel takes
        return None
    try:
        return start_ticks_of_stat(Path(f"/proc/{pid}/stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None


def start_ticks_of_stat(text: str) -> int | None:
    """Parses the start time from the text of /proc/PID/stat; None for a zombie."""
    fields = text.rpartition(")")[2].split()
    return None if fields[_STATE_FIELD] in ("Z", "X") else int(fields[_START_TIME_FIELD])


def nice_of_stat(text: str) -> int:
    """Parses the niceness from the text of /proc/PID/stat."""
    return int(text.rpartition(")")[2].split()[_NICE_FIELD])
