"""``nicbench validate BENCH.yaml``: reads and checks a bench file, and prints the plan. Touches no host."""

from __future__ import annotations

import typer

from nicbench.bench_file import load
from nicbench.cli.options import BenchPath, Json
from nicbench.cli.output import print_json, results
from nicbench.cli.plan_table import plan_document, print_plan


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("validate")(_validate)


def _validate(bench: BenchPath, json: Json = False) -> None:
    """Check a bench file and print what it would do."""
    bench_file = load(bench)
    if json:
        print_json(plan_document(bench_file))
    else:
        print_plan(results(), bench_file)
