"""Makes a run, new or resumed: journal and progress listen, interruptions undo, the report and the table come last."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from nicbench.bench_file import BenchFile
from nicbench.cli.failure import CrashError, ReportedError
from nicbench.cli.interruption import run_to_the_end
from nicbench.cli.output import print_json, results, say
from nicbench.cli.progress import make_progress
from nicbench.cli.summary_table import print_summary
from nicbench.cli.time_left import BOUNDS, ends, planned
from nicbench.errors import InterruptedRunError, NicbenchError
from nicbench.events import Bus
from nicbench.model.report_wishes import Layout
from nicbench.model.result import ResultVerdict, Summary
from nicbench.redaction import Redactor
from nicbench.stages.summary import summarise
from nicbench.store.folder import RunFolder

RunIt = Callable[[BenchFile, RunFolder, Bus, float], Awaitable[Summary]]

REPORT: Final = "report.html"


async def _run_it(bench: BenchFile, folder: RunFolder, bus: Bus, wait_s: float) -> Summary:
    from nicbench.run import run  # here: it loads every part of nicbench, and `--help` needs none of them

    return await run(bench, folder, bus, wait_s=wait_s)


def conduct(
    bench: BenchFile,
    folder: RunFolder,
    *,
    as_json: bool,
    with_progress: bool,
    redact: bool = False,
    resumed: bool = False,
    wait_s: float = 0.0,
    run_it: RunIt = _run_it,
) -> None:
    """Runs ``bench`` in ``folder`` and shows what came of it. ReportedError where it ended with an error.

    ``redact``: as ``redact`` of the bench file, which does as well. ``resumed``: the folder was there before, and
    stays. ``wait_s``: for machines that others use.
    """
    if redact or bench.redact:
        folder.redact_with(redactor_of_this_machine())
    bus = Bus()
    bus.subscribe(folder.journal.append)
    try:
        with make_progress(
            planned(bench), enabled=with_progress, ends=ends(bench), bound=BOUNDS[bench.measures]
        ) as progress:
            bus.subscribe(progress.show)
            summary = run_to_the_end(_awaited(run_it, bench, folder, bus, wait_s))
    except NicbenchError as error:
        if not resumed and not _is_worth_keeping(folder, error):
            folder.remove()  # refused before anything was measured: nothing worth a place in the list of runs
            raise ReportedError(error, None) from error
        with contextlib.suppress(NicbenchError):
            build_report(folder)
        raise ReportedError(_with_next_step(error, bench, folder), _kept(bench, folder)) from error
    except Exception as error:
        raise ReportedError(CrashError.of(error, folder.path), _kept(bench, folder)) from error
    finally:
        folder.journal.close()
    report = build_report(folder)
    if as_json:
        print_json(summary)
    else:
        print_summary(results(), summary)
    say(f"\nreport: {report}")


def redactor_of_this_machine() -> Redactor:
    """One that knows how this machine is called; other hosts are asked where their inventory is taken."""
    redactor = Redactor()
    redactor.learn_host_name(platform.node())
    return redactor


def build_report(folder: RunFolder, layout: Layout | None = None) -> Path:
    """The report of a run folder; ``layout`` is that of its bench file where it is None."""
    from nicbench.report import build  # here: charts take a second to load

    return build(folder.path, layout)


async def _awaited(run_it: RunIt, bench: BenchFile, folder: RunFolder, bus: Bus, wait_s: float) -> Summary:
    return await run_it(bench, folder, bus, wait_s)


def _is_worth_keeping(folder: RunFolder, error: NicbenchError) -> bool:
    """Whether somebody needs the folder of a run that broke off: what is in it, or what ``error`` says of it."""
    if folder.journal.sample_count() or folder.journal.results() or folder.holds_outputs:
        return True
    return any(words in str(error) for words in (str(folder.path), "nicbench resume", "run folder"))


def _with_next_step(error: NicbenchError, bench: BenchFile, folder: RunFolder) -> NicbenchError:
    """After an interruption: what is kept, and how to go on. Other errors: mend, then resume."""
    resume = f"nicbench resume {folder.path}"
    if isinstance(error, InterruptedRunError):
        kept = folder.journal.kept_words(bench.measures)
        return InterruptedRunError(f"{error.message}; {kept}", place=str(folder.path), next_step=resume)
    if error.exit_status > 2:
        steps = f"{error.next_step}\n  then: {resume}" if error.next_step else resume
        error.next_step = steps
    return error


def _kept(bench: BenchFile, folder: RunFolder) -> Summary | None:
    """What was measured before the run broke off; None where even that cannot be read."""
    try:
        summary = folder.summary()
        plain = summary or summarise(bench, folder.journal.results(), folder.run_id, complete=False)
        return plain.model_copy(update={"verdict": ResultVerdict.INCOMPLETE})
    except NicbenchError:
        return None
