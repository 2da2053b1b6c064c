"""Files of a run folder: their names, and atomic writing, so that a reader never sees an incomplete file."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import shutil
import signal
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal

from nicbench.core.errors import HostError, NicbenchError, UsageError
from nicbench.core.redaction import visible_name

if TYPE_CHECKING:
    from pydantic import BaseModel

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
    data = value if isinstance(value, dict | list) else value.model_dump(mode="json")
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
    from pydantic import BaseModel  # imported here: who asks for help or names a wrong word waits for it

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


# Reads files of a run folder, which may come from anybody, within bounds: only regular files, and JSON with error
# lines.

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
_BLOCK_BYTES: Final = 2**16
_DECODER: Final = json.JSONDecoder()
_GAP: Final = re.compile(r"[\s,:]*")
_LINE: Final = re.compile(r"\bat line (\d+)")
_ALIKE: Final = bytes.maketrans(b"123456789E", b"000000000e")
_SIGNS_OF_ABSURD: Final = (b"NaN", b"Infinity", b"0e000", b"0e+000", b"0" * 31)
"""After all digits are made alike: text that may stand for NaN, for a number that the parser reads as infinity
(1e999), or for one that is too large. Searching for fixed bytes takes a tenth of the time of a pattern.
"""
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
    """Opens a file for reading. FileNotFoundError if it is missing, HostError if it is not a regular file."""
    return os.fdopen(_open(path), "rb")


def _open(path: Path) -> int:
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
    try:
        _refuse_strange(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_bytes(path: Path) -> bytes:
    """Reads a whole file. FileNotFoundError where it is missing, HostError where it is too large or not regular."""
    descriptor = _open(path)
    parts, left = [], MOST_BYTES + 1
    try:
        while part := os.read(descriptor, min(left, _BLOCK_BYTES)):
            parts.append(part)
            left -= len(part)
    except OSError as error:
        raise storage_error(error, path) from error
    finally:
        os.close(descriptor)
    if not left:
        raise damaged_error(ValueError(f"it is larger than {MOST_BYTES // 2**20} MiB"), path)
    return b"".join(parts)


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
    return parse_json_of(read_bytes(path), path)


def parse_json_of(found: bytes, path: Path) -> Any:
    """Does what ``parse_json`` does with the content of a file that was read already."""
    from pydantic_core import from_json  # imported here, as in _dump_model

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
    from pydantic_core import from_json  # imported here, as in _dump_model

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


def iterate_lines(stream: BinaryIO, path: Path, number: int = 0) -> Iterator[bytes]:
    """Reads lines with their newlines, after so many. HostError, with its number, at one that is too long."""
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
