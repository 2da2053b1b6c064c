"""``nicbench run BENCH.yaml``: runs the tests of a bench file and writes the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nicbench.cli import completion
from nicbench.cli.failure import run_to_the_end
from nicbench.cli.options import DEFAULT_RUNS, BenchPath, Json, Live, NoProgress, NoReport, Redact, RunsFolder, Wait
from nicbench.cli.output import results, say
from nicbench.store.folder import RunFolder
from nicbench.store.marks import add_tag, check_tag

if TYPE_CHECKING:
    from nicbench.bench_file import BenchFile

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and the tuning, and change nothing.")]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="NAME",
        help="Tag the run with this name (repeatable).",
        autocompletion=completion.tags,
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("run")(run)


def run(
    bench: BenchPath,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    json: Json = False,
    no_progress: NoProgress = False,
    no_report: NoReport = False,
    redact: Redact = False,
    wait: Wait = 0.0,
    tag: Tags = None,
    live: Live = False,
    dry_run: DryRun = False,
) -> None:
    """Run every test of a bench file and write a report."""
    from nicbench.bench_file import load  # imported here, as `--help` and completion need no parts of a run
    from nicbench.cli.running import conduct, served

    tags = [check_tag(name) for name in tag or ()]
    bench_file = load(bench)
    if dry_run:
        _show_plan(bench_file, as_json=json)
        return
    folder = RunFolder.create(runs_folder, bench_file.source, bench_file.title)
    for name in tags:
        add_tag(folder.path, name)
    say(f"run folder: {folder.path}")
    with served(folder, wanted=live) as page:
        conduct(
            bench_file,
            folder,
            as_json=json,
            with_progress=not no_progress,
            redact=redact,
            wait_s=wait,
            with_report=not no_report,
            page=page,
        )


def _show_plan(bench: BenchFile, *, as_json: bool) -> None:
    """Prints what a run would do and tune; exit status 3 where something that it names is absent."""
    from nicbench.cli.commands.tune import show_tuning  # imported here, as in run
    from nicbench.cli.plan_table import print_plan
    from nicbench.stages.hosts import look_for_named

    presence = run_to_the_end(look_for_named(bench))
    if not as_json:
        print_plan(results(), bench, presence)
    show_tuning(bench, as_json=as_json, presence=presence)
