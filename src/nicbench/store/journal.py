"""The journal of a run: every event but the start of trials and rounds, one JSON line each, flushed to disk."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import from_json

from nicbench.core.errors import BusyError, HostError, LostFolderError
from nicbench.core.events import (
    Event,
    Note,
    ResultReady,
    RoundBegun,
    RoundFinished,
    RunFinished,
    TrialFinished,
    TrialStarted,
)
from nicbench.core.frozen import frozen
from nicbench.core.judging import Sample
from nicbench.core.result import Result
from nicbench.core.round import Round
from nicbench.core.trial import Purpose, Trial, require_identities
from nicbench.store import files
from nicbench.store.files import json_text, storage_error

if TYPE_CHECKING:
    from nicbench.methods.base import Measures


class Journal:
    """The file to which events are appended and from which they are read back.

    Reading never changes the file; the first append takes a lock and removes a torn last line. ``before_reopening`` is
    called then, under the lock; ``boundary`` is for tests (see ``files.from_environment``).
    """

    def __init__(
        self,
        path: Path,
        *,
        before_reopening: Callable[[], None] | None = None,
        boundary: files.Boundary | None = None,
    ) -> None:
        self.path = path
        self.redact: Callable[[Any], Any] | None = None
        """Redacts every event before it is written, but trials, rounds and results."""
        self._before_reopening = before_reopening
        self._boundary = boundary or files.from_environment()
        self._descriptor: int | None = None
        self._size_bytes = 0
        self._writes = 0
        self._known = _Known()

    def append(self, event: Event) -> None:
        """Writes one line and flushes it to disk; starts of trials and rounds are skipped. HostError on a full disk."""
        if isinstance(event, TrialStarted | RoundBegun):
            return
        self.hold()
        self._write_line(event)

    @property
    def is_complete(self) -> bool:
        """Whether the run came to its end by itself: nothing of it is left to measure."""
        return any(isinstance(event, RunFinished) and event.complete for event in deque(self.events(), maxlen=1))

    def events(self) -> Iterator[Event]:
        """Reads every event in order; in place of a torn last line there is a note that says so.

        What was read of a file of moderate size is known from then on: it only grows.
        """
        stamp = self._stamp()
        known = self._known if self._known.is_of(stamp) else _Known()
        yield from known.events
        if known.is_all_of(stamp):
            return
        size_bytes, found = known.size_bytes, list(known.events)
        for number, (text, torn) in enumerate(self._lines(size_bytes, len(found)), start=len(found) + 1):
            if torn:
                yield _torn_note(len(text))
                break
            event = self._event(number, text)
            yield event
            if stamp[-1] <= _MOST_KNOWN_BYTES:
                found.append(event)
                size_bytes += len(text) + 1
        if found:
            self._known = _Known(stamp, size_bytes, tuple(found))

    def _stamp(self) -> tuple[int, ...]:
        """Tells one state of the file from another: which file, when it was changed, and its size."""
        try:
            found = self.path.lstat()
        except OSError:
            return (0, 0, 0, 0)
        return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)

    def trials(self) -> dict[str, Trial]:
        """Reads the finished trials by their keys, in the order they were made."""
        return {event.trial.key: event.trial for event in self.events() if isinstance(event, TrialFinished)}

    def rounds(self) -> dict[str, Round]:
        """Reads the finished rounds by their keys, in the order they were made."""
        return {event.round.key: event.round for event in self.events() if isinstance(event, RoundFinished)}

    def samples(self) -> dict[str, Sample]:
        """Every finished trial and round by its key, in the order they were made."""
        return {event.sample.key: event.sample for event in self.events() if isinstance(event, _SAMPLES)}

    def sample_count(self) -> int:
        """Counts the finished trials and rounds."""
        return len(self.samples())

    def kept_words(self, measures: Measures) -> str:
        """Says how many samples are kept, as "12 rounds are kept"; ``measures`` selects the word."""
        count, name = self.sample_count(), "round" if measures == "rounds" else "trial"
        return f"{count} {name} is kept" if count == 1 else f"{count} {name}s are kept"

    def results(self) -> tuple[Result, ...]:
        """Reads every result; one that a resumed run published again replaces the first, at its place."""
        latest = {event.result.id: event.result for event in self.events() if isinstance(event, ResultReady)}
        return tuple(latest.values())

    def hold(self) -> None:
        """Takes the lock now, not with the first event. BusyError where another process has it."""
        if self._descriptor is None:
            self._open()

    def close(self) -> None:
        """Releases the lock. A later append opens the journal again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> None:
        try:
            with contextlib.suppress(FileNotFoundError):
                files.open_file(self.path).close()  # refuses pipes, devices and links
            descriptor = files.hands().open_to_append(self.path)
        except OSError as error:
            raise storage_error(error, self.path) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._before_reopening is not None:
                self._before_reopening()
            torn_bytes = self._cut_torn_end(descriptor)
        except BlockingIOError as error:
            os.close(descriptor)
            raise BusyError(
                "another nicbench process is writing this run", place=str(self.path), next_step="wait for it to end"
            ) from error
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        if torn_bytes:
            self._write_line(_torn_note(torn_bytes))

    def _cut_torn_end(self, descriptor: int) -> int:
        """Removes a torn last line, so that the next line is not appended to it; returns its length in bytes."""
        whole = torn = 0
        for text, is_torn in self._lines():
            if is_torn:
                torn = len(text)
            else:
                whole += len(text) + 1
        if torn:
            os.ftruncate(descriptor, whole)
            os.fsync(descriptor)
        os.lseek(descriptor, whole, os.SEEK_SET)
        self._size_bytes = whole
        return torn

    def _refuse_deleted(self) -> None:
        """LostFolderError where somebody deleted the file: what is written to it would be lost."""
        if self._descriptor is not None and os.fstat(self._descriptor).st_nlink == 0:
            raise LostFolderError(
                "somebody deleted the run folder, or this file of it, while the run went on: nothing of it is kept",
                place=str(self.path),
                next_step="give the bench file again, with a folder by `--runs` that nobody tidies up",
            )

    def _write_line(self, event: Event) -> None:
        assert self._descriptor is not None  # noqa: S101 - append() opened it
        content: Any = event
        if self.redact is not None and not isinstance(event, (*_SAMPLES, ResultReady)):
            content = self.redact(event.model_dump(mode="json"))
        line = json_text(content, indent=None).encode() + b"\n"
        self._writes += 1
        try:
            self._refuse_deleted()
            if self._boundary is None:
                _write_all(self._descriptor, line)
                os.fsync(self._descriptor)
            else:
                self._boundary(self._writes, "before")
                _write_all(self._descriptor, line[: len(line) // 2])
                self._boundary(self._writes, "torn")
                _write_all(self._descriptor, line[len(line) // 2 :])
                os.fsync(self._descriptor)
                self._boundary(self._writes, "after")
        except OSError as error:
            # Remove a part of the line that may be in the file, so that what was measured before stays readable.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size_bytes)
                os.lseek(self._descriptor, self._size_bytes, os.SEEK_SET)
            raise storage_error(error, self.path) from error
        self._size_bytes += len(line)

    def _lines(self, offset: int = 0, number: int = 0) -> Iterator[tuple[bytes, bool]]:
        """Reads lines without newline, each with whether it is torn: the last one, incomplete or not JSON.

        It begins at ``offset``; ``number`` is the count of lines before.
        """
        try:
            stream = files.open_file(self.path)
        except FileNotFoundError:
            return  # killed between making the folder and the first line: nothing was measured
        with stream:
            stream.seek(offset)
            lines = files.iterate_lines(stream, self.path, number)
            line = next(lines, b"")
            while line:
                following = next(lines, b"")
                whole = line.endswith(b"\n")
                # Pages of a long line reach the disk in any order: a damaged last line may still have its newline.
                torn = not following and not (whole and _is_json(line))
                yield (line if torn else line[:-1]), torn
                line = following

    def _event(self, number: int, line: bytes) -> Event:
        try:
            event = _EVENT.validate_json(line)
            files.refuse_absurd_numbers(line)
            if isinstance(event, TrialFinished):
                trial = event.trial
                require_identities(trial.reading, into_sink=trial.request.purpose is Purpose.CEILING)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise self._damaged_line_error(number, f"{where + ': ' if where else ''}{first['msg']}") from error
        except ValueError as error:
            raise self._damaged_line_error(number, str(error)) from error
        return event

    def _damaged_line_error(self, number: int, why: str) -> HostError:
        return HostError(
            f"damaged line: {why}",
            place=f"{self.path}:{number}",
            next_step="the run cannot be trusted any more: restore its folder from a copy, or measure again",
        )


@frozen
class _Known:
    """The events of the first lines of a file, and how it was stamped when they were read."""

    stamp: tuple[int, ...] = ()
    size_bytes: int = 0
    events: tuple[Event, ...] = ()

    def is_of(self, stamp: tuple[int, ...]) -> bool:
        return stamp == self.stamp or (stamp[:2] == self.stamp[:2] and stamp[-1] > self.size_bytes)

    def is_all_of(self, stamp: tuple[int, ...]) -> bool:
        return stamp == self.stamp and stamp[-1] == self.size_bytes


_MOST_KNOWN_BYTES: Final = 16 * 2**20
_SAMPLES: Final = (TrialFinished, RoundFinished)
_EVENT: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))


def _torn_note(torn_bytes: int) -> Note:
    return Note(
        level="warning",
        text=f"The journal's last line was cut short by a crash; its {torn_bytes} bytes were dropped.",
    )


def _is_json(line: bytes) -> bool:
    try:
        from_json(line)
    except (ValueError, RecursionError):
        return False
    return True


def _write_all(descriptor: int, content: bytes) -> None:
    """Writes everything, because ``os.write`` may write only a part."""
    while content:
        content = content[os.write(descriptor, content) :]
