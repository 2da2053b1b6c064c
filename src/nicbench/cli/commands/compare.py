"""``nicbench compare`` and ``nicbench diff``: show runs side by side, and what differs between two."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nicbench.cli import completion
from nicbench.cli.options import (
    DEFAULT_RUNS,
    Formats,
    Json,
    LakeOption,
    RunsFolder,
    in_lake,
    kinds,
    runs_called,
    tagged_runs,
)
from nicbench.cli.output import FORMAT, print_json, print_line, results, say
from nicbench.core.errors import UsageError
from nicbench.report import Format

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from nicbench.compare.entries import Entry, Settings
    from nicbench.compare.run_differences import Difference, Differences
    from nicbench.core.result import Value
    from nicbench.lake.place import Lake
    from nicbench.report.entries import Page
    from nicbench.report.entry_values import ValueCell, ValueTable
    from nicbench.store.folder import RunFolder

# ``nicbench compare RUN RUN...``: shows runs and published results side by side, what differs between them first.

PAGE: Final = "comparison"

_Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="[NAME=]RUN[:CONFIGURATION] ...",
        help="Folder, id under --runs, `latest`, tag (its runs together) or `reference:NAME`. NAME= names it.",
        show_default=False,
        autocompletion=completion.comparable,
    ),
]
_Out = Annotated[
    Path,
    typer.Option(
        "--out", metavar="FILE|DIR", help=f"The file of the page, or its folder, for {PAGE}.html; created if missing."
    ),
]
_Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The page's title.")]
_Force = Annotated[
    bool, typer.Option("--force", help="Compare runs that are not comparable anyway; the page says so in red.")
]
_PerPort = Annotated[
    bool, typer.Option("--per-port", help="Divide sums over ports by the number of ports; the page says so.")
]


def _compare(
    runs: _Runs,
    out: _Out = Path(),
    title: _Title = None,
    force: _Force = False,
    per_port: _PerPort = False,
    formats: Formats = None,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    lake: LakeOption = None,
    json: Json = False,
) -> None:
    # Imported here: these take a second to load, and no other command needs them.
    from nicbench.lake.place import find_lake
    from nicbench.report.comparison_page import compare
    from nicbench.report.comparison_page import document as page_document
    from nicbench.report.formats import write

    stem, wanted = _place(out, formats)
    page = compare(
        runs,
        runs_folder,
        partial(_find_tagged, runs_folder, find_lake(runs_folder, lake)),
        command=shlex.join(["nicbench", *sys.argv[1:]]),
        title=title,
        force=force,
        per_port=per_port,
    )
    paths = write(page_document(page), wanted, stem, f"comparison of {len(page.entries)} results")
    if json:
        print_json(document(page, [str(path) for path in paths.values()]))
    else:
        print_comparison(results(), page)
    say(f"\ncomparison: {', '.join(str(path) for path in paths.values())}")


def _find_tagged(runs_folder: Path, lake: Lake | None, word: str) -> list[Path]:
    """Returns the runs with the tag, oldest first, or the one of this id that the lake knows."""
    from nicbench.compare.entries import MOST

    found = in_lake(word, runs_folder, lake)
    return [Path(found)] if found != word else tagged_runs(word, runs_folder, lake, MOST + 1)


def _place(out: Path, formats: list[str] | None) -> tuple[Path, tuple[Format, ...]]:
    """Returns the path without its suffix, and the formats. UsageError where the files would be in a run folder.

    A file's suffix gives the format where none is asked for.
    """
    from nicbench.store.files import JOURNAL
    from nicbench.store.folder import is_run_folder

    endings = {f".{kind.value}": kind for kind in Format}
    is_file = not out.is_dir() and out.suffix != ""
    if is_file and out.suffix not in endings:
        raise UsageError(
            f"{out.suffix} is no format of a page",
            place=str(out),
            next_step=f"a folder, or a file that ends in {', '.join(endings)}",
        )
    stem = out.with_suffix("") if is_file else out / PAGE
    for folder in stem.resolve().parents:
        if is_run_folder(folder) and (folder / JOURNAL).exists():  # a bench file alone does not make a run folder
            raise UsageError(
                "is a run's folder: a comparison is no part of a run",
                place=str(folder),
                next_step="name another folder or file by --out",
            )
    return stem, (endings[out.suffix],) if is_file and formats is None else kinds(formats)


# A comparison on the terminal, and for programs as JSON.

# A comparison for programs: entries, what speaks against comparing them, what differs, every main value.


def document(page: Page, pages: Sequence[str]) -> dict[str, Any]:
    """Numbers are those of the results, in the units that their names carry."""
    found, known = page.found, page.known
    return {
        "format": FORMAT,
        "page": pages[0],
        "pages": list(pages),
        "title": page.report.title,
        "answer": [page.report.headline, *page.report.details],
        "comparable": not page.forced,
        "not_comparable": list(page.forced),
        "notes": list(page.told),
        "entries": [_entry(entry) for entry in found.entries],
        "differences": [_setting(row, known) for row in (*known.main, *known.others)],
        "values": [
            {
                "test": table.test,
                "method": table.method,
                "scope": table.scope,
                "value": table.value,
                "parameters": dict(parameters),
                "entries": {
                    name: _plain(cells[place].value) for name, cells in table.rows.items() if cells[place].result
                },
            }
            for table in page.tables
            for place, parameters in enumerate(table.parameters)
        ],
        "only": [
            {"test": point.test, "method": point.method, "parameters": dict(point.parameters), "entries": list(names)}
            for point, names in found.lonely.items()
        ],
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "run": entry.run_id,
        "of_tag": [part.run_id for part in entry.parts],
        "configuration": entry.configuration,
        "title": entry.title,
        "origin": entry.origin.value,
        "verdict": entry.verdict.value,
        "finished": entry.finished,
        "runs": entry.runs,
        "source": entry.imported.model_dump(mode="json", include={"source", "year", "device"})
        if entry.imported
        else None,
    }


def _setting(row: Difference, known: Settings) -> dict[str, Any]:
    from nicbench.compare.run_differences import NOT_RECORDED

    return {
        "path": row.path,
        "places": list(row.places),
        "values": {name: value for name, value in zip(known.of, row.values, strict=True) if value is not NOT_RECORDED},
        "importance": row.rank,
        "why": row.why,
    }


def _plain(value: Value) -> Any:
    from pydantic import BaseModel

    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


# A comparison on the terminal: what is compared, what speaks against it, and the main values side by side.


_MOST_SETTINGS = 8
_ACROSS = 7
"""Points of one table where entries are rows; more are further tables."""


def print_comparison(console: Console, page: Page) -> None:
    """In the order of the page."""
    from rich.markup import escape

    from nicbench.report.answer.of_comparison import FEW
    from nicbench.store.listing import clean

    for text in page.forced:
        console.print(f"[bold red]not comparable, forced:[/] {escape(clean(text))}", soft_wrap=True)
    print_line(page.report.headline, console)
    for text in page.report.details:
        print_line(text, console)
    console.print()
    for text in page.told:
        print_line(f"note: {clean(text)}", console)
    _settings(console, page)
    for table in page.tables:
        console.print(f"\n[bold]{escape(clean(f'{table.test}: {table.heading}, {table.scope}'))}[/]", soft_wrap=True)
        (_few if len(page.entries) <= FEW else _many)(console, table)
    for row in page.lonely:
        print_line(f"only in {clean(', '.join(row.names[:6]))}: {clean(row.words)}", console)


def _settings(console: Console, page: Page) -> None:
    from nicbench.store.listing import clean

    count = len(page.known.main)
    if not count:
        return
    console.print(f"\n{count} setting{'s differ' if count > 1 else ' differs'}, most influential first:")
    for row in page.settings[:_MOST_SETTINGS]:
        values = "; ".join(
            f"{clean(text)} ({clean(', '.join(names[:3]))}{'…' if len(names) > 3 else ''})"
            for text, names in row.groups[:4]
        )
        print_line(f"  {row.setting}: {values}", console)
    if count > _MOST_SETTINGS:
        console.print(f"  and {count - _MOST_SETTINGS} more, on the page")


def _few(console: Console, table: ValueTable) -> None:
    """A column for each entry."""
    from rich.markup import escape

    from nicbench.store.listing import clean

    shown = _empty()
    shown.add_column("")
    for name in table.rows:
        shown.add_column(escape(clean(name)), justify="right", overflow="fold")
    for place, point in enumerate(table.points):
        shown.add_row(escape(clean(point)), *(_cell(cells[place]) for cells in table.rows.values()))
    console.print(shown)


def _many(console: Console, table: ValueTable) -> None:
    """A row for each entry."""
    from rich.markup import escape

    from nicbench.store.listing import clean

    for first in range(0, len(table.points), _ACROSS):
        shown = _empty()
        shown.add_column("", overflow="fold")
        for point in table.points[first : first + _ACROSS]:
            shown.add_column(escape(clean(point)), justify="right", overflow="fold")
        for name, cells in table.rows.items():
            shown.add_row(escape(clean(name)), *(_cell(cell) for cell in cells[first : first + _ACROSS]))
        console.print(shown)


def _empty() -> Table:
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))


def _cell(cell: ValueCell) -> str:
    from rich.markup import escape

    return escape(cell.text) + ("*" if cell.result is not None and cell.result.verdict.value == "disturbed" else "")


# ``nicbench diff RUN RUN``: shows what differs between two runs, most important first.


_One = Annotated[
    str,
    typer.Argument(
        metavar="RUN|TAG",
        help="A run's folder, its id under --runs, `latest`, or a tag for its newest run.",
        autocompletion=completion.runs_and_tags,
    ),
]
_Other = Annotated[
    str,
    typer.Argument(metavar="RUN|TAG", help="The run to compare it with.", autocompletion=completion.runs_and_tags),
]
_All = Annotated[bool, typer.Option("--all", help="Show every difference, with its values in full.")]


def _diff(
    one: _One, other: _Other, runs_folder: RunsFolder = DEFAULT_RUNS, every: _All = False, json: Json = False
) -> None:
    from nicbench.compare.run_differences import find_differences  # imported here, as in _compare
    from nicbench.store.listing import open_run

    folders = [open_run(str(runs_called(reference, runs_folder)[-1]), runs_folder) for reference in (one, other)]
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
    from nicbench.compare.run_differences import NOT_RECORDED

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
        print_line(sentence, console)
    if found.settings:
        count = len(found.settings)
        print_line(f"A  {one}\nB  {other}\n", console)
        settings = "1 setting differs" if count == 1 else f"{count} settings differ; those that change results most"
        print_line(f"{settings}{'' if count == 1 else ' come first'}.\n", console)
        kinds = [list(rows) for _, rows in groupby(found.settings, key=lambda row: row.rank)]
        print_line(f"{'':{_PATH}}  {'A':{_VALUE}}  B", console)
        for rows in kinds if every else kinds[:_MOST_KINDS]:
            _print_kind(console, rows, every=every)
        if rest := [] if every else kinds[_MOST_KINDS:]:
            few = ", ".join(rows[0].why for rows in rest[:2])
            _wrapped(console, f"{sum(map(len, rest))} more change results less: {few}{', ...' if rest[2:] else ''}")
    elif found.equal:
        print_line(f"{one} and {other} were made the same way, with the same settings.", console)
    folded = 0
    for words, apart_rows in (
        ("Identities of the hardware (serial numbers, addresses)", found.identities),
        ("Redacted in at least one run, not compared", found.redacted),
        ("Different in every run, and not settings", found.volatile),
    ):
        if apart_rows and every:
            print_line(f"\n{words}: {', '.join(dict.fromkeys(row.path for row in apart_rows))}", console)
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
    from nicbench.compare.run_differences import NOT_RECORDED, cut, shorten_apart

    why = rows[0].why
    print_line(f"{why[:1].upper()}{why[1:]}", console)
    in_both = [row for row in rows if NOT_RECORDED not in row.values]
    shown = rows if every or len(rows) <= _MOST_OF_KIND else (in_both or rows)[:_MOST_OF_KIND]
    for row in shown:
        places = ", ".join(row.places)
        path = f"  {row.path} ({places})" if places else f"  {row.path}"
        texts = shorten_apart(row.values, row.path, _LONGEST if every else _VALUE)
        if max(map(len, texts)) > _VALUE:
            print_line(f"{path}\n    A: {texts[0]}\n    B: {texts[1]}", console)
        elif len(path) > _PATH:
            print_line(f"{cut(path, _WIDTH)}\n{'':{_PATH}}  {texts[0]:{_VALUE}}  {texts[1]}".rstrip(), console)
        else:
            print_line(f"{path:{_PATH}}  {texts[0]:{_VALUE}}  {texts[1]}", console)
    if len(shown) < len(rows):
        print_line(f"  and {len(rows) - len(shown)} more", console)


def _wrapped(console: Console, text: str) -> None:
    for line in wrap(text, _WIDTH):
        print_line(line, console)


COMMANDS = {"compare": _compare, "diff": _diff}
