"""Arguments and options that several commands share."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from nicbench.errors import UsageError
from nicbench.units import parse_duration_s


def _folder(path: Path) -> Path:
    """A folder that is there or can be made; UsageError where a file stands in its way."""
    for part in (path, *path.parents):
        with contextlib.suppress(OSError):  # may not be looked at: whoever uses it says so
            if part.exists() and not part.is_dir():
                raise UsageError(
                    "is a file, not a folder for runs", place=str(part), next_step="give --output a folder"
                )
    return path


def _duration_s(text: str | float) -> float:
    """UsageError where it is none."""
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise UsageError(str(error), place="--wait", next_step="write it like 90s or 10min") from error


BenchPath = Annotated[Path, typer.Argument(metavar="BENCH.yaml", help="The bench file.", show_default=False)]
RunReference = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run's folder, its id under --output, or `latest`.", show_default=False),
]
Output = Annotated[
    Path, typer.Option("--output", metavar="DIR", callback=_folder, help="The folder that holds the runs.")
]
Json = Annotated[bool, typer.Option("--json", help="Print data alone, as JSON, on stdout.")]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="Say nothing while it runs.")]
Redact = Annotated[
    bool,
    typer.Option("--redact", help="Put tokens in the place of serial numbers, MAC addresses, UUIDs and host names."),
]

Wait = Annotated[
    float,
    typer.Option(
        "--wait",
        metavar="DURATION",
        parser=_duration_s,
        help="Wait so long, e.g. 10min, for machines and ports that another run uses.",
    ),
]

DEFAULT_OUTPUT = Path("runs")
