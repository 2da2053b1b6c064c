"""``nicbench tune BENCH.yaml``: shows what a run would tune on its hosts. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from nicbench.bench_file import BenchFile, load
from nicbench.cli.failure import run_to_the_end
from nicbench.cli.options import BenchPath, Json
from nicbench.cli.output import print_json, results, say
from nicbench.cli.plan_table import print_tuning, tuning_document
from nicbench.core.errors import NotReadyError
from nicbench.core.tuning import Outcome

if TYPE_CHECKING:
    from nicbench.stages.hosts import Presence


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("tune")(_tune)


def _tune(bench: BenchPath, json: Json = False) -> None:
    """Print what a run would tune; exit status 3 if the run would be refused."""
    show_tuning(load(bench), as_json=json)


def show_tuning(bench: BenchFile, *, as_json: bool, presence: Presence | None = None) -> None:
    """Prints the dry run of tuning, also for ``run --dry-run``, which has looked for what the file names."""
    from nicbench.stages.tuning import plan_settings  # imported here, as it loads the parts of a run

    is_refused = presence is not None and bool(presence.absent)
    try:
        settings = run_to_the_end(plan_settings(bench))
    except NotReadyError as error:
        if not is_refused:
            raise
        settings = None  # what lacks is told already
        reason = error.message
    if as_json:
        print_json(tuning_document(settings or (), presence))
    elif settings is not None:
        print_tuning(results(), settings)
    elif any(each.tuning for each in bench.configurations):
        say(f"what would be tuned cannot be determined: {reason}")
    if is_refused or settings is None or any(setting.outcome is Outcome.FAILED for setting in settings):
        raise typer.Exit(NotReadyError.exit_status)
