"""Writing files so that a reader never sees half of one: temporary name, fsync, rename, fsync of the folder."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel

from nicbench.errors import HostError, NicbenchError


def storage_error(error: OSError, path: Path, next_step: str | None = None) -> HostError:
    """The error for a file that could not be read or written, in words."""
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
    """The error for a file of a run folder that is not what was once written there, by its first words."""
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    next_step = "put it back from a copy; a file that nobody copied is lost, and the others of its folder stand"
    return HostError(f"is damaged: {why}", place=str(path) if line is None else f"{path}:{line}", next_step=next_step)


def json_text(value: BaseModel | dict[str, Any] | list[Any], *, indent: int | None = 1, sort_keys: bool = False) -> str:
    """JSON with floats as ``repr`` and no NaN; with sorted keys it is equal, byte for byte, where the content is."""
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
            default=_plain,
        )
    except ValueError as error:  # NaN or infinity: an unknown value is None, so somebody computed nonsense
        raise NicbenchError(f"a value to be stored is not a number: {error}") from error


def _plain(value: object) -> Any:
    """Models inside plain dictionaries."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON")


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces ``path`` by ``content``, all or nothing, also when the power fails."""
    with writing_atomically(path) as stream:
        stream.write(content)


@contextlib.contextmanager
def writing_atomically(path: Path) -> Iterator[BinaryIO]:
    """The same for what is written bit by bit; where the writer fails, ``path`` stays as it was."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _refuse_device(path)
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as stream:  # a new file: a link that somebody laid there is not followed
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise storage_error(error, path) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _refuse_device(path: Path) -> None:
    """HostError where a device stands: root who writes a table to /dev/null would have taken /dev/null away."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise HostError("is a device, and no file takes its place", place=str(path), next_step="name another file")


def sync_folder(folder: Path) -> None:
    """Makes the names in ``folder`` last; file contents are synced on their own."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
