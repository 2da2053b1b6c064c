"""``nicbench list``: the runs there are, one row each, and the search among them. A damaged run is a row too."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from nicbench.cli.options import DEFAULT_OUTPUT, Json, Output
from nicbench.cli.output import FORMAT, results, say
from nicbench.cli.run_index import runs_under
from nicbench.store.headline import RunHeadline
from nicbench.store.search import Search, found, moment
from nicbench.visible import visible_in_json

_WIDE: Final = 120
"""Columns that a table of runs takes, whose names are long; a narrower terminal has some lines for each."""
_MOST_FOLDED: Final = 200
"""Runs whose table is fitted to the terminal; more of them are printed as they are, for fitting takes its time."""
_HEADS: Final = ("run", "date (UTC)", "title", "verdict", "tags", "headline")


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("list")(_list)


_Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="WORD...", help="Only runs with these words: in title, id, tags, cards, kernel, methods."),
]
_Card = Annotated[list[str] | None, typer.Option("--card", help="Only of a card with this in its name or PCI number.")]
_Kernel = Annotated[list[str] | None, typer.Option("--kernel", help="Only of this kernel: 6.1 is 6.1.90, not 6.18.")]
_Driver = Annotated[list[str] | None, typer.Option("--driver", help="Only of a driver with this in its name.")]
_Tag = Annotated[list[str] | None, typer.Option("--tag", help="Only with this tag.")]
_MethodOf = Annotated[list[str] | None, typer.Option("--method", help="Only with results of this method.")]
_Since = Annotated[str | None, typer.Option("--since", metavar="DATE", help="Only from 2026, 2026-01, 2026-01-31 on.")]
_Until = Annotated[str | None, typer.Option("--until", metavar="DATE", help="Only until then, that day included.")]
_Rebuild = Annotated[bool, typer.Option("--rebuild", help="Make the index of the runs anew from their folders.")]


def _list(
    words: _Words = None,
    card: _Card = None,
    kernel: _Kernel = None,
    driver: _Driver = None,
    tag: _Tag = None,
    method: _MethodOf = None,
    since: _Since = None,
    until: _Until = None,
    rebuild: _Rebuild = False,
    output: Output = DEFAULT_OUTPUT,
    json: Json = False,
) -> None:
    """List the runs under --output, oldest first, or search among them."""
    search = Search(
        words=tuple(words or ()),
        cards=tuple(card or ()),
        kernels=tuple(kernel or ()),
        drivers=tuple(driver or ()),
        tags=tuple(tag or ()),
        methods=tuple(method or ()),
        since=moment(since, "--since") if since else None,
        until=moment(until, "--until") if until else None,
    )
    every = runs_under(output, rebuild=rebuild).runs
    runs = found(every, search)
    if json:
        _print_json(runs)
    elif not every:
        say(f"no runs in {output}; `nicbench run BENCH.yaml` makes one")
    elif not runs:
        say(f"none of the {len(every)} runs in {output} is like that; `nicbench list` shows them all")
    else:
        _print(runs)


def _print_json(runs: Sequence[RunHeadline]) -> None:
    """One document with a run on each line: indented, ten thousand runs would take a second."""
    rows = ",\n".join(json_format.dumps(run.plain(), ensure_ascii=False) for run in runs)
    sys.stdout.write(visible_in_json(f'{{"format": "{FORMAT}", "runs": [\n{rows}\n]}}\n'))
    sys.stdout.flush()


def _print(runs: Sequence[RunHeadline]) -> None:
    rows = [_row(run) for run in runs]
    shown = [number for number, head in enumerate(_HEADS) if head != "tags" or any(row[number] for row in rows)]
    if len(rows) > _MOST_FOLDED:
        _print_long([[row[number] for number in shown] for row in (_HEADS, *rows)])
        return
    from rich.markup import escape  # here: ten thousand runs are listed before rich is loaded
    from rich.table import Table

    console = results()
    if console.width < _WIDE:
        for name, started, title, state, tags, text in rows:
            console.print(f"[bold]{escape(name)}[/]", soft_wrap=True)
            console.print(escape(f"  {started}  {state}  {title}{f'  [{tags}]' if tags else ''}"), soft_wrap=True)
            console.print(escape(f"  {text}"), soft_wrap=True)
        return
    table = Table(header_style="bold")
    for number in shown:
        table.add_column(_HEADS[number], overflow="fold")
    for row in rows:
        table.add_row(*(escape(row[number]) for number in shown))
    console.print(table)


def _print_long(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    line = "  ".join(f"%-{width}s" for width in widths)
    sys.stdout.write("".join(f"{(line % tuple(row)).rstrip()}\n" for row in rows))
    sys.stdout.flush()


def _trouble(told: str) -> str:
    return "of a newer nicbench" if "newer nicbench" in told and not told.startswith("damaged") else "damaged"


def _row(run: RunHeadline) -> tuple[str, str, str, str, str, str]:
    state = run.verdict if run.verdict and run.finished else f"unfinished, {run.trials} trials"
    return (
        run.run_id,
        (run.started or "-")[:16].replace("T", " "),
        run.title or "-",
        _trouble(run.trouble) if run.trouble else state,
        ", ".join(run.tags),
        run.trouble or run.headline or "-",
    )
