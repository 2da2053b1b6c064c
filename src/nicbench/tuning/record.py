"""undo.json: every change of a run with its undo, readable by another process after a crash."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from nicbench.core.base import Frozen, why_of
from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.core.plan import Values
from nicbench.core.redaction import visible_name
from nicbench.hosts.base import Host
from nicbench.hosts.owner import Owner, start_ticks
from nicbench.tuning.undo.base import AnyUndo, undo_one

# /run/nicbench: what lies there is obeyed by root, so nobody else may have written it. Modes, whatever the umask.

PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600
PUBLIC_FILE: Final = 0o644
LEASES: Final = "leases"
QUEUE: Final = "queue"
"""Folders there that are not of one run."""

# The same in shell, for other machines: `mine PATH WHOM` tells whether PATH is of root or of the user, is no link, and
# can be changed by nobody else; WHOM is `group` where a group of all who measure may write, else `nobody`. `told PATH`
# says whose it is.
SHELL_CHECK: Final = r"""
mine() {
    [ -e "$1" ] && [ ! -L "$1" ] || return 1
    case $(stat -c %u "$1") in 0 | "$(id -u)") ;; *) return 1 ;; esac
    case $2$(stat -c %A "$1") in *????????w?) return 1 ;; nobody?????w*) return 1 ;; esac
}
told() { stat -c '%n (owner %U, mode %a)' "$1" 2>/dev/null || echo "$1"; }
"""
WHY: Final = "others may have written it, and root would do what it says"


def make_runtime_folder(folder: Path) -> None:
    """Makes /run/nicbench for its owner alone. PermissionError; NotReadyError where everybody may write to it.

    A folder that an administrator gave to a group of users keeps its modes.
    """
    _make(folder)
    state = folder.stat()
    if state.st_uid == os.geteuid() and not state.st_mode & stat.S_IWGRP and state.st_mode & 0o077:
        folder.chmod(PRIVATE_FOLDER)  # whoever can open a folder or a file can hold its lock
    refuse_strangers(folder, group_may_write=True)


def make_run_folder(folder: Path) -> None:
    """Makes the folder of one run below it, for its owner alone, and refuses one that others may write to."""
    _make(folder)
    refuse_strangers(folder)


def refuse_strangers(path: Path, *, group_may_write: bool = False) -> None:
    """NotReadyError where the path is a link, or anybody but root and this user owns it or may write to it."""
    try:
        refuse_state(path, path.lstat(), group_may_write=group_may_write)
    except FileNotFoundError:
        return


def refuse_state(path: Path, state: os.stat_result, *, group_may_write: bool = False) -> None:
    """The same of a file whose state is known, as of one that is open."""
    writable = stat.S_IWOTH if group_may_write else stat.S_IWOTH | stat.S_IWGRP
    if stat.S_ISLNK(state.st_mode):
        what = "a symbolic link"
    elif state.st_uid not in (0, os.geteuid()):
        what = "not root's"
    elif state.st_mode & writable:
        what = "writable by others"
    else:
        return
    name = visible_name(str(path))
    raise NotReadyError(
        f"is {what} (owner {_user(state.st_uid)}, group {_group(state.st_gid)}, "
        f"mode {stat.S_IMODE(state.st_mode):04o}): {WHY}",
        place=name,
        next_step=f"read it; if it is yours, `chown root {name}` and `chmod go-w {name}`; if not, remove it",
    )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True)
    except FileExistsError:
        return
    folder.chmod(PRIVATE_FOLDER)  # a umask may take away, too


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


RUNTIME_FOLDER = Path("/run/nicbench")
RECORD_NAME = "undo.json"


class Entry(Frozen):
    """One change: on which host, its undo, and whether that was done; ``after`` is what a setting then reads."""

    host: dict[str, Any]
    undo: AnyUndo
    done: bool = False
    note: str | None = None
    after: Values | None = None


class Record(Frozen):
    """The whole file. ``kept`` says that the changes are meant to outlive their owner (``nicbench lab up``)."""

    format: Literal[1] = 1
    run_id: str
    owner: Owner
    run_folder: str | None
    started: str
    kept: bool = False
    entries: tuple[Entry, ...] = Field(default_factory=tuple)

    @property
    def settled(self) -> bool:
        """Whether nothing is left to undo."""
        return all(entry.done for entry in self.entries)


def save_record(record: Record, path: Path, mode: int = PRIVATE_FILE) -> None:
    """Replaces the file as a whole, with this mode whatever the umask; when this returns it is on the disk."""
    if not path.parent.is_dir():
        make_run_folder(path.parent)
    temporary = path.with_name(f"{_begun(path)}{os.getpid()}")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with open(descriptor, "w", encoding="utf-8") as stream:
        os.fchmod(descriptor, mode)
        stream.write(record.model_dump_json(indent=1))
        stream.flush()
        os.fsync(stream.fileno())
    temporary.rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def load_record(path: Path) -> Record | None:
    """Returns the record, None if the file does not exist.

    NotReadyError where it cannot be read, or anybody but root and this user may have written it.
    """
    try:
        refuse_strangers(path.parent)
        refuse_strangers(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:
            refuse_state(path, os.fstat(descriptor))
            return Record.model_validate_json(stream.read())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError as error:
        raise NotReadyError(
            f"this record of changes cannot be read: {why_of(error.errors()[0])}",
            place=str(path),
            next_step="undo by hand what it names, then remove its folder",
        ) from error
    except PermissionError as error:
        raise NotReadyError("may not be read", place=str(path), next_step="run this as root") from error
    except OSError as error:
        step = "inspect it, and remove it"
        raise NotReadyError(f"is no record of changes: {error.strerror}", place=str(path), next_step=step) from error


def forget_record(path: Path) -> None:
    """Removes the file and its folder; and the folder above where that was the last run."""
    path.unlink(missing_ok=True)
    forget_begun(path)
    for folder in (path.parent, path.parent.parent):
        with contextlib.suppress(OSError):  # not empty: somebody else's
            folder.rmdir()


def forget_begun(path: Path) -> bool:
    """Removes records that a killed process had begun to write; says whether there was one, or an empty folder.

    What such a record was to hold first was not made yet: a change follows its record.
    """
    if not path.parent.is_dir() or path.parent.is_symlink():
        return False
    others = False
    for each in path.parent.iterdir():
        owner = each.name.removeprefix(_begun(path))
        if owner == each.name or not owner.isdigit() or start_ticks(int(owner)) is not None:
            others = True
        else:
            each.unlink(missing_ok=True)
    return not others


def _begun(path: Path) -> str:
    """How the name of a record begins that is not complete yet; the process's number follows."""
    return f".{path.name}."


def record_path(runtime: Path, run_id: str) -> Path:
    """Where the record of a run is kept while its changes stand."""
    return runtime / run_id / RECORD_NAME


def has_records(runtime: Path = RUNTIME_FOLDER) -> bool:
    """Whether changes of any run stand on this machine."""
    return next(runtime.glob(f"*/{record_path(runtime, 'x').name}"), None) is not None


# Undoing the changes of a run: in reverse order, each once, whatever happens to the others.

MakeHost = Callable[[dict[str, Any]], Host]


async def undo_entries(record: Record, make_host: MakeHost, save: Callable[[Record], None]) -> tuple[Record, list[str]]:
    """Undo what is left of ``record`` in reverse order, saving after each.

    Gives the record back, with what could not be undone.

    A change that fails, in whatever way, stays in the record and the rest goes on; one that somebody else overwrote is
    settled. What failed is tried once more where another undo may have been what it waited for, and in a virtual
    machine, with which it may be gone by then.
    """
    troubles: dict[int, str] = {}
    record = await _undo_each(record, reversed(range(len(record.entries))), troubles, make_host, save)
    left = [index for index in troubles if not record.entries[index].done]
    kinds = {entry.undo.kind for entry in record.entries}
    again = [index for index in left if _is_worth_another_try(record.entries[index], make_host, kinds)]
    if again:
        record = await _undo_each(record, again, troubles, make_host, save)
    return record, list(troubles.values())


def _is_worth_another_try(entry: Entry, make_host: MakeHost, kinds: set[str]) -> bool:
    return bool(entry.undo.retried_after & kinds) or make_host(entry.host).machine.made_here


async def _undo_each(
    record: Record,
    indices: Iterable[int],
    troubles: dict[int, str],
    make_host: MakeHost,
    save: Callable[[Record], None],
) -> Record:
    """Undo those that are not done yet; ``troubles`` gets a sentence of each that was left alone or failed."""
    for index in indices:
        entry = record.entries[index]
        if entry.done:
            continue
        troubles.pop(index, None)
        try:
            host = make_host(entry.host)
            note = await undo_one(host, entry.undo)
            after = None if await host.machine.is_gone() else await entry.undo.read_values(host)
        except Exception as error:  # also what nobody thought of: the machine is put back as far as it can be
            reason = error.message if isinstance(error, NicbenchError) else f"{type(error).__name__}: {error}"
            troubles[index] = f"could not undo ({entry.undo.describe()}): {reason}"
            continue
        if note is not None:
            troubles[index] = note
        finished = entry.replace(done=True, note=note, after=after)
        record = record.replace(entries=(*record.entries[:index], finished, *record.entries[index + 1 :]))
        save(record)
    return record
