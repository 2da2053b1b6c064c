"""``nicbench tag RUN NAME``: gives a run a name to find it by."""

from __future__ import annotations

from typing import Annotated

import typer

from nicbench.cli import completion
from nicbench.cli.options import DEFAULT_RUNS, Json, RunReference, RunsFolder
from nicbench.cli.output import FORMAT, print_json, results
from nicbench.store.listing import open_run
from nicbench.store.marks import add_tag, remove_tag, tags_of


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("tag")(_tag)


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
    """Add a tag to a run, or remove one. Tags find runs (`list --tag`, `check --against`)."""
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
        results().print(f"{folder.run_id}: {', '.join(tags) or 'no tags'}", markup=False, soft_wrap=True)
