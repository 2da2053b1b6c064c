"""MANIFEST.json: the format's version and the checksum of every file of a finished run.

It leaves out itself, the reports (which can be made again), undo.json (the state of the changed machine, which
``nicbench restore`` writes later), tags.json (names that people give a run later), error.txt (the traceback of a crash,
written when the run has ended; nothing is shown from it) and names that begin with a dot (files that a killed run was
writing).

A checksum detects damage. It is not a signature: whoever can write the folder can write the manifest as well.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from nicbench.core.base import Frozen
from nicbench.core.errors import UsageError
from nicbench.core.frozen import frozen
from nicbench.core.redaction import visible_name
from nicbench.store import files
from nicbench.store.files import ERROR, damaged_error, json_text, storage_error, write_atomically

NAME = "MANIFEST.json"
FORMAT = "1.0"
_NOT_MEASURED = frozenset({NAME, "undo.json", "tags.json", ERROR})
_REPORT = re.compile(r"report(-[a-z]+)?(\.[a-z]+|-figures/[a-z0-9-]+\.svg)")
_LARGEST_BYTES: Final = 2**36
"""No checksum is computed of larger files: a sparse file of a few bytes would keep a reader busy for days."""
_MOST_DESCRIBED: Final = 20
_BLOCK_BYTES: Final = 2**20
_CHANGED: Final = "was changed after the run had finished"


class Manifest(Frozen):
    """The checksums of a run: SHA-256 of each file by its path in the run folder."""

    format: str = FORMAT
    sha256: dict[str, str]


@frozen
class Departure:
    """A file that is not as the run left it: its path in the run folder, and what is wrong with it."""

    name: str
    what: str

    def __str__(self) -> str:
        return f"{visible_name(self.name)} {self.what}"


def write(folder: Path) -> Manifest:
    """Writes the manifest of what is in ``folder`` now."""
    names = sorted(name for name, mode in _entries(folder) if stat.S_ISREG(mode) and _is_measured(name))
    manifest = Manifest(sha256={name: sha256_of(folder / name) for name in names})
    write_atomically(folder / NAME, _text(manifest))
    return manifest


def read(folder: Path) -> Manifest | None:
    """Reads the manifest; None where the run is not finished. HostError if it differs in any byte from what was
    written, since it has no checksum itself.
    """
    path = folder / NAME
    try:
        text = files.read_bytes(path)
    except FileNotFoundError:
        return None
    content = files.parse_json_of(text, path)
    written = content.get("format") if isinstance(content, dict) else None
    if isinstance(written, str) and written.partition(".")[0] != FORMAT.partition(".")[0]:
        raise UsageError(
            f"has the format {visible_name(written)}, which a newer nicbench wrote; this one knows {FORMAT}",
            place=str(path),
            next_step="open it with that nicbench, or a newer one",
        )
    try:
        manifest = Manifest.model_validate(content)
    except ValidationError as error:
        raise damaged_error(error, path) from error
    if text != _text(manifest):
        raise damaged_error(
            ValueError("was changed after the run had finished: a key or a blank that is not its own"), path
        )
    return manifest


def _text(manifest: Manifest) -> bytes:
    return (json_text(manifest) + "\n").encode()


def departures(
    folder: Path, only: Collection[str] | None = None, most_bytes: int = _LARGEST_BYTES
) -> tuple[Departure, ...]:
    """Finds the files that are not as the run left them, sorted by name.

    Checksums are compared of the files in ``only`` (None: all) up to ``most_bytes``. In a run that is not finished,
    only entries that do not belong in a run folder are found.
    """

    def unlike(name: str, checksum: str) -> str | None:
        return _unlike(folder / name, checksum, most_bytes) if only is None or name in only else None

    return _departures(folder, dict(_entries(folder)), unlike)


class Examined(NamedTuple):
    """A run folder that was looked at: its files, what departs, and the content of those that are as the run left them.

    Only files that were asked for, and are not too large, have their content here.
    """

    files: Collection[str]
    departures: tuple[Departure, ...]
    contents: Mapping[str, bytes]


def examine(folder: Path, names: Collection[str], most_bytes: int) -> Examined:
    """Finds what ``departures`` finds, and keeps what it read: a list reads each file once."""
    contents = {}

    def unlike(name: str, checksum: str) -> str | None:
        path = folder / name
        try:
            if name not in names or path.lstat().st_size > most_bytes:
                return _unlike(path, checksum, most_bytes) if name in names else None
            content = files.read_bytes(path)
        except OSError as error:
            raise storage_error(error, path) from error
        if hashlib.sha256(content).hexdigest() != checksum:
            return _CHANGED
        contents[name] = content
        return None

    entries = dict(_entries(folder))
    return Examined(entries.keys(), _departures(folder, entries, unlike), contents)


def _departures(
    folder: Path, entries: Mapping[str, int], unlike: Callable[[str, str], str | None]
) -> tuple[Departure, ...]:
    """Compares the ``entries`` of a folder with its manifest; ``unlike`` says what is wrong with an existing file."""
    manifest = read(folder)
    found = {name: f"is {words}" for name, mode in entries.items() if (words := files.describe_strange(mode))}
    if manifest is not None:
        present = {name for name, mode in entries.items() if stat.S_ISREG(mode) and _is_measured(name)}
        for name, checksum in manifest.sha256.items():
            if name in found:
                continue
            if name not in present:
                found[name] = "is missing"
            elif wrong := unlike(name, checksum):
                found[name] = wrong
        found |= dict.fromkeys(present - set(manifest.sha256), "was added after the run had finished")
    return tuple(Departure(name, what) for name, what in sorted(found.items()))


def differences(folder: Path) -> tuple[str, ...]:
    """Describes the files that are not as the run left them, see ``describe``."""
    return describe(departures(folder))


def describe(found: Collection[Departure]) -> tuple[str, ...]:
    """Describes departures, one sentence each: the first 20, and how many more there are."""
    sentences = tuple(map(str, found))
    left = len(sentences) - _MOST_DESCRIBED
    if left <= 0:
        return sentences
    return (*sentences[:_MOST_DESCRIBED], f"{left} more files are not as the run left them")


def is_report(folder: Path, path: Path) -> bool:
    """Whether a path is that of a report in this folder, which the manifest leaves out, or of its figures."""
    return path.is_relative_to(folder) and bool(_REPORT.fullmatch(f"{path.relative_to(folder)}"))


def _is_measured(name: str) -> bool:
    return name not in _NOT_MEASURED and not _REPORT.fullmatch(name)


def _entries(folder: Path) -> Iterator[tuple[str, int]]:
    """Lists path and type of every entry below a folder except folders; links are not followed."""
    open_folders = [(folder, "")]
    while open_folders:
        path, prefix = open_folders.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    name = f"{prefix}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        open_folders.append((path / entry.name, f"{name}/"))
                    elif entry.is_file(follow_symlinks=False):  # asked first: the folder itself says it
                        yield name, stat.S_IFREG
                    else:
                        yield name, entry.stat(follow_symlinks=False).st_mode
        except OSError as error:
            raise storage_error(error, path) from error


def _unlike(path: Path, checksum: str, most_bytes: int) -> str | None:
    """Returns what is wrong with an existing file; None where it matches, or is larger than ``most_bytes``."""
    size_bytes = path.lstat().st_size
    if size_bytes > _LARGEST_BYTES:
        return f"is larger than {_LARGEST_BYTES // 2**30} GiB, which is not checked"
    if size_bytes > most_bytes:
        return None
    return None if sha256_of(path) == checksum else _CHANGED


def sha256_of(path: Path) -> str:
    """Computes the checksum of a file, as it stands in a manifest."""
    try:
        with files.open_file(path) as stream:
            found = hashlib.sha256()
            while block := stream.read(_BLOCK_BYTES):
                found.update(block)
            return found.hexdigest()
    except OSError as error:
        raise storage_error(error, path) from error
