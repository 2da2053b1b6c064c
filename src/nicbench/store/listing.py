"""Lists the runs under a folder, with a headline of each, and finds the run that a command line names.

For a list a journal is skimmed: title, start, methods and counts, without checking every line of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json

from nicbench.core.errors import NicbenchError, UsageError
from nicbench.core.result import ResultVerdict, Summary
from nicbench.store import manifest, reading
from nicbench.store.files import JOURNAL
from nicbench.store.folder import SHOWN, RunFolder, is_run_folder, refuse_damaged
from nicbench.store.headline import MOST_NAMES, RunHeadline, clean, machines_of
from nicbench.store.tags import tags_of

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Limit in bytes; a longer line is skipped."""
_PREFIX: Final = b'{"event":"'
_SKIMMED: Final = frozenset({b"run_started", b"result_ready", b"test_started"})
"""Events whose content a list needs; of the others it needs only the number."""


@dataclass(frozen=True, slots=True)
class JournalSkim:
    """What a list needs of a journal. ``started`` is the wall time as written; ``trouble`` why it cannot be read."""

    title: str | None = None
    started: str | None = None
    nicbench_version: str | None = None
    trials: int = 0
    """Trials of frames and rounds of workloads."""
    results: int = 0
    methods: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    trouble: str | None = None


def skim(journal: Path) -> JournalSkim:
    """Reads what a list shows of a journal. Torn or damaged lines are skipped; opening the run reports them."""
    first: dict[str, Any] = {}
    trials, results = 0, set[str]()
    methods, configurations = dict[str, None](), dict[str, None]()
    try:
        with reading.open_file(journal) as stream:
            while line := stream.readline(LONGEST_LINE):
                kind, event = _event(line)
                if kind in ("trial_finished", "round_finished"):
                    trials += 1
                elif kind == "run_started" and not first:
                    first = event
                elif kind == "test_started":
                    methods[str(event.get("method"))] = None
                elif kind == "result_ready" and isinstance(result := event.get("result"), dict):
                    results.add(json.dumps(result.get("id")))
                    configurations[str(result.get("configuration") or "default")] = None
    except FileNotFoundError:
        return JournalSkim()
    except NicbenchError as error:
        return JournalSkim(trouble=f"{journal.name} {error.message}")
    except OSError as error:
        return JournalSkim(trouble=str(error))
    return JournalSkim(
        title=_text_of(first.get("title")),
        started=_text_of(first.get("wall_time")),
        nicbench_version=_text_of(first.get("nicbench_version")),
        trials=trials,
        results=len(results),
        methods=tuple(methods),
        configurations=tuple(configurations),
    )


def _event(line: bytes) -> tuple[str, dict[str, Any]]:
    """Returns an event's kind, and its content where a list needs it.

    Lines that nicbench wrote begin with the kind; others are parsed.
    """
    if line.startswith(_PREFIX):
        kind = line[len(_PREFIX) : len(_PREFIX) + 32].partition(b'"')[0]
        if kind not in _SKIMMED:
            return kind.decode(errors="replace") if line.endswith(b"\n") else "", {}
    try:
        event = from_json(line, allow_inf_nan=False)
    except (ValueError, RecursionError):
        return "", {}
    return (str(event.get("event")), event) if isinstance(event, dict) else ("", {})


def _text_of(value: Any) -> str | None:
    return value if isinstance(value, str) else None


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
