"""``nicbench restore RUN``, or ``--all``: undoes what killed runs left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nicbench.cli import completion
from nicbench.cli.failure import run_to_the_end
from nicbench.cli.options import DEFAULT_RUNS, RunsFolder
from nicbench.cli.output import results
from nicbench.core.errors import NotReadyError, UsageError
from nicbench.store.listing import LATEST, open_run
from nicbench.tuning.lock import forget_dead_holder, is_locked_by
from nicbench.tuning.record import RUNTIME_FOLDER, record_path
from nicbench.tuning.restore import find_unrestored_runs, restore, restore_stale, run_id_of

_Run = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN",
        help="A run's folder, its id under --runs, or `latest`.",
        show_default=False,
        autocompletion=completion.runs,
    ),
]
_All = Annotated[bool, typer.Option("--all", help="Undo what every killed run left on this machine.")]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("restore")(_restore)


def _restore(run: _Run = None, runs_folder: RunsFolder = DEFAULT_RUNS, all_runs: _All = False) -> None:
    """Undo what a killed run changed on this machine, even if its run folder is gone."""
    if (run is None) != all_runs:
        raise UsageError("name a run, or give --all", next_step="nicbench list shows the runs")
    if run is None:
        _restore_all()
        return
    reference = _reference(run, runs_folder)
    for sentence in run_to_the_end(restore(reference, RUNTIME_FOLDER)):
        results().print(sentence, markup=False, soft_wrap=True)
    # The lock goes last: the next run finds changes that are not undone by the lock as well.
    run_id = run_id_of(reference)
    if not record_path(RUNTIME_FOLDER, run_id).exists() and forget_dead_holder(run_id, RUNTIME_FOLDER):
        results().print(f"{run_id}: its lock of this machine was removed", markup=False, soft_wrap=True)


def _restore_all() -> None:
    """Undoes what every dead run left; NotReadyError where some of it could not be undone."""
    for sentence in run_to_the_end(restore_stale(RUNTIME_FOLDER)):
        results().print(sentence, markup=False, soft_wrap=True)
    left = find_unrestored_runs(RUNTIME_FOLDER)
    if left:
        step = "undo by hand what the record of the run names, or restart the machines that it changed"
        raise NotReadyError("changes of killed runs are not undone", place=", ".join(left), next_step=step)


def _reference(run: str, runs_folder: Path) -> str:
    """Finds the run by its traces on this machine, or else by its folder; UsageError where there is neither."""
    if run != LATEST:
        run_id = run_id_of(run)
        if _has_traces(run_id):
            return run
    folder = open_run(run, runs_folder, damaged=True)  # its changes are undone whatever became of its results
    if folder.is_imported:
        raise UsageError(
            "this run was imported, not measured by nicbench: it changed nothing that could be restored",
            place=str(folder.path),
            next_step="name a run that was measured; nicbench list shows which were",
        )
    return str(folder.path)


def _has_traces(run_id: str) -> bool:
    """Whether it may have changed this machine. NotReadyError where only root can see that."""
    try:
        return record_path(RUNTIME_FOLDER, run_id).parent.is_dir() or is_locked_by(run_id, RUNTIME_FOLDER)
    except PermissionError as error:
        raise NotReadyError(
            "only root can see what a run changed", place=str(RUNTIME_FOLDER), next_step="run this with sudo"
        ) from error
