"""``nicbench inventory``: shows the facts of this machine, or of the machines of a bench file. Changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nicbench.bench_file import load
from nicbench.cli.failure import run_to_the_end
from nicbench.cli.options import Json, Redact
from nicbench.cli.output import FORMAT, print_json, results
from nicbench.stages.hosts import inventory_of


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("inventory")(_inventory)


_Bench = Annotated[
    Path | None,
    typer.Argument(
        metavar="BENCH.yaml", help="Show the hosts of this bench file instead of this machine.", show_default=False
    ),
]


def _inventory(bench: _Bench = None, json: Json = False, redact: Redact = False) -> None:
    """Print the facts of this machine that a report discloses."""
    found = run_to_the_end(inventory_of(None if bench is None else load(bench), redact=redact))
    if json:
        print_json({"format": FORMAT, "hosts": found})
    else:
        _print(results(), found)


def _print(console: Console, found: dict[str, Any]) -> None:
    from nicbench.report.facts import columns, label_of  # imported here, as charts take a second to load
    from nicbench.report.system_table import system_table

    for name, facts in found.items():
        table = system_table({name: facts})
        shown = Table(title=escape(name), title_justify="left", box=None, pad_edge=False, show_header=False)
        shown.add_column(style="bold")
        shown.add_column(overflow="fold")
        for row in table.rows:
            shown.add_row(escape(row.label), escape(row.texts[0] or "unknown"))
        console.print(shown)
        if table.unknown:
            console.print("\nNot known:")
            for label, reason in table.unknown:
                console.print(f"  {escape(label)}: {escape(reason)}", soft_wrap=True)
        _, rows = columns({name: facts}, label_of)
        console.print(f"\nEvery fact: {len(rows)}")
        every = Table(box=None, pad_edge=False, show_header=False)
        every.add_column(style="dim", overflow="fold", ratio=2)
        every.add_column(overflow="fold", ratio=3)
        for label, texts in rows:
            every.add_row(escape(label), escape(texts[0]))
        console.print(every)
