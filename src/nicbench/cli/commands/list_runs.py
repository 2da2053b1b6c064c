"""``nicbench list``: the runs there are, one row each. A damaged run is a row too."""

from __future__ import annotations

from typing import Any, Final

import typer
from rich.markup import escape
from rich.table import Table

from nicbench.cli.options import DEFAULT_OUTPUT, Json, Output
from nicbench.cli.output import FORMAT, print_json, results, say
from nicbench.cli.summary_table import headline
from nicbench.errors import NicbenchError
from nicbench.store.folder import RunFolder
from nicbench.store.listing import RunHeadline, list_runs

_WIDE: Final = 120
"""Columns that a table of runs takes, whose names are long; a narrower terminal has some lines for each."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("list")(_list)


def _list(output: Output = DEFAULT_OUTPUT, json: Json = False) -> None:
    """List the runs under --output, oldest first."""
    runs = [(run, _headline(run)) for run in list_runs(output)]
    if json:
        print_json({"format": FORMAT, "runs": [_plain(run, text) for run, text in runs]})
        return
    if not runs:
        say(f"no runs in {output}; `nicbench run BENCH.yaml` makes one")
        return
    console = results()
    rows = [_row(run, text) for run, text in runs]
    if console.width < _WIDE:
        for name, started, title, state, text in rows:
            console.print(f"[bold]{name}[/]", soft_wrap=True)
            console.print(f"  {started}  {state}  {title}", soft_wrap=True)
            console.print(f"  {text}", soft_wrap=True)
        return
    table = Table(header_style="bold")
    for column in ("run", "date (UTC)", "title", "verdict", "headline"):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _row(run: RunHeadline, text: str | None) -> tuple[str, str, str, str, str]:
    state = run.verdict.value if run.verdict and run.finished else f"unfinished, {run.trials} trials"
    return (
        escape(run.run_id),
        _to_the_minute(run.started),
        escape(run.title or "-"),
        "damaged" if run.trouble else state,
        escape(run.trouble or text or "-"),
    )


def _headline(run: RunHeadline) -> str | None:
    try:
        summary = RunFolder.open(run.path).summary()
    except NicbenchError:
        return None  # the row says what is wrong with the folder
    return headline(summary) if summary is not None else None


def _to_the_minute(wall_time: str | None) -> str:
    return escape(wall_time[:16].replace("T", " ")) if wall_time else "-"


def _plain(run: RunHeadline, text: str | None) -> dict[str, Any]:
    return {**run.model_dump(mode="json"), "headline": text}
