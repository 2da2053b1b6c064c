"""Reads files of a run folder, which may come from anybody, within bounds: only regular files, and JSON with error
lines.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from pydantic_core import from_json

from nicbench.core.errors import HostError
from nicbench.core.redaction import visible_name
from nicbench.store.files import damaged_error, storage_error

MOST_BYTES: Final = 64 * 2**20
"""Limit of a file that is read as a whole. The largest summary known is far below one MiB."""
MOST_PARTS: Final = 2**21
"""Limit of the lists and objects of a JSON file, which take far more memory than their text."""
MOST_PARTS_OF_LINE: Final = 2**19
"""The same of a line of a journal."""
LARGEST_WHOLE_NUMBER: Final = 10**30
"""Larger than any count: it is more nanoseconds than the universe is old."""
LONGEST_LINE_BYTES: Final = 16 * 2**20
"""Limit of a line of a journal or log; the longest known, a trial with its histograms, is far below one MiB."""
_DECODER: Final = json.JSONDecoder()
_GAP: Final = re.compile(r"[\s,:]*")
_LINE: Final = re.compile(r"\bat line (\d+)")
_ALIKE: Final = bytes.maketrans(b"123456789E", b"000000000e")
_SIGNS_OF_ABSURD: Final = (b"NaN", b"Infinity", b"0e000", b"0e+000", b"0" * 31)
"""After all digits are made alike: text that may be no number, one that the parser takes for infinity (1e999), or one
that is too large. Searching for fixed bytes takes a tenth of the time of a pattern."""
Steps = tuple[str | int, ...]
"""Keys and indices that lead to a value in JSON."""


# Lines of values in a JSON file, computed only for error messages.


def line_of(text: str, steps: Sequence[str | int]) -> int | None:
    """Returns the line, from 1, of the value to which ``steps`` lead, or of the last step that exists."""
    try:
        return text.count("\n", 0, _position(text, steps)) + 1
    except (ValueError, IndexError, RecursionError):
        return None


def line_in(message: str) -> int | None:
    """Returns the line that a parser's message names, None where it names none."""
    found = _LINE.search(message)
    return int(found[1]) if found else None


def _position(text: str, steps: Sequence[str | int]) -> int:
    at = _past_gap(text, 0)
    for step in steps:
        found = _member(text, at, step)
        if found is None:
            break
        at = found
    return at


def _member(text: str, at: int, step: str | int) -> int | None:
    """Finds where the value of a key or index begins; for a duplicate key, the last one."""
    opening, found, index = text[at], None, 0
    if opening not in "{[":
        return None
    at = _past_gap(text, at + 1)
    while text[at] not in "}]":
        key: object = index
        if opening == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _past_gap(text, at)
        if key == step:
            found = at
        _, at = _DECODER.raw_decode(text, at)
        at, index = _past_gap(text, at), index + 1
    return found


def _past_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


# Files.


def open_file(path: Path) -> BinaryIO:
    """Opens a file for reading. FileNotFoundError where it is missing, HostError where it is no regular file."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        _refuse_strange(path, path.lstat())  # before it is opened: opening some devices has an effect
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _strange_error(path, "a symbolic link, and none is followed") from error
        raise storage_error(error, path) from error
    stream = os.fdopen(descriptor, "rb")
    try:
        _refuse_strange(path, os.fstat(descriptor))
    except BaseException:
        stream.close()
        raise
    return stream


def read_bytes(path: Path) -> bytes:
    """Reads a whole file. FileNotFoundError where it is missing, HostError where it is too large or not regular."""
    with open_file(path) as stream:
        try:
            found = stream.read(MOST_BYTES + 1)
        except OSError as error:
            raise storage_error(error, path) from error
    if len(found) > MOST_BYTES:
        raise damaged_error(ValueError(f"it is larger than {MOST_BYTES // 2**20} MiB"), path)
    return found


def read_text(path: Path) -> str:
    """Reads a whole file as UTF-8 text."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise damaged_error(ValueError(f"byte {error.start + 1} is no UTF-8"), path) from error


def parse_json(path: Path) -> Any:
    """Parses a JSON file without NaN, with bounded depth and numbers. HostError, with the line, for anything else.

    The last value of a duplicate key counts.
    """
    found = read_bytes(path)
    if _parts_of(found) > MOST_PARTS:
        raise damaged_error(ValueError(f"it has more than {MOST_PARTS} lists and objects"), path)
    try:
        value = from_json(found)
    except (ValueError, RecursionError) as error:
        raise damaged_error(error, path, line_in(str(error))) from error
    if _may_be_absurd(found) and (absurd := next(_find_absurd(value, ()), None)):
        steps, why = absurd
        raise damaged_error(ValueError(f"{_words(steps)}{why}"), path, line_of(found.decode(errors="replace"), steps))
    return value


def refuse_absurd_numbers(line: bytes) -> None:
    """Raises ValueError, with the keys that lead to it, for a number in a line that ``parse_json`` would refuse."""
    if _may_be_absurd(line) and (absurd := next(_find_absurd(from_json(line), ()), None)):
        steps, why = absurd
        raise ValueError(f"{_words(steps)}{why}")


def _may_be_absurd(text: bytes) -> bool:
    alike = text.translate(_ALIKE)
    return any(sign in alike for sign in _SIGNS_OF_ABSURD)


def _find_absurd(value: Any, steps: Steps) -> Iterator[tuple[Steps, str]]:
    if isinstance(value, float):
        if not math.isfinite(value):
            yield steps, "is not a finite number"
    elif isinstance(value, int):
        if abs(value) >= LARGEST_WHOLE_NUMBER:
            yield steps, "is larger than anything that is counted"
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _find_absurd(each, (*steps, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _find_absurd(each, (*steps, index))


def _words(steps: Steps) -> str:
    return f"{visible_name('.'.join(map(str, steps)))} " if steps else "it "


def iterate_lines(stream: BinaryIO, path: Path) -> Iterator[bytes]:
    """Reads lines with their newlines. HostError, with its number, at a line longer than nicbench writes."""
    number = 0
    while line := stream.readline(LONGEST_LINE_BYTES + 1):
        number += 1
        if len(line) > LONGEST_LINE_BYTES:
            why = f"line {number} is longer than {LONGEST_LINE_BYTES // 2**20} MiB"
            raise damaged_error(ValueError(why), path)
        if _parts_of(line) > MOST_PARTS_OF_LINE:
            why = f"line {number} has more than {MOST_PARTS_OF_LINE} lists and objects"
            raise damaged_error(ValueError(why), path)
        yield line


def _parts_of(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{")


def describe_strange(mode: int) -> str | None:
    """Describes a directory entry that does not belong in a run folder; None for files and folders."""
    kinds = {
        stat.S_IFLNK: "a symbolic link, and none is followed",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFBLK: "a device",
        stat.S_IFCHR: "a device",
    }
    return kinds.get(stat.S_IFMT(mode))


def _refuse_strange(path: Path, found: os.stat_result) -> None:
    if stat.S_ISREG(found.st_mode):
        return
    raise _strange_error(path, describe_strange(found.st_mode) or "a folder")


def _strange_error(path: Path, what: str) -> HostError:
    return HostError(
        f"is no regular file of a run: it is {what}",
        place=str(path),
        next_step="see who put it there; put the run's own file back from a copy, and remove what does not belong",
    )
