"""``nicbench report RUN``: builds the report again, from the run folder alone."""

from __future__ import annotations

from typing import Annotated

import typer

from nicbench.cli.conduct import build_report
from nicbench.cli.options import DEFAULT_OUTPUT, Json, Output, RunReference
from nicbench.cli.output import FORMAT, print_json, results, say
from nicbench.model.report_wishes import Layout
from nicbench.store.reference import open_run

_Layout = Annotated[
    Layout | None,
    typer.Option("--layout", help="How it is laid out.", show_default="as the bench file says, or `study`"),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("report")(_report)


def _report(run: RunReference, output: Output = DEFAULT_OUTPUT, layout: _Layout = None, json: Json = False) -> None:
    """Build a run's report again and print where it is."""
    folder = open_run(run, output)
    for difference in folder.differences():
        say(f"warning: {difference}")
    path = build_report(folder, layout)
    if json:
        print_json({"format": FORMAT, "report": str(path)})
    else:
        results().print(str(path), markup=False, soft_wrap=True)
