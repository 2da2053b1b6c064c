"""undo.json: every change of a run with its undo, readable by another process after a crash."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from nicbench.core.base import Frozen
from nicbench.core.errors import NotReadyError
from nicbench.core.tuning import Values
from nicbench.hosts.owner import Owner
from nicbench.tuning.undo.base import AnyUndo

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


def save_record(record: Record, path: Path) -> None:
    """Replaces the file as a whole; when this returns it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as stream:
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
    """The record, None where there is none; NotReadyError where it cannot be read."""
    try:
        return Record.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError as error:
        raise NotReadyError(
            f"this record of changes cannot be read: {error.errors()[0]['msg']}",
            place=str(path),
            next_step="undo by hand what it names, then remove its folder",
        ) from error
    except PermissionError as error:
        raise NotReadyError("may not be read", place=str(path), next_step="run this as root") from error


def forget_record(path: Path) -> None:
    """Removes the file and its folder; and the folder above where that was the last run."""
    path.unlink(missing_ok=True)
    for folder in (path.parent, path.parent.parent):
        with contextlib.suppress(OSError):  # not empty: somebody else's
            folder.rmdir()


def record_path(runtime: Path, run_id: str) -> Path:
    """Where the record of a run is kept while its changes stand."""
    return runtime / run_id / RECORD_NAME
