"""``nicbench diff RUN RUN``: shows what differs between two runs, most important first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from textwrap import wrap
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from nicbench.cli import completion
from nicbench.cli.options import DEFAULT_RUNS, Json, RunsFolder
from nicbench.cli.output import FORMAT, print_json, results
from nicbench.compare.run_differences import NOT_RECORDED, Difference, Differences, find_differences, shorten_apart
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
_All = Annotated[bool, typer.Option("--all", help="Show every difference, with its values in full.")]


def _diff(
    one: _One, other: _Other, runs_folder: RunsFolder = DEFAULT_RUNS, every: _All = False, json: Json = False
) -> None:
    """Show which settings differ between two runs; those that change results most come first."""
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
        _print(results(), folders, found, every=every)


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


_WIDTH: Final = 80
_PATH, _VALUE = 38, 19
"""Columns of a path and of each value; with two spaces before each value they fill the width."""
_LONGEST: Final = 2000
_MOST_OF_KIND: Final = 4
_MOST_KINDS: Final = 8


def _print(console: Console, folders: list[RunFolder], found: Differences, *, every: bool) -> None:
    """Prints the differences by their kind, the kinds that change results most first, the rest as a count."""
    one, other = (folder.run_id for folder in folders)
    for sentence in found.lacking:
        _line(console, sentence)
    if found.settings:
        count = len(found.settings)
        _line(console, f"A  {one}\nB  {other}\n")
        settings = "1 setting differs" if count == 1 else f"{count} settings differ; those that change results most"
        _line(console, f"{settings}{'' if count == 1 else ' come first'}.\n")
        kinds = [list(rows) for _, rows in groupby(found.settings, key=lambda row: row.rank)]
        _line(console, f"{'':{_PATH}}  {'A':{_VALUE}}  B")
        for rows in kinds if every else kinds[:_MOST_KINDS]:
            _print_kind(console, rows, every=every)
        if rest := [] if every else kinds[_MOST_KINDS:]:
            few = ", ".join(rows[0].why for rows in rest[:2])
            _wrapped(console, f"{sum(map(len, rest))} more change results less: {few}{', ...' if rest[2:] else ''}")
    elif found.equal:
        _line(console, f"{one} and {other} were made the same way, with the same settings.")
    folded = 0
    for words, apart_rows in (
        ("Identities of the hardware (serial numbers, addresses)", found.identities),
        ("Redacted in at least one run, not compared", found.redacted),
        ("Different in every run, and not settings", found.volatile),
    ):
        if apart_rows and every:
            _line(console, f"\n{words}: {', '.join(dict.fromkeys(row.path for row in apart_rows))}")
        folded += len(apart_rows)
    if not every and (folded or found.settings):
        differ = (
            "1 more value differs that is no setting"
            if folded == 1
            else f"{folded} more values differ that are no settings"
        )
        apart = f"{differ} (identities, readings). " if folded else ""
        _wrapped(console, f"{apart}`--all` shows everything in full.")


def _print_kind(console: Console, rows: Sequence[Difference], *, every: bool) -> None:
    """Prints the differences of one kind; where there are many, first those that both runs have a value for."""
    why = rows[0].why
    _line(console, f"{why[:1].upper()}{why[1:]}")
    in_both = [row for row in rows if NOT_RECORDED not in row.values]
    shown = rows if every or len(rows) <= _MOST_OF_KIND else (in_both or rows)[:_MOST_OF_KIND]
    for row in shown:
        path = f"  {row.path}{f' ({_and_list(row.places)})' if row.places else ''}"
        texts = shorten_apart(row.values, row.path, _LONGEST if every else _VALUE)
        if max(map(len, texts)) > _VALUE:
            _line(console, f"{path}\n    A: {texts[0]}\n    B: {texts[1]}")
        elif len(path) > _PATH:
            _line(console, f"{_cut(path)}\n{'':{_PATH}}  {texts[0]:{_VALUE}}  {texts[1]}".rstrip())
        else:
            _line(console, f"{path:{_PATH}}  {texts[0]:{_VALUE}}  {texts[1]}")
    if len(shown) < len(rows):
        _line(console, f"  and {len(rows) - len(shown)} more")


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _wrapped(console: Console, text: str) -> None:
    for line in wrap(text, _WIDTH):
        _line(console, line)


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _and_list(places: Iterable[str]) -> str:
    return ", ".join(places)
