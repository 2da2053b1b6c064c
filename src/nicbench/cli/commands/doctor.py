"""``nicbench doctor``: what this machine has and lacks, and the command that mends it."""

from __future__ import annotations

import typer

from nicbench.cli.interruption import run_to_the_end
from nicbench.cli.options import Json
from nicbench.cli.output import FORMAT, print_json, results


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("doctor")(_doctor)


def _doctor(json: Json = False) -> None:
    """Check that this machine has what nicbench needs; exit status 3 where something is missing."""
