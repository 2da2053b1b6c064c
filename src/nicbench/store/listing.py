"""Lists the runs under a folder, with a headline of each, and finds the run that a command line names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from nicbench.core.errors import NicbenchError, UsageError
from nicbench.core.result import ResultVerdict, Summary
from nicbench.store import manifest
from nicbench.store.files import JOURNAL
from nicbench.store.folder import SHOWN, RunFolder, is_run_folder, refuse_damaged
from nicbench.store.headline import MOST_NAMES, RunHeadline, clean, machines_of
from nicbench.store.skim import skim
from nicbench.store.tags import tags_of

_READ: Final = SHOWN - {"monitor.parquet", "monitor.ndjson"}
"""Files whose checksums are compared; others may be large, and need only be there."""
_MOST_CHECKED_BYTES: Final = 16 * 2**20
"""Larger files are compared when a run is opened, not for a list."""
LATEST = "latest"

Tell = Callable[[Summary], str | None]
"""Returns one line on the results of a run."""


def list_runs(parent: Path, tell: Tell = lambda _: None) -> tuple[RunHeadline, ...]:
    """Lists the run folders directly under ``parent``, oldest first (their names begin with the time)."""
    if not parent.is_dir():
        return ()
    return tuple(headline(path, tell) for path in sorted(parent.iterdir()) if is_run_folder(path))


def latest_run(parent: Path) -> Path | None:
    """Finds the newest run folder without reading any of them."""
    if not parent.is_dir():
        return None
    return next((path for path in sorted(parent.iterdir(), reverse=True) if is_run_folder(path)), None)


def headline(path: Path, tell: Tell = lambda _: None) -> RunHeadline:
    """Makes the headline of one run folder; for a damaged one it says what is wrong. ``tell`` describes the results."""
    try:
        departures = manifest.departures(path, _READ, _MOST_CHECKED_BYTES)
        damage = manifest.describe([each for each in departures if each.name in SHOWN])
        if not damage:
            RunFolder.open(path)
    except UsageError as error:  # written by a newer nicbench
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
    """Makes the headline of a run that cannot be read: its name, its tags (which no manifest covers) and the reason."""
    return RunHeadline(run_id=clean(path.name), folder=str(path), trouble=clean(trouble), tags=tags_of(path))


def _text(text: str | None) -> str | None:
    return clean(text) if text else None


def _names(names: Iterable[str]) -> tuple[str, ...]:
    """Cleans names and removes duplicates, keeping the order and at most ``MOST_NAMES``."""
    return tuple(islice(dict.fromkeys(clean(name) for name in names if name), MOST_NAMES))


def _in_utc(wall_time: str | None) -> str | None:
    """Converts a wall time to UTC; None where it is no valid time."""
    try:
        time = datetime.fromisoformat(wall_time or "")
    except ValueError:
        return None
    try:
        return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC).isoformat(timespec="seconds")
    except OverflowError:
        return None


# A run is named by its folder, by its id in the folder that holds runs, or as ``latest``.


def open_run(reference: str, output: Path, *, damaged: bool = False) -> RunFolder:
    """Opens the run folder that ``reference`` names. UsageError where there is none, HostError where it is damaged.

    With ``damaged`` a damaged folder is opened too; its reader then says what is wrong with it.
    """
    folder = RunFolder.open(path_of(reference, output))
    if not damaged:
        refuse_damaged(folder)
    return folder


def path_of(reference: str, output: Path) -> Path:
    """Returns the path of the named run. UsageError where ``latest`` is asked for and there are no runs."""
    if reference == LATEST:
        run = latest_run(output)
        if run is None:
            raise UsageError("there are no runs here", place=str(output), next_step="nicbench run BENCH.yaml makes one")
        return run
    path = Path(reference)
    by_id = output / reference
    # A folder of that name in the current folder has precedence over an id.
    return by_id if not path.exists() and by_id.exists() else path
