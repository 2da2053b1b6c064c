"""The process that conducts a run: which one it is, and how to ask it to stop.

It is the process that has the lock of the run's journal and the journal open for writing: both are the kernel's word,
so that no other process is taken for it, whatever a run folder says.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

from nicbench.core.errors import HostError, UsageError
from nicbench.core.frozen import frozen
from nicbench.store.confined import ask_clerk
from nicbench.store.files import JOURNAL
from nicbench.store.marks import ask_to_stop

_PROC: Final = Path("/proc")
_ELSEWHERE: Final = "stop it where it was started: Ctrl-C there, or `kill` its process"


@frozen
class Writer:
    """The process that writes a run's journal. ``is_ours``: whether this process may signal it."""

    pid: int
    is_ours: bool


def find_writer(folder: Path, proc: Path = _PROC) -> Writer | None:
    """Returns the process on this machine that writes the journal; None if it cannot be seen."""
    if (told := ask_clerk("writer_fields", folder)) is not None:  # who confines this process sees more
        return Writer(*told["value"]) if told["value"] else None
    try:
        journal = (folder / JOURNAL).stat()
        locks = (proc / "locks").read_text()
    except OSError:
        return None
    for fields in map(str.split, locks.splitlines()):
        # "1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF"; a process that waits for a lock has "->" behind the number.
        if len(fields) < 6 or fields[1:2] != ["FLOCK"] or fields[3] != "WRITE" or not fields[4].isdecimal():
            continue
        pid = int(fields[4])
        writes = _has_open_for_writing(proc / fields[4], journal)
        if writes or (writes is None and fields[5].rpartition(":")[2] == str(journal.st_ino)):
            return Writer(pid, bool(writes))
    return None


def writer_fields(folder: Path) -> tuple[int, bool] | None:
    """Returns the fields of the Writer as plain data."""
    writer = find_writer(folder)
    return None if writer is None else (writer.pid, writer.is_ours)


def _has_open_for_writing(process: Path, wanted: os.stat_result) -> bool | None:
    """Whether a process has a file open for writing; None where this process may not know, as the other belongs to
    another user.
    """
    try:
        for each in (process / "fd").iterdir():
            try:
                if os.path.samestat(each.stat(), wanted) and _is_open_for_writing(process / "fdinfo" / each.name):
                    return True
            except FileNotFoundError:
                continue
    except PermissionError:
        return None
    except OSError:
        return False  # it ended meanwhile
    return False


def _is_open_for_writing(about: Path) -> bool:
    for line in about.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "flags":
            return int(value, 8) & os.O_ACCMODE != os.O_RDONLY
    return False


def stop_now(folder: Path) -> None:
    """Interrupts the run as Ctrl-C does: it undoes its changes and keeps what it measured.

    UsageError where no process of this machine conducts it, HostError where this user may not signal it.
    """
    if ask_clerk("stop_now", folder) is not None:
        return
    writer = _writer_of(folder)
    try:
        process = os.pidfd_open(writer.pid)  # from now on the number cannot become another process's
    except OSError as error:
        raise UsageError("the run has just ended", place=folder.name) from error
    try:
        if find_writer(folder) != writer:
            raise UsageError("the run has just ended", place=folder.name)
        signal.pidfd_send_signal(process, signal.SIGTERM)
    except OSError as error:
        raise HostError(f"cannot be stopped: {error.strerror}", place=folder.name, next_step=_ELSEWHERE) from error
    finally:
        os.close(process)


def stop_after_test(folder: Path) -> None:
    """Asks the run to end after its present test. Errors as those of ``stop_now``."""
    if ask_clerk("stop_after_test", folder) is not None:
        return
    _writer_of(folder)
    ask_to_stop(folder)


def _writer_of(folder: Path) -> Writer:
    writer = find_writer(folder)
    if writer is None:
        raise UsageError("no process on this machine conducts this run", place=folder.name, next_step=_ELSEWHERE)
    if not writer.is_ours:
        raise HostError(
            f"process {writer.pid}, which conducts it, belongs to another user", place=folder.name, next_step=_ELSEWHERE
        )
    return writer
