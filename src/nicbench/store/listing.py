"""The runs under a folder, a headline each, for ``nicbench list``; a damaged run is listed with its trouble."""

from __future__ import annotations

import json
from pathlib import Path

from nicbench.errors import NicbenchError
from nicbench.model.base import Frozen
from nicbench.model.result import ResultVerdict
from nicbench.store.folder import JOURNAL, RunFolder, is_run_folder


class RunHeadline(Frozen):
    """What a list shows of a run. ``started`` is wall time, a label; ``trouble`` says why a run cannot be read."""

    run_id: str
    path: Path
    title: str | None = None
    started: str | None = None
    verdict: ResultVerdict | None = None
    finished: bool = False
    trials: int = 0
    results: int = 0
    has_report: bool = False
    trouble: str | None = None


def list_runs(parent: Path) -> tuple[RunHeadline, ...]:
    """Every run folder directly under ``parent``, oldest first (their names begin with the time)."""
    if not parent.is_dir():
        return ()
    return tuple(headline(path) for path in sorted(parent.iterdir()) if is_run_folder(path))


def headline(path: Path) -> RunHeadline:
    """The headline of one run folder."""
    title, started, trials, results, trouble = _skim(path / JOURNAL)
    verdict = ResultVerdict.INCOMPLETE
    folder = RunFolder(path)
    try:
        summary = folder.summary()
        if summary is not None and folder.finished:
            title, verdict, results = summary.title, summary.verdict, len(summary.results)
    except NicbenchError as error:
        trouble = error.message
    return RunHeadline(
        run_id=path.name,
        path=path,
        title=title,
        started=started,
        verdict=verdict if trouble is None else None,
        finished=folder.finished,
        trials=trials,
        results=results,
        has_report=(path / "report.html").is_file(),
        trouble=trouble,
    )


def _skim(journal: Path) -> tuple[str | None, str | None, int, int, str | None]:
    """Title, start, trials, results and trouble of a journal, without checking every line of it."""
    title = started = None
    trials, results = 0, set()
    try:
        with journal.open("rb") as stream:
            for line in stream:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue  # torn or damaged: opening the run says which
                if not isinstance(event, dict):
                    continue
                if event.get("event") == "run_started" and title is None:
                    title, started = event.get("title"), event.get("wall_time")
                elif event.get("event") == "trial_finished":
                    trials += 1
                elif event.get("event") == "result_ready":
                    results.add(json.dumps(event.get("result", {}).get("id")))
    except FileNotFoundError:
        return None, None, 0, 0, None
    except OSError as error:
        return None, None, 0, 0, str(error)
    return title, started, trials, len(results), None
