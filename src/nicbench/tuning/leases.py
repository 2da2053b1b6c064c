"""Leases that others hold on this machine: files whose lock is taken (see ``lease_script.py``)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from nicbench.tuning.holder import Standing, standing_of

_FOLDER = "leases"
_LARGEST_BYTES = 8192


def living_leases(runtime: Path) -> list[Standing]:
    """Those whose holder lives. What cannot be read is left out."""
    found: list[Standing] = []
    with contextlib.suppress(OSError):
        for path in sorted((runtime / _FOLDER).iterdir()):
            with contextlib.suppress(OSError):
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    if _is_locked(descriptor):
                        text = os.read(descriptor, _LARGEST_BYTES).decode(errors="replace")
                        found.append(standing_of(" ".join(text.splitlines()), int(time.time())))
                finally:
                    os.close(descriptor)
    return found


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
