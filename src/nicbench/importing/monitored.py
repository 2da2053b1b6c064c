"""Imports recordings of machines, with results or alone: files, rows of monitor.parquet, and what a plan states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nicbench.core.errors import UsageError
from nicbench.core.machine import MonitorPlan
from nicbench.importing.cells import decode, read_bytes
from nicbench.importing.files import GivenFile
from nicbench.importing.nmon import ENDING, Recording, read_nmon

METHOD: Final = "monitor"
"""Stands for the method where nothing was measured and machines were only monitored."""
FORMAT: Final = "nmon"
MOST_BYTES: Final = 64 * 2**20
"""The largest recording; a day at one-second intervals on a machine with 64 CPUs takes twice as much."""


@dataclass(frozen=True, slots=True)
class Monitored:
    """A file and the recording in it."""

    file: GivenFile
    recording: Recording


def is_recording(path: Path) -> bool:
    """Returns whether the file is a recording, by its ending."""
    return path.suffix.lower() == ENDING


def read_monitored(
    named: Iterable[tuple[Path, str | None]], beside: Sequence[GivenFile] = (), encoding: str | None = None
) -> tuple[Monitored, ...]:
    """Reads each file, under another machine name where one is given; ``beside`` are the files of results.

    UsageError where two are of one machine or have one name. WrongFileError with line and section where one is wrong.
    """
    found: list[Monitored] = []
    seen: dict[str, Path] = {}
    names = {file.path.name for file in beside}
    for path, host in named:
        if path.name in names:
            raise UsageError("has the name of another file", place=str(path), next_step="give them names of their own")
        names.add(path.name)
        content = read_bytes(path, MOST_BYTES)
        recording = read_nmon(decode(content, str(path), encoding), str(path), host)
        if recording.host in seen:
            raise UsageError(
                f"is a recording of {recording.host}, as is {seen[recording.host]}",
                place=str(path),
                next_step="name the machines apart: --with-monitor FILE=HOST",
            )
        seen[recording.host] = path
        found.append(Monitored(GivenFile(path, content), recording))
    return tuple(found)


def rows(recordings: Sequence[Recording]) -> Iterator[tuple[Any, ...]]:
    """Yields rows of monitor.parquet. Times count from the first recording where all recordings overlap.

    Otherwise the machines' clocks differ, and the times of each count from its own start.
    """
    begun_s = [each.samples[0].at_s - each.samples[0].interval_s for each in recordings]
    ended_s = [each.samples[-1].at_s for each in recordings]
    at_once = max(begun_s) < min(ended_s)
    for recording, began_s in zip(recordings, begun_s, strict=True):
        from_s = min(begun_s) if at_once else began_s
        for sample in recording.samples:
            at_s = sample.at_s - from_s
            head = (1, recording.host, at_s, round(at_s * 1e9), round(sample.interval_s * 1e9), None)
            for one in sample.readings:
                yield (*head, one.metric, one.of, one.kind, one.value)


def plans(recordings: Sequence[Recording]) -> tuple[MonitorPlan, ...]:
    """Returns how the recordings were made, for reports."""
    return tuple(
        MonitorPlan(host=each.host, interval_s=each.interval_s, paused=False, during_trials="", recorder=each.recorder)
        for each in recordings
    )


def words(each: Monitored) -> str:
    """Describes what was read of a file and what was not, for the notes of a report."""
    recording = each.recording
    text = (
        f"{each.file.path.name} is a recording of {recording.host} by {recording.recorder}: {len(recording.samples)} "
        f"snapshots, one each {recording.interval_s:g} s."
    )
    left = ", ".join(recording.left_out[:12])
    return f"{text} Not read of it: {left}{', ...' if len(recording.left_out) > 12 else ''}." if left else text
