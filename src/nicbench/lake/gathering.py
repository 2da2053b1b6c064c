"""Gathers run folders into a lake: each run once, by its id. Killed at any moment and repeated, it gives the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from nicbench.compare.history.figures import FigureReader
from nicbench.core.errors import HostError, NicbenchError, UsageError
from nicbench.lake.place import HEADLINE, TABLES, Lake, Month
from nicbench.lake.run_rows import RunRows, Stamp, read_rows, stamp_of
from nicbench.lake.writing import merge
from nicbench.store.folder import is_run_folder
from nicbench.store.headline import clean
from nicbench.store.listing import Tell

_AT_ONCE: Final = 1000
"""Runs that are read before their months are written."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What became of the runs. ``added`` and ``updated`` are ids; ``skipped`` says which were left out, and why.

    ``known`` is how many were in the lake already, as they are. ``strangers`` lie in the lake and do not belong there.
    """

    added: tuple[str, ...]
    updated: tuple[str, ...]
    known: int
    skipped: tuple[str, ...]
    strangers: tuple[str, ...]


def gather(
    runs: Iterable[Path],
    lake: str | Path,
    tell: Tell = lambda _: None,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Gathered:
    """Appends runs to the lake at a path or address, which is made where it is missing.

    ``runs`` are run folders, or folders of them. ``tell`` returns the line on a run's results that lists show;
    ``progress`` is given how many of how many runs are done. A run that is damaged, not finished, or another one of a
    known id is skipped and named, and costs the others nothing. BusyError where another process gathers; HostError
    where the lake cannot be written: what was gathered before stays.
    """
    folders = sorted(set(_run_folders(runs)), key=lambda path: (path.name, path))
    opened = Lake.open(lake, create=True)
    added: list[str] = []
    updated: list[str] = []
    skipped: list[str] = []
    known, reader = 0, FigureReader()
    with opened.locked():
        for begin in range(0, len(folders), _AT_ONCE):
            some = folders[begin : begin + _AT_ONCE]
            before = find_known(opened, [clean(path.name) for path in some])
            fresh: dict[str, RunRows] = {}
            for path in some:
                run_id = clean(path.name)
                try:
                    stamp = stamp_of(path)
                    reason = _why_not(path, stamp, before.get(run_id), again=run_id in fresh)
                    if reason:
                        skipped.append(f"{path}: {reason}")
                    elif stamp is None or reason is not None:
                        known += 1
                    else:
                        fresh[run_id] = read_rows(path, stamp, tell, reader)
                        (updated if run_id in before else added).append(run_id)
                except NicbenchError as error:
                    skipped.append(f"{path}: {error.message}")
            _write(opened, fresh.values())
            progress(begin + len(some), len(folders))
        return Gathered(tuple(added), tuple(updated), known, tuple(skipped), tuple(opened.strangers()))


def _run_folders(runs: Iterable[Path]) -> Iterator[Path]:
    for path in runs:
        if not path.is_dir():
            step = "name a run folder, or a folder of them"
            raise UsageError("there is no such folder", place=str(path), next_step=step)
        if is_run_folder(path):
            yield path.resolve()
        else:
            yield from (each.resolve() for each in path.iterdir() if is_run_folder(each))


def _why_not(path: Path, stamp: Stamp | None, found: KnownRun | None, *, again: bool) -> str | None:
    """Returns why a run is left out, empty where it is in the lake as it is; None where it is to be gathered."""
    if stamp is None:
        return "is not finished"
    if again:
        return "has the name of a run that was gathered just now from another folder"
    if found is None:
        return None
    there = Path(found.path)
    elsewhere = there != path and is_run_folder(there)
    if found.stamp == stamp:
        return "" if there == path or elsewhere else None  # it was moved: where it is now is kept
    if elsewhere and found.stamp.digest != stamp.digest and not _is_copy(there, stamp):
        return f"has the name of another run, which was gathered from {found.path}"
    return None


def _is_copy(there: Path, stamp: Stamp) -> bool:
    """Whether a run that was gathered in an older format from another folder is the same, as it is now."""
    try:
        now = stamp_of(there)
    except HostError:
        return False
    return now is not None and now.digest == stamp.digest


def _write(lake: Lake, fresh: Iterable[RunRows]) -> None:
    months: dict[Month, list[RunRows]] = {}
    for run in fresh:
        months.setdefault(run.month, []).append(run)
    for month, runs in sorted(months.items()):
        replaced = [run.run_id for run in runs]
        for table in TABLES:
            merge(lake, month, table, [run.tables[table] for run in runs], replaced)


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run of the lake, as it was gathered."""

    path: str
    stamp: Stamp


def find_known(lake: Lake, ids: Sequence[str]) -> dict[str, KnownRun]:
    """Finds runs of a lake by their ids. HostError where one of its files cannot be read."""
    wanted = pa.array(sorted(set(ids)), pa.string())
    found = {}
    for month in lake.months_of(ids):
        for part in lake.parts(month, HEADLINE):
            rows = part.read(["run_id", "path", "digest", "tags_digest"])
            for row in rows.filter(pc.is_in(rows.column("run_id"), wanted)).to_pylist():
                found[row["run_id"]] = KnownRun(row["path"], Stamp(row["digest"], row["tags_digest"]))
    return found
