"""MANIFEST.json: the format's version and the checksum of every file of a finished run.

Not in it: itself, the reports (views that are made again at will), undo.json (the state of the changed machine, which
``nicbench restore`` writes later), tags.json (names that people give a run later) and what begins with a dot
(files that a killed run was writing).
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from pydantic import ValidationError

from nicbench.model.base import Frozen
from nicbench.store.files import damaged_error, json_text, storage_error, write_atomically

NAME = "MANIFEST.json"
FORMAT = "1.0"
_NOT_MEASURED = frozenset({NAME, "undo.json", "tags.json"})
_REPORT = re.compile(r"report(-[a-z]+)?(\.[a-z]+|-figures/[a-z0-9-]+\.svg)")


class Manifest(Frozen):
    """SHA-256 of each file, by its path in the run folder."""

    format: str = FORMAT
    sha256: dict[str, str]


def write(folder: Path) -> Manifest:
    """Writes the manifest of what is in ``folder`` now."""
    manifest = Manifest(sha256={name: _checksum(folder / name) for name in _files(folder)})
    write_atomically(folder / NAME, (json_text(manifest) + "\n").encode())
    return manifest


def read(folder: Path) -> Manifest | None:
    """The manifest, None where the run is not finished."""
    path = folder / NAME
    try:
        return Manifest.model_validate(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error, path) from error
    except (ValueError, ValidationError) as error:
        raise damaged_error(error, path) from error


def differences(folder: Path) -> tuple[str, ...]:
    """What does not agree with the manifest, one sentence each; nothing where the run is not finished."""
    manifest = read(folder)
    if manifest is None:
        return ()
    present = set(_files(folder))
    sentences = []
    for name, checksum in sorted(manifest.sha256.items()):
        if name not in present:
            sentences.append(f"{name} is missing")
        elif _checksum(folder / name) != checksum:
            sentences.append(f"{name} was changed after the run had finished")
    sentences.extend(f"{name} was added after the run had finished" for name in sorted(present - set(manifest.sha256)))
    return tuple(sentences)


def is_as_written(folder: Path, name: str) -> bool:
    """Whether one file is what it was when the run had finished; also where the run is not finished."""
    manifest = read(folder)
    return manifest is None or manifest.sha256.get(name) in (None, _checksum(folder / name))


def _files(folder: Path) -> list[str]:
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(
        name
        for name in names
        if name not in _NOT_MEASURED and not _REPORT.fullmatch(name) and not f"/{name}".count("/.")
    )


def _checksum(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise storage_error(error, path) from error
