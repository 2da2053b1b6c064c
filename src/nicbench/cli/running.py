"""Conducts a run, new or resumed: journal and progress listen, interruptions undo, and the report comes last."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from nicbench.bench_file import BenchFile
from nicbench.cli.failure import CrashError, ReportedError, run_to_the_end
from nicbench.cli.output import ReaderGoneError, print_json, results, say
from nicbench.cli.progress import make_progress
from nicbench.cli.summary_table import print_summary
from nicbench.core.errors import InterruptedRunError, NicbenchError, ThresholdError
from nicbench.core.events import Bus, Event
from nicbench.core.redaction import Redactor
from nicbench.core.report_options import Layout
from nicbench.core.result import ResultVerdict, Summary
from nicbench.stages.time_plan import ends, list_planned
from nicbench.stages.turns import summarise
from nicbench.stats.intervals import Agreement
from nicbench.stats.time_left import TimeLeft
from nicbench.store.folder import RunFolder
from nicbench.store.now import NowFile

if TYPE_CHECKING:
    from nicbench.web.beside import LivePage

RunIt = Callable[[BenchFile, RunFolder, Bus, float], Awaitable[Summary]]
Show = Callable[[Summary], None]
"""Prints a summary."""


async def run_it(
    bench: BenchFile, folder: RunFolder, bus: Bus, wait_s: float, *, on_other_machines: bool = False
) -> Summary:
    """Runs a bench file, see ``nicbench.run``."""
    from nicbench.run import run  # imported here, as it loads every part of nicbench

    return await run(bench, folder, bus, wait_s=wait_s, on_other_machines=on_other_machines)


def conduct(
    bench: BenchFile,
    folder: RunFolder,
    *,
    as_json: bool,
    with_progress: bool,
    redact: bool = False,
    resumed: bool = False,
    wait_s: float = 0.0,
    with_report: bool = True,
    page: LivePage | None = None,
    run_it: RunIt = run_it,
    show: Show | None = None,
) -> None:
    """Runs ``bench`` in ``folder`` and prints the results. Raises ReportedError where it ended with an error.

    ``redact``: redact the run, as `redact` in the bench file does. ``resumed``: the folder existed before, and is kept
    in any case. ``wait_s``: how long to wait for machines that others use.
    ``with_report``: write a report; without it an earlier one stays as it is. ``page``: the live page beside
    the run, if any. ``show`` prints the results of a run that came to its end, where tables of all are not wanted.
    """
    if redact or bench.redact:
        folder.redact_with(Redactor.of_this_machine())
    bus = Bus()
    if page is not None:
        bus.subscribe(page.subscriber(bus))  # before the journal, whose last line is the end of the run
    bus.subscribe(folder.journal.append)
    bus.subscribe(_tell_watchers(bench, folder))
    try:
        with make_progress(list_planned(bench), enabled=with_progress, ends=ends(bench)) as progress:
            bus.subscribe(progress.show)
            summary = run_to_the_end(_run_coroutine(run_it, bench, folder, bus, wait_s))
    except NicbenchError as error:
        if not resumed and not _is_worth_keeping(folder, error):
            folder.remove()  # refused before anything was measured: the folder would only clutter the list of runs
            raise ReportedError(error, None) from error
        raise report_failed(error, bench, folder, as_json=as_json, with_report=with_report) from error
    except Exception as error:
        raise ReportedError(CrashError.of(error, folder.path), _partial_summary(bench, folder)) from error
    finally:
        folder.journal.close()
    conclude(summary, folder, as_json=as_json, with_report=with_report, show=show or _print_results)


def report_failed(
    error: NicbenchError, bench: BenchFile, folder: RunFolder, *, as_json: bool, with_report: bool
) -> ReportedError:
    """Shows what was measured before a run ended with ``error``, and returns what is to be raised."""
    partial, report = _partial_summary(bench, folder), None
    if with_report:
        with contextlib.suppress(NicbenchError):
            report = build_report(folder)
    if partial is not None and partial.results and not as_json:
        _print_beside_error(partial)
    if report is not None:
        say(f"\nreport of what was measured: {report}")
    return ReportedError(_with_next_step(error, bench, folder), partial)


def _print_results(summary: Summary) -> None:
    print_summary(results(), summary)


def conclude(
    summary: Summary, folder: RunFolder, *, as_json: bool, with_report: bool, show: Show = _print_results
) -> None:
    """Shows the results of a run that came to its end. ReportedError where one is not what it must be."""
    report = build_report(folder) if with_report else None
    missed = _missed(summary)
    try:
        if missed is not None and not as_json:
            _print_beside_error(summary, show)
        elif not as_json:
            show(summary)
        elif missed is None:  # an error has the summary in the document that it prints
            print_json(summary)
    finally:  # also where nobody reads the results any more
        made = (
            f"report: {report}" if report is not None else f"without a report: nicbench report {folder.path} makes it"
        )
        say(f"\n{made}")
    if missed is not None:
        raise ReportedError(missed, summary)


def _print_beside_error(summary: Summary, show: Show = _print_results) -> None:
    """Prints the results of a run that ends with an error, which is told also where they cannot be written.

    Ctrl-C ends the reader of a pipe (``| tee log``) as well.
    """
    with contextlib.suppress(ReaderGoneError, NicbenchError):
        show(summary)


def served(folder: RunFolder, *, wanted: bool) -> contextlib.AbstractContextManager[LivePage | None]:
    """Serves the live page of a run where it is wanted; returns None where it is not."""
    if not wanted:
        return contextlib.nullcontext()
    from nicbench.web.beside import live_page  # imported here, as most runs are not watched

    return live_page(folder, say)


def _tell_watchers(bench: BenchFile, folder: RunFolder) -> Callable[[Event], None]:
    """Returns what keeps the file that says what the run does now."""
    left = TimeLeft(list_planned(bench), ends(bench))
    now = NowFile(folder.path)

    def tell(event: Event) -> None:
        left.note(event)
        now.note(event, left.estimate)

    return tell


def _missed(summary: Summary) -> ThresholdError | None:
    """The error where a reliable result is not what it must be: a known rate, or what a bench file accepts."""
    return _missed_known_rate(summary) or _not_accepted(summary)


def _not_accepted(summary: Summary) -> ThresholdError | None:
    """The error where a device does not do what the bench file accepts, as a method says by its value ``accepted``."""
    tests = [
        result.id for result in summary.counted if result.verdict.is_reliable and result.values.get("accepted") == "no"
    ]
    if not tests:
        return None
    return ThresholdError(f"not accepted: {', '.join(tests)}", next_step="read the reasons in the report")


def _missed_known_rate(summary: Summary) -> ThresholdError | None:
    """The error where a reliable result contradicts the rate of a DUT that is known: then the tester is wrong."""
    wrong = [
        str(result.values["self_check"])
        for result in summary.counted
        if result.verdict.is_reliable
        and "self_check" in result.values
        and result.values.get("agreement") == Agreement.DISAGREE.value
    ]
    if not wrong:
        return None
    advice = "look at the trials of that search in the report; a tester that is wrong here is wrong everywhere"
    return ThresholdError(f"the self-check failed: {'; '.join(wrong)}", next_step=advice)


def build_report(folder: RunFolder, layout: Layout | None = None) -> Path:
    """Builds the report of a run folder; ``layout`` defaults to that of its bench file."""
    from nicbench.report import build  # imported here, as charts take a second to load

    return build(folder.path, layout)


async def _run_coroutine(run_it: RunIt, bench: BenchFile, folder: RunFolder, bus: Bus, wait_s: float) -> Summary:
    return await run_it(bench, folder, bus, wait_s)


def _is_worth_keeping(folder: RunFolder, error: NicbenchError) -> bool:
    """Returns whether the folder of an aborted run is needed: it has results, or ``error`` refers to it.

    A run that ended without a result refers to it as well: its plan says what was asked of which ports.
    """
    if folder.journal.sample_count() or folder.journal.results() or folder.holds_outputs:
        return True
    return any(words in str(error) for words in (str(folder.path), "nicbench resume", "run folder"))


def _with_next_step(error: NicbenchError, bench: BenchFile, folder: RunFolder) -> NicbenchError:
    """Adds how to go on: after an interruption what is kept and `resume`, otherwise the fix and then `resume`."""
    resume = f"nicbench resume {folder.path}"
    if isinstance(error, InterruptedRunError):
        progress = folder.journal.kept_words(bench.measures)
        return InterruptedRunError(f"{error.message}; {progress}", place=str(folder.path), next_step=resume)
    if error.exit_status > 2 and error.may_resume:
        steps = f"{error.next_step}\n  then: {resume}" if error.next_step else resume
        error.next_step = steps
    return error


def _partial_summary(bench: BenchFile, folder: RunFolder) -> Summary | None:
    """Summarises what was measured before the run was aborted; None where even that cannot be read."""
    try:
        summary = folder.summary()
        plain = summary or summarise(bench, folder.journal, folder.run_id, complete=False)
        return plain.model_copy(update={"verdict": ResultVerdict.INCOMPLETE})
    except NicbenchError:
        return None
