"""Small files in a run folder: tags, and the request to stop."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from nicbench.core.errors import InterruptedRunError, NicbenchError, UsageError
from nicbench.store import files
from nicbench.store.files import TAGS, damaged_error, hands, json_text, storage_error, write_atomically

# Tags: names that people give to runs, in ``tags.json`` of the run folder.  The manifest does not cover them: a tag
# given a year later changes nothing that was measured.

FORMAT: Final = "1.0"
MOST: Final = 64
"""The most tags that one run may have."""
_MOST_BYTES: Final = 64 * 1024
_TAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_RESERVED: Final = frozenset({"latest"})
"""Words that name a run already."""


def check_tag(tag: str) -> str:
    """Returns a tag that is valid. UsageError where it is not."""
    if not _TAG.fullmatch(tag) or tag in _RESERVED:
        raise UsageError(
            "is not the name of a tag" if tag not in _RESERVED else "names the last run already",
            place=repr(tag),
            next_step="a tag has letters, digits, dots, hyphens and underscores, begins with a letter or digit, "
            "and is at most 63 characters long",
        )
    return tag


def tags_of(folder: Path) -> tuple[str, ...]:
    """Reads the tags of a run, sorted; invalid tags, and a file that cannot be read, are ignored."""
    try:
        return _read(folder / TAGS)
    except (OSError, ValueError, RecursionError, NicbenchError):
        return ()


def add_tag(folder: Path, tag: str) -> tuple[str, ...]:
    """Adds a tag to a run; returns all its tags."""
    return _change(folder, lambda tags: {*tags, check_tag(tag)})


def remove_tag(folder: Path, tag: str) -> tuple[str, ...]:
    """Removes a tag from a run; returns the others. UsageError where the run does not have it."""
    if tag not in tags_of(folder):
        had = ", ".join(tags_of(folder)) or "none"
        raise UsageError(f"does not have the tag {tag!r}", place=str(folder), next_step=f"its tags: {had}")
    return _change(folder, lambda tags: {*tags} - {tag})


def _change(folder: Path, change: Callable[[tuple[str, ...]], set[str]]) -> tuple[str, ...]:
    path = folder / TAGS
    with _lock_folder(folder):
        try:
            tags = _read(path)
        except OSError as error:
            raise storage_error(error, path) from error
        except (ValueError, RecursionError) as error:
            raise damaged_error(error, path) from error
        changed = sorted(change(tags))
        if len(changed) > MOST:
            raise UsageError(
                f"has {MOST} tags, the most there can be", place=str(folder), next_step="take one away (--remove)"
            )
        write_atomically(path, (json_text({"format": FORMAT, "tags": changed}) + "\n").encode())
    return tuple(changed)


def _read(path: Path) -> tuple[str, ...]:
    """Reads tags; none if the file does not exist. ValueError for other content, OSError if it cannot be read."""
    try:
        with files.open_file(path) as stream:
            content = stream.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return ()
    if len(content) > _MOST_BYTES:
        raise ValueError("too large for a file of tags")
    from pydantic_core import from_json  # imported here: finding a run by its name does not need it

    found = from_json(content)
    tags = found.get("tags") if isinstance(found, dict) else None
    if not isinstance(tags, list):
        raise ValueError("has no list of tags")
    return tuple(sorted({tag for tag in tags[:MOST] if isinstance(tag, str) and _TAG.fullmatch(tag)} - _RESERVED))


@contextlib.contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Locks the run folder, so that two users who tag a run at the same time do not lose a tag."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise storage_error(error, folder) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


# The wish that a run ends after its present test: the file ``.stop-after-test`` in its folder.  Whoever may write to
# the folder may ask for it, from any machine that shares it: ``touch RUN/.stop-after-test`` does the same. The
# controller looks for it before it begins a test. An interruption at once is a signal, SIGTERM or Ctrl-C.

STOP_NAME: Final = ".stop-after-test"


def ask_to_stop(folder: Path) -> None:
    """Asks the run of this folder to end after its present test. HostError where the folder cannot be written to."""
    path = folder / STOP_NAME
    try:
        os.close(hands().open_to_append(path))
    except OSError as error:
        raise storage_error(error, path) from error


def is_asked_to_stop(folder: Path) -> bool:
    """Whether somebody asked for it."""
    return (folder / STOP_NAME).is_file()


def forget_request(folder: Path) -> None:
    """Removes the request: it was honoured, or it is of an earlier session of the run."""
    (folder / STOP_NAME).unlink(missing_ok=True)


def end_where_asked(folder: Path, following: str) -> None:
    """Raises InterruptedRunError where the run is to end before what follows; the request is then done with."""
    if is_asked_to_stop(folder):
        forget_request(folder)
        raise InterruptedRunError(f"stopped before {following}, as somebody asked for")
