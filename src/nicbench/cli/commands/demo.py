"""``nicbench demo``: measures this machine's IP forwarding, or a simulated device, without a card or a bench file."""

from __future__ import annotations

import os
from typing import Annotated, Final

import typer

from nicbench.cli import completion
from nicbench.cli.options import DEFAULT_RUNS, Json, NoProgress, NoReport, RunsFolder, Wait
from nicbench.cli.output import say
from nicbench.core.errors import NotReadyError, UsageError
from nicbench.store.folder import RunFolder

DEMO: Final = "kernel-forward"
SIMULATED: Final = "simulated"

_Simulated = Annotated[
    bool, typer.Option("--simulated", help="Measure a simulated device: in seconds, without root and without packets.")
]
_Example = Annotated[
    str,
    typer.Argument(
        metavar="EXAMPLE", help="Another bench file that comes with nicbench.", autocompletion=completion.examples
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("demo")(_demo)


def _demo(
    context: typer.Context,
    name: _Example = DEMO,
    simulated: _Simulated = False,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    json: Json = False,
    no_progress: NoProgress = False,
    no_report: NoReport = False,
    wait: Wait = 0.0,
) -> None:
    """Measure how fast this machine's kernel forwards packets (root, two minutes), and write a report."""
    from nicbench.bench_file import load  # imported here, as `--help` and completion need no parts of a run
    from nicbench.bench_file.examples import example
    from nicbench.cli.running import conduct

    source = context.get_parameter_source("name")
    if simulated and source is not None and source.name == "COMMANDLINE" and name != SIMULATED:
        step = f"leave out `{name}` or --simulated: the simulated device is an example of its own"
        raise UsageError("--simulated measures no other example", place=name, next_step=step)
    name = SIMULATED if simulated else name
    path = example(name)
    if name != SIMULATED and os.geteuid() != 0:
        step = "sudo nicbench demo, or without root: nicbench demo --simulated"
        raise NotReadyError("only root may make network namespaces and send frames", next_step=step)
    bench = load(path)
    folder = RunFolder.create(runs_folder, bench.source, bench.title)
    say(f"bench file: {path}\nrun folder: {folder.path}")
    conduct(bench, folder, as_json=json, with_progress=not no_progress, wait_s=wait, with_report=not no_report)
    say(
        "next: copy the bench file named above and change it; `nicbench init` writes a bench file for ports of your own"
    )
