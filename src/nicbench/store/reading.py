"""Reading files of a run folder that may come from anybody: regular files alone, no link followed, of bounded size.

Opening a pipe or a device would hang or do harm, a link would show a file of this machine in somebody's report, and a
few bytes of a compressed or sparse file can fill the memory.
"""

from __future__ import annotations

import errno
import math
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from pydantic_core import from_json

from nicbench.errors import HostError
from nicbench.store.files import damaged_error, storage_error
from nicbench.store.json_place import line_in, line_of
from nicbench.visible import visible_name

MOST_BYTES: Final = 64 * 2**20
"""Of a file that is read as a whole. The largest summary known is far below one MiB."""
_MAY_BE_ABSURD: Final = re.compile(rb"NaN|Infinity|[0-9][eE]\+?[0-9]{3}|[0-9]{31}")
"""What may be no number, or one that the parser takes for infinity (1e999), or too large, looks like this."""
Steps = tuple[str | int, ...]
LARGEST_WHOLE_NUMBER: Final = 10**30
"""Nothing that is counted comes near it: it is more nanoseconds than the universe is old."""
LONGEST_LINE_BYTES: Final = 16 * 2**20
"""Of a journal or a log; the longest known, a trial with its histograms, is far below one MiB."""


def opened(path: Path) -> BinaryIO:
    """``path`` opened for reading. FileNotFoundError where it is not there, HostError where it is no regular file."""
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


def content(path: Path) -> bytes:
    """The whole file. FileNotFoundError where it is not there, HostError where it is too large or no regular file."""
    with opened(path) as stream:
        try:
            found = stream.read(MOST_BYTES + 1)
        except OSError as error:
            raise storage_error(error, path) from error
    if len(found) > MOST_BYTES:
        raise damaged_error(ValueError(f"it is larger than {MOST_BYTES // 2**20} MiB"), path)
    return found


def text(path: Path) -> str:
    """The whole file as text in UTF-8."""
    try:
        return content(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise damaged_error(ValueError(f"byte {error.start + 1} is no UTF-8"), path) from error


def parsed(path: Path) -> Any:
    """The JSON in the file: no NaN, bounded depth and numbers. HostError, with the line, where it is something else.

    Of a key that is there twice the last value counts.
    """
    found = content(path)
    try:
        value = from_json(found)
    except (ValueError, RecursionError) as error:
        raise damaged_error(error, path, line_in(str(error))) from error
    if _MAY_BE_ABSURD.search(found) and (absurd := next(_absurd(value, ()), None)):
        steps, why = absurd
        raise damaged_error(ValueError(f"{_words(steps)}{why}"), path, line_of(found.decode(errors="replace"), steps))
    return value


def refuse_absurd_numbers(line: bytes) -> None:
    """ValueError where a line of JSON has a number that ``parsed`` would refuse, with the keys that lead to it."""
    if _MAY_BE_ABSURD.search(line) and (absurd := next(_absurd(from_json(line), ()), None)):
        steps, why = absurd
        raise ValueError(f"{_words(steps)}{why}")


def _absurd(value: Any, steps: Steps) -> Iterator[tuple[Steps, str]]:
    if isinstance(value, float):
        if not math.isfinite(value):
            yield steps, "is not a finite number"
    elif isinstance(value, int):
        if abs(value) >= LARGEST_WHOLE_NUMBER:
            yield steps, "is larger than anything that is counted"
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _absurd(each, (*steps, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _absurd(each, (*steps, index))


def _words(steps: Steps) -> str:
    return f"{visible_name('.'.join(map(str, steps)))} " if steps else "it "


def lines(stream: BinaryIO, path: Path) -> Iterator[bytes]:
    """Each line with its newline. HostError, with its number, at one that no nicbench wrote: it is too long."""
    number = 0
    while line := stream.readline(LONGEST_LINE_BYTES + 1):
        number += 1
        if len(line) > LONGEST_LINE_BYTES:
            why = f"line {number} is longer than {LONGEST_LINE_BYTES // 2**20} MiB"
            raise damaged_error(ValueError(why), path)
        yield line


def strange(mode: int) -> str | None:
    """What a directory entry is that has no place in a run folder, in words; None of files and folders."""
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
    raise _strange_error(path, strange(found.st_mode) or "a folder")


def _strange_error(path: Path, what: str) -> HostError:
    return HostError(
        f"is no regular file of a run: it is {what}",
        place=str(path),
        next_step="see who put it there; put the run's own file back from a copy, and remove what does not belong",
    )
