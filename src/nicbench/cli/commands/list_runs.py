"""``nicbench list`` and ``nicbench tag``: list and search runs, and name them."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nicbench.cli import completion
from nicbench.cli.options import DEFAULT_RUNS, Json, LakeOption, RunReference, RunsFolder, runs_under
from nicbench.cli.output import FORMAT, print_json, print_line, print_table, results, say

if TYPE_CHECKING:
    from nicbench.store.listing import RunHeadline

# ``nicbench list``: lists the runs, or searches them, one row each; a damaged run has a row too.

_WIDE: Final = 120
"""The least width for a table of runs; on narrower terminals each run takes several lines."""
_MOST_FOLDED: Final = 200
"""The most runs whose table is fitted to the terminal, which is slow; more are printed without fitting."""
_MOST_OF_LAKE: Final = 1000
_HEADS: Final = ("run", "date (UTC)", "title", "verdict", "tags", "headline")


_Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WORD...", help="Words in title, id, tags, cards, kernel, drivers, methods, configurations."
    ),
]
_Card = Annotated[
    list[str] | None,
    typer.Option("--card", metavar="TEXT", help="Only runs with this card (part of its name or PCI ID)."),
]
_Kernel = Annotated[
    list[str] | None,
    typer.Option("--kernel", metavar="VERSION", help="Only runs of this kernel: 6.1 finds 6.1.90, not 6.18."),
]
_Driver = Annotated[
    list[str] | None, typer.Option("--driver", metavar="TEXT", help="Only runs with this driver (part of its name).")
]
_Tag = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="NAME", help="Only runs with this tag.", autocompletion=completion.tags),
]
_MethodOf = Annotated[
    list[str] | None,
    typer.Option(
        "--method", metavar="NAME", help="Only runs with results of this method.", autocompletion=completion.methods
    ),
]
_Since = Annotated[
    str | None, typer.Option("--since", metavar="DATE", help="Only runs since 2026, 2026-01, 2026-01-31.")
]
_Until = Annotated[str | None, typer.Option("--until", metavar="DATE", help="Only runs up to this date, inclusive.")]
_Last = Annotated[
    int | None,
    typer.Option("--last", metavar="NUMBER", min=1, help="Only the newest NUMBER runs (default for a lake: 1000)."),
]
_Rebuild = Annotated[bool, typer.Option("--rebuild", help="Rebuild the index from the run folders.")]


def _list(
    words: _Words = None,
    card: _Card = None,
    kernel: _Kernel = None,
    driver: _Driver = None,
    tag: _Tag = None,
    method: _MethodOf = None,
    since: _Since = None,
    until: _Until = None,
    last: _Last = None,
    rebuild: _Rebuild = False,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    lake: LakeOption = None,
    json: Json = False,
) -> None:
    from nicbench.lake.place import find_lake, find_together  # imported here, as completion needs no runs
    from nicbench.store.index import Search, moment

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
    own = runs_under(runs_folder, rebuild=rebuild).runs
    opened = find_lake(runs_folder, lake)
    found = find_together(own, opened, search, last or (_MOST_OF_LAKE if opened else None))
    runs, every = found.runs, found.every
    if json:
        _print_json(runs)
    elif not every:
        missing = "there is no folder" if not runs_folder.exists() else "no runs in"
        say(f"{missing} {runs_folder}; `nicbench run BENCH.yaml` makes one")
    elif not runs:
        say(f"none of the {every} runs in {runs_folder} matches; `nicbench list` shows all")
    else:
        _print(runs)
    if len(runs) < found.matching:
        say(f"the newest {len(runs)} of {found.matching} runs; `--last NUMBER` shows more")


def _print_json(runs: Sequence[RunHeadline]) -> None:
    """Prints one document with a run on each line: indenting ten thousand runs would take a second."""
    from nicbench.core.redaction import visible_in_json

    rows = ",\n".join(json_format.dumps(run.plain(), ensure_ascii=False) for run in runs)
    sys.stdout.write(visible_in_json(f'{{"format": "{FORMAT}", "runs": [\n{rows}\n]}}\n'))
    sys.stdout.flush()


def _print(runs: Sequence[RunHeadline]) -> None:
    rows = [_row(run) for run in runs]
    shown = [number for number, head in enumerate(_HEADS) if head != "tags" or any(row[number] for row in rows)]
    if len(rows) > _MOST_FOLDED:
        _print_long([[row[number] for number in shown] for row in (_HEADS, *rows)])
        return
    from rich.markup import escape  # imported here, as rich loads slowly and long lists do not need it

    console = results()
    if console.width < _WIDE:
        for name, started, title, state, tags, text in rows:
            console.print(f"[bold]{escape(name)}[/]", soft_wrap=True)
            print_line(f"  {started}  {state}  {title}{f'  [{tags}]' if tags else ''}", console)
            print_line(f"  {text}", console)
        return
    print_table(console, (_HEADS[number] for number in shown), ([row[number] for number in shown] for row in rows))


def _print_long(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    line = "  ".join(f"%-{width}s" for width in widths)
    sys.stdout.write("".join(f"{(line % tuple(row)).rstrip()}\n" for row in rows))
    sys.stdout.flush()


def _describe_trouble(trouble: str) -> str:
    return (
        "written by a newer nicbench"
        if "newer nicbench" in trouble and not trouble.startswith("damaged")
        else "damaged"
    )


def _row(run: RunHeadline) -> tuple[str, str, str, str, str, str]:
    state = run.verdict if run.verdict and run.finished else f"unfinished, {run.trials} trials or rounds"
    return (
        run.run_id,
        (run.started or "-")[:16].replace("T", " "),
        run.title or "-",
        _describe_trouble(run.trouble) if run.trouble else state,
        ", ".join(run.tags),
        run.trouble or run.headline or "-",
    )


# ``nicbench tag RUN NAME``: gives a run a name to find it by.


_Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help="The tag; without it, the run's tags are shown.", autocompletion=completion.tags
    ),
]
_Remove = Annotated[bool, typer.Option("--remove", help="Remove this tag.")]


def _tag(
    run: RunReference,
    name: _Name = None,
    remove: _Remove = False,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    json: Json = False,
) -> None:
    from nicbench.store.listing import open_run  # imported here, as in _list
    from nicbench.store.marks import add_tag, remove_tag, tags_of

    folder = open_run(run, runs_folder, damaged=remove)  # a damaged run may lose its tags, and gets no new ones
    if name is None:
        if remove:
            raise typer.BadParameter("--remove needs the NAME of a tag")
        tags = tags_of(folder.path)
    else:
        tags = (remove_tag if remove else add_tag)(folder.path, name)
    if json:
        print_json({"format": FORMAT, "run": folder.run_id, "tags": list(tags)})
    else:
        print_line(f"{folder.run_id}: {', '.join(tags) or 'no tags'}")


COMMANDS = {"list": _list, "tag": _tag}
