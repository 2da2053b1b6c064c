"""Files of a run folder: their names, and atomic writing, so that a reader never sees an incomplete file."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from pydantic import BaseModel

from nicbench.core.errors import HostError, NicbenchError, UsageError

BENCH: Final = "bench.yaml"
IMPORT: Final = "import.json"
"""Describes how results that were not measured here were read; such a run has it in place of the bench file."""
JOURNAL: Final = "journal.ndjson"
SUMMARY: Final = "summary.json"
PLAN: Final = "plan.json"
TAGS: Final = "tags.json"
ERROR: Final = "error.txt"
"""The traceback of a crash of nicbench itself."""

Moment = Literal["before", "torn", "after"]
Boundary = Callable[[int, Moment], None]
"""Called at each journal write with the number of the write, from 1, and the moment in it."""

VARIABLE = "NICBENCH_TEST_KILL_AT_JOURNAL_WRITE"
_MOMENTS: tuple[Moment, ...] = ("before", "torn", "after")


def storage_error(error: OSError, path: Path, next_step: str | None = None) -> HostError:
    """Makes the error for a file that could not be read or written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return HostError(
            "the disk is full; what was measured so far is kept",
            place=str(path),
            next_step=next_step
            or "free some space and give the command again; a run goes on with `nicbench resume` and its folder",
        )
    if error.errno in (errno.EACCES, errno.EPERM) and next_step is None:
        next_step = "run as a user who may read and write it, root for instance, or copy the folder"
    return HostError(f"cannot be read or written: {error.strerror or error}", place=str(path), next_step=next_step)


def damaged_error(error: Exception, path: Path, line: int | None = None) -> HostError:
    """Makes the error for a damaged file of a run folder, with the first line of ``error`` as the reason."""
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    next_step = "put it back from a copy; a file that nobody copied is lost, and the others of its folder stand"
    return HostError(f"is damaged: {why}", place=str(path) if line is None else f"{path}:{line}", next_step=next_step)


def json_text(value: BaseModel | dict[str, Any] | list[Any], *, indent: int | None = 1, sort_keys: bool = False) -> str:
    """Writes JSON with floats as ``repr`` and no NaN; with sorted keys equal content gives equal bytes."""
    data = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    separators = (",", ":") if indent is None else (",", ": ")
    try:
        return json.dumps(
            data,
            sort_keys=sort_keys,
            indent=indent,
            separators=separators,
            ensure_ascii=False,
            allow_nan=False,
            default=_dump_model,
        )
    except ValueError as error:  # NaN or infinity: an unknown value is None, so a computation went wrong
        raise NicbenchError(f"a value to be stored is not a number: {error}") from error


def _dump_model(value: object) -> Any:
    """Converts models inside plain dictionaries."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON")


class Hands:
    """What changes the files that a user asked for: this process. Confined work has a clerk's (``store/confined.py``).

    Every method raises OSError, and writing also HostError.
    """

    @contextlib.contextmanager
    def writing(self, path: Path) -> Iterator[BinaryIO]:
        """Replaces a file by what is written to the stream, all or nothing, also when the power fails."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            _refuse_device(path)
            temporary.unlink(missing_ok=True)
            with temporary.open("xb") as stream:  # a new file, so that a link placed there is not followed
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
            sync_folder(path.parent)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()

    def make_folder(self, path: Path, *, exist_ok: bool = True) -> None:
        """Makes a folder, and those above it where they are missing."""
        path.mkdir(parents=True, exist_ok=exist_ok)

    def open_to_append(self, path: Path) -> int:
        """Opens a file for writing, made where it is missing; no link is followed."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)

    def remove(self, path: Path) -> None:
        """Removes a file, or a link itself, where there is one."""
        path.unlink(missing_ok=True)

    def remove_folder(self, path: Path) -> None:
        """Removes a folder with all that is in it, as far as that can be done."""
        shutil.rmtree(path, ignore_errors=True)


_hands = Hands()


def hands() -> Hands:
    """Returns what changes files for this process."""
    return _hands


def use_hands(others: Hands) -> None:
    """Makes others change files for this process from now on."""
    global _hands  # noqa: PLW0603 - one process has one pair of hands
    _hands = others


def make_folder(path: Path, next_step: str | None = None) -> None:
    """Makes a folder and those above it, where they are missing.

    UsageError where one of these names is that of a file, HostError where the folder cannot be made.
    """
    try:
        _hands.make_folder(path)
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError("is no folder, but a file", place=str(path), next_step=next_step or "name another") from error
    except OSError as error:
        raise storage_error(error, path, next_step) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces the content of a file, all or nothing, also when the power fails."""
    with writing_atomically(path) as stream:
        stream.write(content)


@contextlib.contextmanager
def writing_atomically(path: Path) -> Iterator[BinaryIO]:
    """Replaces a file by what is written to the stream, all or nothing; if the writer fails, the file is unchanged."""
    try:
        with _hands.writing(path) as stream:
            yield stream
    except OSError as error:
        raise storage_error(error, path) from error


def _refuse_device(path: Path) -> None:
    """Raises HostError for a device: otherwise root, writing a table to /dev/null, would replace /dev/null."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise HostError("is a device, and no file takes its place", place=str(path), next_step="name another file")


def sync_folder(folder: Path) -> None:
    """Syncs the names in a folder to disk; file contents are synced separately."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# A hook for tests, which kills this process at a chosen boundary of a journal write.


def from_environment(environment: Mapping[str, str] = os.environ) -> Boundary | None:
    """Returns the boundary that the environment requests, None outside tests.

    ``NICBENCH_TEST_KILL_AT_JOURNAL_WRITE=7`` kills before the seventh write of this process, ``7:torn`` after half of
    its line is in the file, ``7:after`` when it is safely on disk.
    """
    text = environment.get(VARIABLE)
    if not text:
        return None
    number, _, moment = text.partition(":")
    chosen = next((known for known in _MOMENTS if known == (moment or "before")), None)
    if not number.isdecimal() or int(number) < 1 or chosen is None:
        raise UsageError(
            f"{VARIABLE}={text} is not understood", next_step="write n, n:before, n:torn or n:after, n from 1"
        )
    return kill_at(int(number), chosen)


def kill_at(number: int, moment: Moment) -> Boundary:
    """Makes a boundary that kills this process by SIGKILL, without a chance to tidy up."""

    def boundary(current_number: int, current_moment: Moment) -> None:
        if (current_number, current_moment) == (number, moment):
            os.kill(os.getpid(), signal.SIGKILL)

    return boundary
