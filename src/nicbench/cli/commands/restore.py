"""``nicbench restore RUN``: undoes what a killed run left behind."""

from __future__ import annotations

from pathlib import Path

import typer

from nicbench.cli.failure import run_to_the_end
from nicbench.cli.options import DEFAULT_RUNS, RunReference, RunsFolder
from nicbench.cli.output import results
from nicbench.core.errors import NotReadyError, UsageError
from nicbench.store.listing import LATEST, open_run
from nicbench.tuning.lock import forget_dead_holder, is_locked_by
from nicbench.tuning.record import RUNTIME_FOLDER, record_path
from nicbench.tuning.restore import restore, run_id_of


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("restore")(_restore)


def _restore(run: RunReference, runs_folder: RunsFolder = DEFAULT_RUNS) -> None:
    """Undo what a killed run changed on this machine, even if its run folder is gone."""
    reference = _reference(run, runs_folder)
    for sentence in run_to_the_end(restore(reference, RUNTIME_FOLDER)):
        results().print(sentence, markup=False, soft_wrap=True)
    # The lock goes last: the next run finds changes that are not undone by the lock as well.
    run_id = run_id_of(reference)
    if not record_path(RUNTIME_FOLDER, run_id).exists() and forget_dead_holder(run_id, RUNTIME_FOLDER):
        results().print(f"{run_id}: its lock of this machine was removed", markup=False, soft_wrap=True)


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
