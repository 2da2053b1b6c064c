"""The queue for this machine: who came first gets it first. A place is a file whose lock its process holds.

The files are numbered in ``queue`` under /run/nicbench. A place is lost with its process, however that ends, for the
kernel gives the lock free; nothing has to be renewed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from nicbench.core.errors import BusyError, NotReadyError
from nicbench.tuning.lock import Standing, holder_words, lease_of_this_process, lease_text, standing_of
from nicbench.tuning.record import RUNTIME_FOLDER
from nicbench.tuning.runtime_folder import PRIVATE_FILE, QUEUE, make_run_folder, make_runtime_folder

_LARGEST_BYTES = 8192


class Place:
    """The place of a run in the queue, taken when it is made. NotReadyError where this user may not."""

    def __init__(self, run_id: str, runtime: Path = RUNTIME_FOLDER) -> None:
        self._runtime = runtime
        self._folder = runtime / QUEUE
        text = " ".join((str(int(time.time())), *lease_text(lease_of_this_process(run_id), ())))
        try:
            self._path, self._descriptor = self._draw(text)
        except PermissionError as error:
            raise NotReadyError(
                "locking this machine needs root", place=str(runtime), next_step="run it with sudo"
            ) from error

    def ahead(self) -> list[Standing]:
        """Those who came before and still wait, the first first. Places of dead ones are removed."""
        found: list[Standing] = []
        for path in _places(self._folder):
            if path.name >= self._path.name:
                break
            standing = _waiting_at(path)
            if standing is None:
                path.unlink(missing_ok=True)
            else:
                found.append(standing)
        return found

    def require_first(self) -> None:
        """BusyError says which place this one has, and who holds the machine."""
        ahead = self.ahead()
        if not ahead:
            return
        held = holder_words(self._runtime) or f"next is {ahead[0].words}"
        raise BusyError(
            f"place {len(ahead) + 1} in the queue, {held}",
            place=str(self._folder),
            next_step="wait for your turn (--wait 10min does), or end those before you where they were started",
        )

    def leave(self) -> None:
        """Gives it up; nothing happens where that was done."""
        if self._descriptor is None:
            return
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = None
        for folder in (self._folder, self._runtime):
            with contextlib.suppress(OSError):  # not empty: somebody else's
                folder.rmdir()

    def _draw(self, text: str) -> tuple[Path, int | None]:
        while True:
            make_runtime_folder(self._runtime)
            try:
                make_run_folder(self._folder)
                folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # the last one in the queue removed the folder meanwhile
            try:
                fcntl.flock(folder, fcntl.LOCK_EX)  # numbers are drawn one after the other
                if os.fstat(folder).st_nlink == 0:
                    continue
                last = max((int(path.name) for path in _places(self._folder)), default=0)
                path = self._folder / f"{last + 1:012d}"
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                os.write(descriptor, text.encode())
                return path, descriptor
            finally:
                os.close(folder)


def is_waited_for(runtime: Path = RUNTIME_FOLDER) -> bool:
    """Whether anybody waits for this machine."""
    try:
        return any(_waiting_at(path) is not None for path in _places(runtime / QUEUE))
    except OSError:
        return False


def _places(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.isdigit())


def _waiting_at(path: Path) -> Standing | None:
    """Who holds that place; None where its process is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return standing_of(os.read(descriptor, _LARGEST_BYTES).decode(errors="replace"), int(time.time()))
    else:
        return None
    finally:
        os.close(descriptor)
