"""``nicbench diff RUN RUN``: shows what differs between two runs, most important first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nicbench.cli import completion
from nicbench.cli.options import DEFAULT_RUNS, Json, RunsFolder
from nicbench.cli.output import FORMAT, print_json, results
from nicbench.compare.importance import NOT_RECORDED, shorten
from nicbench.compare.run_differences import Difference, Differences, find_differences
from nicbench.core.errors import UsageError
from nicbench.store.folder import RunFolder
from nicbench.store.listing import open_run


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("diff")(_diff)


_One = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="A run's folder, its id under --runs, or `latest`.", autocompletion=completion.runs
    ),
]
_Other = Annotated[
    str, typer.Argument(metavar="RUN", help="The run to compare it with.", autocompletion=completion.runs)
]


def _diff(one: _One, other: _Other, runs_folder: RunsFolder = DEFAULT_RUNS, json: Json = False) -> None:
    """Show which settings differ between two runs, most influential first."""
    folders = [open_run(reference, runs_folder) for reference in (one, other)]
    if folders[0].path.resolve() == folders[1].path.resolve():
        raise UsageError(
            "both names refer to the same run",
            place=str(folders[0].path),
            next_step="name another one; `nicbench list` shows them",
        )
    for folder in folders:
        if folder.is_imported:
            raise UsageError(
                "this run was imported, not measured by nicbench: nothing is known of its machines",
                place=str(folder.path),
                next_step="name two runs that nicbench measured; `nicbench list` shows them",
            )
    found = find_differences(*folders)
    if json:
        print_json(_document(folders, found))
    else:
        _print(results(), folders, found)


def _document(folders: list[RunFolder], found: Differences) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "runs": [folder.run_id for folder in folders],
        "equal": found.equal,
        "differences": [_row(row) for row in found.settings],
        "identities": [_row(row) for row in found.identities],
        "volatile": [_row(row) for row in found.volatile],
        "redacted": [_row(row) for row in found.redacted],
        "lacking": list(found.lacking),
    }


def _row(row: Difference) -> dict[str, Any]:
    return {
        "path": row.path,
        "places": list(row.places),
        "values": [None if value is NOT_RECORDED else value for value in row.values],
        "recorded": [value is not NOT_RECORDED for value in row.values],
        "importance": row.rank,
        "why": row.why,
    }


def _print(console: Console, folders: list[RunFolder], found: Differences) -> None:
    one, other = (folder.run_id for folder in folders)
    for sentence in found.lacking:
        console.print(escape(sentence))
    if found.settings:
        console.print(f"A is {escape(one)}\nB is {escape(other)}\n")
        count = len(found.settings)
        console.print(f"{count} difference{'s' if count > 1 else ''}, most influential first:\n")
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for head in ("what", "where", "A", "B", "why it matters"):
            table.add_column(head, overflow="fold")
        for row in found.settings:
            texts = [shorten(value, row.path) for value in row.values]
            table.add_row(*map(escape, (row.path, _where(row), *texts, row.why)))
        console.print(table)
    elif found.equal:
        console.print(f"{escape(one)} and {escape(other)} were made the same way, with the same settings")
    for words, rows in (
        ("Different hardware units", found.identities),
        ("Redacted in at least one run, not compared", found.redacted),
        ("Different in every run, and not settings", found.volatile),
    ):
        if rows:
            console.print(f"\n{words}: {escape(', '.join(dict.fromkeys(row.path for row in rows)))}", soft_wrap=True)


def _where(row: Difference) -> str:
    return _list_words(row.places) or "the run"


def _list_words(places: Iterable[str]) -> str:
    return ", ".join(places)
