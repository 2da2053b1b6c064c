"""``nicbench run``, ``resume``, ``tune`` and ``validate``: bench files checked, explained and run."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nicbench.cli import completion
from nicbench.cli.failure import CrashError, report, run_to_the_end
from nicbench.cli.options import (
    DEFAULT_RUNS,
    BenchPath,
    Json,
    Live,
    NoProgress,
    NoReport,
    Redact,
    RunReference,
    RunsFolder,
    Wait,
)
from nicbench.cli.output import print_json, results, say
from nicbench.core.errors import NicbenchError, NotReadyError, UsageError

if TYPE_CHECKING:
    from nicbench.bench_file import BenchFile
    from nicbench.core.events import Event
    from nicbench.stages.hosts import Presence
    from nicbench.store.folder import RunFolder


# ``nicbench tune BENCH.yaml``: shows what a run would tune on its hosts. Changes nothing.


def _tune(bench: BenchPath, json: Json = False) -> None:
    from nicbench.bench_file import load  # imported here, as `--help` and completion need no parts of a run

    show_tuning(load(bench), as_json=json)


def show_tuning(bench: BenchFile, *, as_json: bool, presence: Presence | None = None) -> None:
    """Prints the dry run of tuning, also for ``run --dry-run``, which has looked for what the file names."""
    from nicbench.cli.plan_table import print_tuning, tuning_document  # imported here, as in _tune
    from nicbench.core.plan import Outcome
    from nicbench.stages.tuning import plan_settings

    is_refused = presence is not None and bool(presence.absent)
    try:
        settings = run_to_the_end(plan_settings(bench))
    except NotReadyError as error:
        if not is_refused:
            raise
        settings = None  # what lacks is told already
        reason = error.message
    if as_json:
        print_json(tuning_document(settings or (), presence))
    elif settings is not None:
        print_tuning(results(), settings)
    elif any(each.tuning for each in bench.configurations):
        say(f"what would be tuned cannot be determined: {reason}")
    if is_refused or settings is None or any(setting.outcome is Outcome.FAILED for setting in settings):
        raise typer.Exit(NotReadyError.exit_status)


# ``nicbench validate BENCH.yaml ...``: reads and checks bench files, and prints their plans.  It looks for what they
# name on this machine, changes nothing, and speaks to no other.

BenchPaths = Annotated[
    list[Path], typer.Argument(metavar="BENCH.yaml ...", help="One or more bench files.", show_default=False)
]


def _validate(benches: BenchPaths, json: Json = False) -> None:
    if len(benches) == 1:
        _show(benches[0], json)
    elif json:
        raise UsageError("--json prints the plan of one bench file", next_step="call it once for each file")
    else:
        _validate_each(benches)


def _validate_each(benches: list[Path]) -> None:
    """Checks each file, even where others are wrong or nicbench fails at them."""
    wrong = failed = 0
    for path in benches:
        try:
            _show(path, as_json=False)
        except UsageError as error:
            report(error, as_json=False)
            wrong += 1
        except OSError:
            raise  # of the output itself, so that nothing more can be printed
        except Exception as error:
            say(f"{path}:")
            report(CrashError.of(error), as_json=False)
            failed += 1
    if failed:
        message = f"nicbench failed at {failed} of {len(benches)} bench files"
        raise CrashError(message, next_step="see the messages above")
    if wrong:
        raise UsageError(f"{wrong} of {len(benches)} bench files are wrong", next_step="see the messages above")


def _show(path: Path, as_json: bool) -> None:
    from nicbench.bench_file import load  # imported here, as in _tune
    from nicbench.cli.plan_table import plan_document, print_plan
    from nicbench.stages.hosts import look_for_named

    bench_file = load(path)
    presence = run_to_the_end(look_for_named(bench_file))
    if as_json:
        print_json(plan_document(bench_file, presence))
    else:
        print_plan(results(), bench_file, presence)


# ``nicbench run BENCH.yaml``: runs the tests of a bench file and writes the report.

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
    """Carries out ``nicbench run``."""
    from nicbench.bench_file import load  # imported here, as in _tune
    from nicbench.store.marks import add_tag, check_tag

    tags = [check_tag(name) for name in tag or ()]
    bench_file = load(bench)
    if dry_run:
        _show_plan(bench_file, as_json=json)
        return
    if bench_file.optimise is not None:
        step = f"nicbench optimise {bench}"
        raise UsageError("`optimise` is a search of many runs", place=str(bench), next_step=step)
    from nicbench.cli.running import conduct, served  # only now: it loads the report
    from nicbench.store.folder import RunFolder

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
    from nicbench.cli.plan_table import print_plan  # imported here, as in _tune
    from nicbench.stages.hosts import look_for_named

    presence = run_to_the_end(look_for_named(bench))
    if not as_json:
        print_plan(results(), bench, presence)
    show_tuning(bench, as_json=as_json, presence=presence)


# ``nicbench resume RUN``: continues a run that was interrupted; no trial is made twice.

OtherMachines = Annotated[
    bool,
    typer.Option("--on-other-machines", help="Go on although the run began on other machines; the report says so."),
]


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
    """Carries out ``nicbench resume``."""
    from nicbench.bench_file import load  # imported here, as in _tune
    from nicbench.bench_file.load import keep_hypervisors
    from nicbench.cli.running import conclude, conduct, run_it, served
    from nicbench.store.files import BENCH
    from nicbench.store.listing import open_run

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
    from nicbench.core.events import RunStarted  # imported here, as in _tune

    return any(isinstance(event, RunStarted) and event.redacted for event in events)


COMMANDS = {"tune": _tune, "validate": _validate, "run": run, "resume": resume}
