"""``nicbench reference list|show|import``: published results that come with nicbench."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nicbench.cli import completion
from nicbench.cli.imports import keep_import
from nicbench.cli.options import DEFAULT_RUNS, Json, RunsFolder
from nicbench.cli.output import FORMAT, print_json, results, say
from nicbench.importing.cells import Sheet
from nicbench.importing.reference.data_sets import (
    DataSet,
    PlacedErratum,
    as_run,
    command_line,
    data_set,
    data_sets,
    errata_of,
    plain,
    sheet_of,
)

MOST_ROWS_SHOWN = 40

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A name that `nicbench reference list` shows.",
        show_default=False,
        autocompletion=completion.data_sets,
    ),
]
AllRows = Annotated[bool, typer.Option("--all", help=f"Show every row, not only the first {MOST_ROWS_SHOWN}.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    references = typer.Typer(help="Published results to compare with.", no_args_is_help=True)
    references.command("list")(_list)
    references.command("show")(_show)
    references.command("import")(_import)
    app.add_typer(references, name="reference")


def _list(json: Json = False) -> None:
    """List the published results that come with nicbench."""
    every = tuple(data_sets().values())
    if json:
        print_json({"format": FORMAT, "data_sets": [_headline(one) for one in every]})
        return
    table = Table(header_style="bold")
    for column in ("name", "year", "method", "title"):
        table.add_column(column, overflow="fold", no_wrap=column == "name")
    for one in every:
        method = one.reading.method if one.reading else "-"
        table.add_row(one.name, str(one.year), method, escape(one.title))
    results().print(table)
    say("method `-`: cannot be imported as results; `nicbench reference show NAME` says why")


def _show(name: Name, json: Json = False, every_row: AllRows = False) -> None:
    """Show a data set: its source, its rows as printed, and its errata."""
    chosen = data_set(name)
    if json:
        print_json({"format": FORMAT, **plain(chosen)})
        return
    console = results()
    for head, text in _facts(chosen):
        console.print(f"[bold]{head:<9}[/] {escape(text)}", soft_wrap=True)
    sheet = sheet_of(chosen)
    shown = len(sheet.rows) if every_row else min(len(sheet.rows), MOST_ROWS_SHOWN)
    _print_rows(console, sheet, shown)
    if shown < len(sheet.rows):
        say(f"{len(sheet.rows) - shown} more rows: --all shows them")
    _print_errata(console, errata_of(chosen))


def _import(name: Name, runs_folder: RunsFolder = DEFAULT_RUNS, json: Json = False) -> None:
    """Import a data set as a run, marked as not measured by nicbench."""
    made = as_run(data_set(name))
    keep_import(runs_folder, made.files, made.summary, made.options, as_json=json)


def _headline(one: DataSet) -> dict[str, object]:
    method = one.reading.method if one.reading else None
    kept = one.model_dump(include={"name", "title", "year", "source", "about", "why_not"})
    return {**kept, "method": method, "rows": len(sheet_of(one).rows)}


def _facts(one: DataSet) -> list[tuple[str, str]]:
    facts = [("title", one.title), ("source", f"{one.source} ({one.year})"), ("what", one.about)]
    facts += [("note", note) for note in one.notes]
    command = command_line(one)
    if one.reading is None or command is None:
        return [*facts, ("no run", one.why_not or "")]
    return [*facts, ("method", one.reading.method), ("as read", command)]


def _print_rows(console: Console, sheet: Sheet, shown: int) -> None:
    table = Table(header_style="bold")
    for head in sheet.heads:
        table.add_column(escape(head.text), overflow="fold")
    for row in sheet.rows[:shown]:
        table.add_row(*(escape(cell.text) or "-" for cell in row))
    console.print(table)


def _print_errata(console: Console, errata: tuple[PlacedErratum, ...]) -> None:
    if not errata:
        console.print("errata: none")
        return
    table = Table(header_style="bold", title="Errata", title_justify="left", title_style="bold")
    for head in ("line:column", "of", "printed", "computed", "reason"):
        table.add_column(head, overflow="fold")
    for one in errata:
        table.add_row(
            one.place, escape(one.column), escape(one.printed), escape(one.computed or "-"), escape(one.reason)
        )
    console.print(table)
