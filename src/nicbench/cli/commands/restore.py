"""``nicbench restore RUN``: undoes what a run left behind when it was killed."""

from __future__ import annotations

import typer

from nicbench.cli.interruption import run_to_the_end
from nicbench.cli.options import DEFAULT_OUTPUT, Output, RunReference
from nicbench.cli.output import results
from nicbench.cli.run_reference import LATEST, open_run
from nicbench.tuning.restore import restore


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("restore")(_restore)


def _restore(run: RunReference, output: Output = DEFAULT_OUTPUT) -> None:
    """Undo what a killed run changed on this machine; the folder of the run may be gone."""
    reference = str(open_run(run, output).path) if run == LATEST else run
    for sentence in run_to_the_end(restore(reference)):
        results().print(sentence, markup=False, soft_wrap=True)
