"""Arguments and options that several commands share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nicbench.cli import completion
from nicbench.cli.output import say
from nicbench.core.errors import UsageError
from nicbench.core.units import parse_duration_s
from nicbench.report import Format

if TYPE_CHECKING:
    from nicbench.core.result import Summary
    from nicbench.lake.place import Lake
    from nicbench.store.index import IndexedRuns


def _folder(path: Path) -> Path:
    """Checks that the folder exists or can be made; UsageError where a file is in its place."""
    for part in (path, *path.parents):
        with contextlib.suppress(OSError):  # a folder that cannot be accessed is reported where it is used
            if part.exists() and not part.is_dir():
                raise UsageError("is a file, not a folder", place=str(part), next_step="give --runs a folder")
    return path


def duration_s(option: str) -> Callable[[str | float], float]:
    """Returns what parses the duration of an option; UsageError for other text."""

    def parse(text: str | float) -> float:
        try:
            return parse_duration_s(text)
        except ValueError as error:
            raise UsageError(str(error), place=option, next_step="write it like 90s or 10min") from error

    return parse


BenchPath = Annotated[Path, typer.Argument(metavar="BENCH.yaml", help="The bench file.", show_default=False)]
RunReference = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run's folder, its id under --runs, or `latest`.",
        show_default=False,
        autocompletion=completion.runs,
    ),
]
RunOrTag = Annotated[
    str,
    typer.Argument(
        metavar="RUN|TAG",
        help="A run's folder, its id under --runs, `latest`, or a tag for all its runs.",
        show_default=False,
        autocompletion=completion.runs_and_tags,
    ),
]
RunsFolder = Annotated[
    Path, typer.Option("--runs", metavar="DIR", callback=_folder, help="The folder that holds the runs.")
]
TlsKey = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Its private key (PEM).")]
PasswordFile = Annotated[
    Path | None,
    typer.Option("--password-file", metavar="FILE", help="A file with the password, which only its owner may read."),
]
"""Of the commands that serve others: `web` and `serve`."""
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else.")]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="Do not show progress.")]
NoReport = Annotated[
    bool, typer.Option("--no-report", help="Do not write a report; `nicbench report RUN` writes it later.")
]
Live = Annotated[bool, typer.Option("--live", help="Serve a page of the run in the browser while it runs.")]
Redact = Annotated[
    bool,
    typer.Option("--redact", help="Replace serial numbers, MAC addresses, UUIDs and host names with tokens."),
]

Wait = Annotated[
    float,
    typer.Option(
        "--wait",
        metavar="DURATION",
        parser=duration_s("--wait"),
        help="How long to wait for machines and ports that another run uses, e.g. 10min.",
        show_default="no waiting",
    ),
]

LakeOption = Annotated[
    str | None,
    typer.Option(
        "--lake",
        metavar="PLACE",
        help="The lake of gathered runs: a folder or an address (default: `lake` under --runs).",
    ),
]
DEFAULT_RUNS = Path("runs")
_ALL = "all"

Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="html, pdf, md or all; separate several by commas, or repeat the option.",
        show_default=Format.HTML.value,
        autocompletion=completion.report_formats,
    ),
]


def choice(option: str, text: str | None, known: Iterable[str]) -> str | None:
    """Checks that the text is one of the known words."""
    if text is not None and text not in known:
        raise UsageError(f"{option} cannot be {text!r}", next_step=f"it is one of {', '.join(known)}")
    return text


def kinds(texts: list[str] | None) -> tuple[Format, ...]:
    """Returns each format once, in the order asked for; UsageError where one is not known."""
    names = [name.strip() for text in texts or [Format.HTML.value] for name in text.split(",")]
    known = {kind.value for kind in Format}
    for name in names:
        if name not in known | {_ALL}:
            raise UsageError(
                f"there is no format {name!r}",
                place="--format",
                next_step=f"one of {', '.join([*sorted(known), _ALL])}",
            )
    return tuple(Format) if _ALL in names else tuple(Format(name) for name in dict.fromkeys(names))


def runs_under(output: Path, *, rebuild: bool = False) -> IndexedRuns:
    """Returns every run, oldest first, from the index. HostError where the folder itself cannot be read."""
    from nicbench.store.index import list_indexed_runs  # imported here, as completion needs no runs

    try:
        found = list_indexed_runs(output, describe_results, rebuild=rebuild)
    except OSError as error:
        from nicbench.store.files import storage_error  # imported here, as it is rarely needed

        raise storage_error(error, output) from error
    for note in found.notes:
        say(f"note: {note}")
    return found


def in_lake(reference: str, runs_folder: Path, lake: Lake | None) -> str:
    """Returns the folder of a run that the lake alone knows by its id; any other reference unchanged."""
    if lake is None:
        return reference
    from nicbench.lake.searching import find_run  # imported here, as these load slowly, and without a lake in vain
    from nicbench.store.listing import LATEST, path_of

    if reference == LATEST or path_of(reference, runs_folder).exists():
        return reference

    found = find_run(lake, reference)
    return reference if found is None else found.folder


def tagged_runs(tag: str, runs_folder: Path, lake: Lake | None, most: int) -> list[Path]:
    """Returns the folders of the newest runs with a tag, at most so many, oldest first."""
    from nicbench.lake.place import find_together  # imported here, as completion needs no runs
    from nicbench.store.index import Search

    found = find_together(runs_under(runs_folder).runs, lake, Search(tags=(tag,))).runs
    return [run.path for run in found if tag in run.tags][-most:]


def runs_called(reference: str, runs_folder: Path, lake: Lake | None = None, most: int = 100) -> list[Path]:
    """Returns the folder of a run, or those of the newest runs with a tag, at most so many, oldest first.

    UsageError if it is neither a run nor a tag.
    """
    from nicbench.store.listing import path_of

    path = path_of(in_lake(reference, runs_folder, lake), runs_folder)
    if path.exists() or "/" in reference:
        return [path]
    if found := tagged_runs(reference, runs_folder, lake, most):
        return found
    raise UsageError(
        "is neither a run nor a tag of any run",
        place=repr(reference),
        next_step="`nicbench list` shows runs and tags; `nicbench tag RUN NAME` gives one",
    )


def describe_results(summary: Summary) -> str | None:
    """Returns the line on a run's results that lists show, for a summary without one; None if it has none."""
    from nicbench.report.answer.of_run import in_brief  # imported here, as few lists need it

    return in_brief(summary)
