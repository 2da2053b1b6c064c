"""The lock of this machine: one run at a time, because two would measure each other. `lease.py` has that of others.

A lease names who holds a machine or ports of it, so that whoever waits can see it. Leases that others hold on this
machine are files whose lock is taken (see ``lease.py``).
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import json
import os
import platform
import stat
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from nicbench.core.base import Frozen
from nicbench.core.errors import BusyError, NotReadyError
from nicbench.core.frozen import frozen
from nicbench.core.units import format_duration_s
from nicbench.hosts import host_from_spec
from nicbench.hosts.owner import Owner, this_process
from nicbench.tuning.record import (
    LEASES,
    PRIVATE_FILE,
    QUEUE,
    RUNTIME_FOLDER,
    load_record,
    make_run_folder,
    make_runtime_folder,
    record_path,
    refuse_state,
)
from nicbench.tuning.restore import MakeHost, restore


class Lease(Frozen):
    """The owner of a lease. ``silence_s`` seconds after the last sign of life of the controller it ends by itself."""

    run_id: str
    user: str
    machine: str
    pid: int
    silence_s: float | None = None


@frozen
class Standing:
    """A lease that was found; None if its file does not hold a lease.

    ``age_s`` is by the clock of the machine that it is of; ``ports`` are empty where it is of the whole machine.
    """

    lease: Lease | None
    age_s: float | None = None
    ports: tuple[str, ...] = ()
    is_idle: bool = False

    @property
    def words(self) -> str:
        """Run, user, machine and process."""
        if self.lease is None:
            return "an unknown holder, whose lease cannot be read"
        return (
            f"run {_plain(self.lease.run_id)} of {_plain(self.lease.user)}@{_plain(self.lease.machine)} "
            f"(process {self.lease.pid})"
        )

    def describe(self, now: datetime) -> str:
        """The same with what it holds, since when and until when; ``now`` is by the clock of whoever reads it."""
        what = f"port {', '.join(map(_plain, self.ports))}" if self.ports else "the whole machine"
        since = ""
        if self.age_s is not None and self.age_s >= 0:
            begun = now - timedelta(seconds=self.age_s)
            since = f" since {begun:%Y-%m-%d %H:%M:%S} UTC ({format_duration_s(self.age_s)})"
        silence_s = None if self.lease is None else self.lease.silence_s
        silence = "" if silence_s is None else f", or {silence_s:g} s after its controller was last heard of"
        return f"{self.words} holds {what}{since}, until it ends{silence}"


def lease_of_this_process(run_id: str, silence_s: float | None = None) -> Lease:
    """This process as a holder; behind sudo the person, not root."""
    try:
        user = os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())  # a user without a name
    return Lease(run_id=run_id, user=user, machine=platform.node(), pid=os.getpid(), silence_s=silence_s)


def lease_text(lease: Lease, ports: Sequence[str]) -> tuple[str, ...]:
    """The lines of a lease's file, but for the time that stands before them."""
    return (json.dumps(lease.model_dump()), *ports)


def standing_of(text: str, now_s: int | None) -> Standing:
    """Reads a lease's file, whose lines may have become words of one line: time, lease, ports. Whatever it holds."""
    since, _, rest = text.strip().partition(" ")
    try:
        content, end = json.JSONDecoder().raw_decode(rest)
        lease = Lease.model_validate(content)
    except (ValueError, ValidationError, RecursionError):
        return Standing(None)
    age_s = float(now_s - int(since)) if now_s is not None and since.isdigit() else None
    return Standing(lease, age_s, tuple(rest[end:].split()))


BY_WAITING: Final = " (--wait 10min does)"
"""Part of the advice in errors, of commands that have this option."""


def busy_error(holders: Sequence[Standing], place: str, step: str | None = None) -> BusyError:
    """The error of a lease that others hold, with each of them."""
    now = datetime.now(UTC)
    told = "; ".join(holder.describe(now) for holder in holders) or "another run is starting"
    step = step or f"wait until it has ended{BY_WAITING}, or end it where it was started"
    return BusyError(f"in use: {told}", place=place, next_step=step)


def _plain(text: str) -> str:
    """What a stranger wrote, fit for a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text[:100])


_LARGEST_BYTES = 8192


def living_leases(runtime: Path) -> list[Standing]:
    """Those whose holder lives. What cannot be read is left out."""
    found = []
    with contextlib.suppress(OSError):
        for path in sorted((runtime / LEASES).iterdir()):
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


LOCK_NAME = "host.lock"


class Holder(Frozen):
    """Who holds the lock: the content of the file. ``who`` and ``since_s`` (Unix time) are for those who must wait."""

    run_id: str
    owner: Owner
    who: Lease | None = None
    since_s: int | None = None
    is_idle: bool = False
    """Whether it waits for what others ask of it: a session of clients, none of whom sends."""


class HostLock:
    """An exclusive ``flock``: it ends with its process. Its content names the run, so that a dead one is restored."""

    def __init__(self, run_id: str, runtime: Path = RUNTIME_FOLDER, make_host: MakeHost = host_from_spec) -> None:
        who = lease_of_this_process(run_id)
        self._holder = Holder(run_id=run_id, owner=this_process(), who=who, since_s=int(time.time()))
        self._runtime = runtime
        self._path = runtime / LOCK_NAME
        self._make_host = make_host
        self._descriptor: int | None = None

    async def take(self) -> list[str]:
        """Takes the lock; says what was done for a dead holder. BusyError names a living one."""
        descriptor = self._open()
        try:
            said = await self._restore_last_holder(descriptor)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, self._holder.model_dump_json().encode(), 0)
            os.fsync(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return said

    def release(self) -> None:
        """Gives it back; nothing happens where it is not held."""
        if self._descriptor is None:
            return
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = None
        with contextlib.suppress(OSError):  # not empty: records of other runs
            self._runtime.rmdir()

    def _open(self) -> int:
        while True:
            try:
                make_runtime_folder(self._runtime)
                descriptor = open_lock(self._path)
            except PermissionError as error:
                raise NotReadyError(
                    "locking this machine needs root", place=str(self._path), next_step="run it with sudo"
                ) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                busy_error = _busy_error(descriptor, self._path)
                os.close(descriptor)
                raise busy_error from None
            if _is_at(descriptor, self._path):
                return descriptor
            os.close(descriptor)  # its last holder removed the file between our open and our lock

    async def _restore_last_holder(self, descriptor: int) -> list[str]:
        holder = _holder_of(descriptor)
        if holder is None:
            return []
        said = await restore(holder.run_id, self._runtime, self._make_host)
        if load_record(record_path(self._runtime, holder.run_id)) is not None:
            raise NotReadyError(
                f"run {holder.run_id} died, and its changes cannot be undone completely: {'; '.join(said)}",
                place=str(self._path),
                next_step=f"undo it by hand, then remove {record_path(self._runtime, holder.run_id).parent}",
            )
        return said


def tell_idle(run_id: str, is_idle: bool, runtime: Path = RUNTIME_FOLDER) -> None:
    """Writes into the lock's file, where this run holds it, whether it is idle: for those who must wait."""
    try:
        descriptor = os.open(runtime / LOCK_NAME, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        holder = _holder_of(descriptor)
        if holder is not None and holder.run_id == run_id and holder.is_idle is not is_idle:
            content = holder.replace(is_idle=is_idle).model_dump_json().encode()
            os.ftruncate(descriptor, os.pwrite(descriptor, content, 0))
    finally:
        os.close(descriptor)


def holder_words(runtime: Path = RUNTIME_FOLDER) -> str | None:
    """Says in one short line who holds this machine and since when; None where nobody can be read."""
    now_s = time.time()
    try:
        text = (runtime / LOCK_NAME).read_bytes()[:65536]
    except OSError:
        text = b""
    leasing = living_leases(runtime)
    standing = leasing[0] if leasing else standing_of_holder(text, now_s)
    if standing is None or standing.lease is None:
        return None
    since = "" if standing.age_s is None or standing.age_s < 0 else f" since {format_duration_s(round(standing.age_s))}"
    return f"held by {_plain(standing.lease.run_id)}{since}{' (idle)' if standing.is_idle else ''}"


def is_locked_by(run_id: str, runtime: Path = RUNTIME_FOLDER) -> bool:
    """Whether the lock's file names this run, dead or alive."""
    try:
        return Holder.model_validate_json((runtime / LOCK_NAME).read_bytes()).run_id == run_id
    except (OSError, ValidationError):
        return False


def forget_dead_holder(run_id: str, runtime: Path = RUNTIME_FOLDER) -> bool:
    """Removes the lock's file where this run died with it; says whether it did. A lock that is held stays."""
    path = runtime / LOCK_NAME
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False  # there is none, or it is root's: the next run takes it over
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        holder = _holder_of(descriptor)
        if holder is None or holder.run_id != run_id or holder.owner.is_alive or not _is_at(descriptor, path):
            return False
        path.unlink(missing_ok=True)
    except OSError:
        return False  # held: somebody else's by now
    finally:
        os.close(descriptor)
    with contextlib.suppress(OSError):  # not empty: records of other runs
        runtime.rmdir()
    return True


def open_lock(path: Path) -> int:
    """Opens a file whose lock is taken, which nobody else may open: who can read a file can hold its lock."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, PRIVATE_FILE)
    try:
        state = os.fstat(descriptor)
        refuse_state(path, state, group_may_write=True)
        if state.st_uid == os.geteuid() and not state.st_mode & stat.S_IWGRP:
            os.fchmod(descriptor, PRIVATE_FILE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the file that was opened is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _holder_of(descriptor: int) -> Holder | None:
    """None where nobody wrote a name, or died while writing it."""
    try:
        return Holder.model_validate_json(os.pread(descriptor, 65536, 0))
    except ValidationError:
        return None


def standing_of_holder(text: str | bytes, now_s: float) -> Standing | None:
    """Returns the owner that a lock's file names, in the words of messages; None if it names nobody."""
    try:
        holder = Holder.model_validate_json(text)
    except ValidationError:
        return None
    who = holder.who or Lease(run_id=holder.run_id, user="unknown", machine=platform.node(), pid=holder.owner.pid)
    age_s = None if holder.since_s is None else now_s - holder.since_s
    return Standing(who, age_s, is_idle=holder.is_idle)


def _busy_error(descriptor: int, path: Path) -> BusyError:
    """Names those who lease this machine from elsewhere, or the run on it."""
    leasing = living_leases(path.parent)
    here = None if leasing else standing_of_holder(os.pread(descriptor, 65536, 0), time.time())
    if here is None or here.lease is None:
        return busy_error(leasing, str(path))
    step = f"wait until it has ended{BY_WAITING}, or end it: kill {here.lease.pid}"
    return busy_error([here], str(path), step)


# The queue for this machine: who came first gets it first. A place is a file whose lock its process holds.  The files
# are numbered in ``queue`` under /run/nicbench. A place is lost with its process, however that ends, for the kernel
# gives the lock free; nothing has to be renewed.


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
        found = []
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
