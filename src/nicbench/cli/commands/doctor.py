"""``nicbench doctor``: what this machine has and lacks, and the command that mends it."""

from __future__ import annotations

import typer

from nicbench.cli.options import Json


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("doctor")(_doctor)


def _doctor(json: Json = False) -> None:
    """Check that this machine has what nicbench needs; exit status 3 where something is missing."""
