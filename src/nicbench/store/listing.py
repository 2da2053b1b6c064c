"""The runs under a folder, a headline each, for ``nicbench list``; a damaged run is listed with its trouble.

What is read here is whatever somebody put into a folder: text is cleaned of control characters and bounded in length,
and no content makes it an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from nicbench.errors import NicbenchError, UsageError
from nicbench.model.result import ResultVerdict, Summary
from nicbench.store import manifest
from nicbench.store.folder import SHOWN, RunFolder, is_run_folder
from nicbench.store.headline import MOST_NAMES, RunHeadline, clean
from nicbench.store.machines import machines_of
from nicbench.store.names import JOURNAL
from nicbench.store.skim import skim
from nicbench.store.tags import tags_of

_READ: Final = SHOWN - {"monitor.parquet", "monitor.ndjson"}
"""Of these the checksums are compared, of the others only that they are there: those may be large."""
_MOST_CHECKED_BYTES: Final = 16 * 2**20
"""Larger files are compared where a run is opened, and not for a list."""

Tell = Callable[[Summary], str | None]
"""One line on what a run found."""


def list_runs(parent: Path, tell: Tell = lambda _: None) -> tuple[RunHeadline, ...]:
    """Every run folder directly under ``parent``, oldest first (their names begin with the time)."""
    if not parent.is_dir():
        return ()
    return tuple(headline(path, tell) for path in sorted(parent.iterdir()) if is_run_folder(path))


def latest_run(parent: Path) -> Path | None:
    """The run folder that would be the last of the list, without reading any of them."""
    if not parent.is_dir():
        return None
    return next((path for path in sorted(parent.iterdir(), reverse=True) if is_run_folder(path)), None)


def headline(path: Path, tell: Tell = lambda _: None) -> RunHeadline:
    """The headline of one run folder, of a damaged one what is the matter; ``tell`` has a line on what it found."""
    try:
        departures = manifest.departures(path, _READ, _MOST_CHECKED_BYTES)
        damage = manifest.told([each for each in departures if each.name in SHOWN])
        if not damage:
            RunFolder.open(path)
    except UsageError as error:  # of a newer nicbench
        return unreadable(path, f"{Path(error.place or path).name} {error.message}")
    except NicbenchError as error:
        damage = (f"{Path(error.place or path).name} {error.message}",)
    if damage:
        return unreadable(path, f"damaged: {'; '.join(damage)}")
    journal = skim(path / JOURNAL)
    trouble: str | None
    title, results, trouble = journal.title, journal.results, journal.trouble
    methods, configurations = journal.methods, journal.configurations
    verdict, said, version = ResultVerdict.INCOMPLETE, None, None
    folder = RunFolder(path)
    device: tuple[str, ...] = ()
    summary = None
    try:
        summary = folder.summary()
        if summary is not None:
            version, said = summary.format, tell(summary)
            methods = tuple(result.method for result in summary.results) or methods
            configurations = summary.configurations or tuple(result.configuration for result in summary.results)
            device = (summary.imported.device or "",) if summary.imported else ()
        if summary is not None and folder.finished:
            title, verdict, results = summary.title, summary.verdict, len(summary.results)
    except NicbenchError as error:
        trouble = error.message
    machines = machines_of(path)
    return RunHeadline(
        run_id=clean(path.name),
        folder=str(path),
        title=_text(title),
        started=_in_utc(journal.started),
        verdict=verdict.value if trouble is None else None,
        finished=folder.finished,
        trials=journal.trials,
        results=results,
        has_report=(path / "report.html").is_file(),
        trouble=_text(trouble),
        tags=tags_of(path),
        cards=_names((*device, *machines.cards)),
        kernels=_names(machines.kernels),
        drivers=_names(machines.drivers),
        methods=_names(methods),
        configurations=_names(configurations),
        nicbench_version=_text(journal.nicbench_version),
        format=_text(version),
        headline=_text(said),
    )


def unreadable(path: Path, trouble: str) -> RunHeadline:
    """Nothing of it is shown but its name and its tags, for which no manifest vouches."""
    return RunHeadline(run_id=clean(path.name), folder=str(path), trouble=clean(trouble), tags=tags_of(path))


def _text(text: str | None) -> str | None:
    return clean(text) if text else None


def _names(names: Iterable[str]) -> tuple[str, ...]:
    """Each once, in order, no more than ``MOST_NAMES``."""
    return tuple(islice(dict.fromkeys(clean(name) for name in names if name), MOST_NAMES))


def _in_utc(wall_time: str | None) -> str | None:
    """None where it is no time."""
    try:
        told = datetime.fromisoformat(wall_time or "")
    except ValueError:
        return None
    try:
        return told.replace(tzinfo=told.tzinfo or UTC).astimezone(UTC).isoformat(timespec="seconds")
    except OverflowError:
        return None
