"""``nicbench tune BENCH.yaml``: shows what a run would tune on its hosts. Changes nothing."""

from __future__ import annotations

import typer

from nicbench.bench_file import BenchFile, load
from nicbench.cli.failure import run_to_the_end
from nicbench.cli.options import BenchPath, Json
from nicbench.cli.output import print_json, results
from nicbench.cli.plan_table import print_tuning, tuning_document
from nicbench.core.errors import NotReadyError
from nicbench.core.tuning import Outcome


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("tune")(_tune)


def _tune(bench: BenchPath, json: Json = False) -> None:
    """Print what a run would tune, and what it could not; exit status 3 where the run would be refused."""
    show_tuning(load(bench), as_json=json)


def show_tuning(bench: BenchFile, *, as_json: bool) -> None:
    """Prints the dry run of tuning, also for ``run --dry-run``."""
    from nicbench.stages.tuning import plan_settings  # imported here, as it loads the parts of a run

    settings = run_to_the_end(plan_settings(bench))
    if as_json:
        print_json(tuning_document(settings))
    else:
        print_tuning(results(), settings)
    if any(setting.outcome is Outcome.FAILED for setting in settings):
        raise typer.Exit(NotReadyError.exit_status)
