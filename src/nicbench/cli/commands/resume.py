"""``nicbench resume RUN``: continues a run that was interrupted; no trial is made twice."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from nicbench.cli.options import DEFAULT_RUNS, Json, Live, NoProgress, NoReport, Redact, RunReference, RunsFolder, Wait
from nicbench.cli.output import say
from nicbench.core.errors import NicbenchError, UsageError
from nicbench.core.events import Event, RunStarted
from nicbench.store.files import BENCH
from nicbench.store.folder import RunFolder
from nicbench.store.listing import open_run

if TYPE_CHECKING:
    from nicbench.bench_file import BenchFile

OtherMachines = Annotated[
    bool,
    typer.Option("--on-other-machines", help="Go on although the run began on other machines; the report says so."),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("resume")(resume)


def resume(
    run: RunReference,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    json: Json = False,
    no_progress: NoProgress = False,
    no_report: NoReport = False,
    redact: Redact = False,
    wait: Wait = 0.0,
    live: Live = False,
    on_other_machines: OtherMachines = False,
) -> None:
    """Continue an interrupted run where it stopped."""
    from nicbench.bench_file import load  # imported here, as `--help` and completion need no parts of a run
    from nicbench.bench_file.load import keep_hypervisors
    from nicbench.cli.running import conclude, conduct, run_it, served

    folder = open_run(run, runs_folder, damaged=True)  # refuse_tampering() below also covers damage
    refuse_imported(folder)
    refuse_tampering(folder)
    ended = folder.journal.is_complete
    if ended and (summary := folder.summary()) is not None and folder.finished:
        say(f"{folder.run_id} is finished; there is nothing to resume")
        lacks_report = not (folder.path / "report.html").exists()
        conclude(summary, folder, as_json=json, with_report=lacks_report and not no_report)
        return
    bench = load(folder.path / BENCH, with_files=False)
    if (before := folder.plan()) is not None:
        bench = keep_hypervisors(bench, before.hypervisors)
    folder.journal.hold()  # here, as nothing may be written where another process measures
    if ended:
        _finish(bench, folder, as_json=json, with_report=not no_report)
        return
    say(f"run folder: {folder.path}, {folder.journal.kept_words(bench.measures)}")
    redact = redact or was_redacted(folder.journal.events())
    with served(folder, wanted=live) as page:
        conduct(
            bench,
            folder,
            as_json=json,
            with_progress=not no_progress,
            redact=redact,
            resumed=True,
            wait_s=wait,
            with_report=not no_report,
            page=page,
            run_it=partial(run_it, on_other_machines=on_other_machines),
        )


def _finish(bench: BenchFile, folder: RunFolder, *, as_json: bool, with_report: bool) -> None:
    """Writes the results of a run that was killed when everything was measured; it ends as the run would have."""
    from nicbench.cli.running import conclude, conclude_failed  # imported here, as in resume
    from nicbench.run import finish_again

    say(f"{folder.run_id} had measured everything; its results are written now")
    try:
        summary = finish_again(bench, folder)
    except NicbenchError as error:
        conclude_failed(error, bench, folder, as_json=as_json, with_report=with_report)
    conclude(summary, folder, as_json=as_json, with_report=with_report)


def refuse_imported(folder: RunFolder) -> None:
    """Raises UsageError where the run was imported, and nothing was measured here."""
    if folder.is_imported:
        raise UsageError(
            "this run was imported, not measured by nicbench: there is nothing to resume",
            place=str(folder.path),
            next_step=f"nicbench report {folder.path} shows it; nicbench import reads a file anew",
        )


def refuse_tampering(folder: RunFolder) -> None:
    """Raises UsageError where files of the folder were changed after the run: resuming would vouch for them.

    A link or a pipe, which no run makes, is refused as well: a run writes to its folder, as root.
    """
    differences = folder.differences()
    if differences:
        raise UsageError(
            f"the run folder was changed after the run: {'; '.join(differences)}",
            place=str(folder.path),
            next_step="restore the original files, or start a new run",
        )


def was_redacted(events: Iterable[Event]) -> bool:
    """Returns whether the run was begun with ``--redact``."""
    return any(isinstance(event, RunStarted) and event.redacted for event in events)
