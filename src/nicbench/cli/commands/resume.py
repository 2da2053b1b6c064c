"""``nicbench resume RUN``: goes on with a run that was interrupted; no trial is made twice."""

from __future__ import annotations

import typer

from nicbench.bench_file import load
from nicbench.cli.conduct import conduct
from nicbench.cli.options import DEFAULT_OUTPUT, Json, NoProgress, Output, RunReference
from nicbench.cli.output import say
from nicbench.cli.run_reference import open_run
from nicbench.store.folder import BENCH


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("resume")(_resume)


def _resume(
    run: RunReference, output: Output = DEFAULT_OUTPUT, json: Json = False, no_progress: NoProgress = False
) -> None:
    """Go on with an interrupted run, from its last trial."""
    folder = open_run(run, output)
    say(f"run folder: {folder.path}, {len(folder.journal.trials())} trials are kept")
    conduct(load(folder.path / BENCH), folder, as_json=json, with_progress=not no_progress)
