"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

BenchPath = Annotated[Path, typer.Argument(metavar="BENCH.yaml", help="The bench file.", show_default=False)]
RunReference = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run's folder, its id under --output, or `latest`.", show_default=False),
]
Output = Annotated[Path, typer.Option("--output", metavar="DIR", help="The folder that holds the runs.")]
Json = Annotated[bool, typer.Option("--json", help="Print data alone, as JSON, on stdout.")]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="Say nothing while it runs.")]

DEFAULT_OUTPUT = Path("runs")
