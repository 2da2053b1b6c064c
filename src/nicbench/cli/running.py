"""Conducts a run, new or resumed: journal and progress listen, interruptions undo, and the report comes last."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from nicbench.bench_file import BenchFile
from nicbench.cli.failure import CrashError, ReportedError, document, run_to_the_end, stop_is_an_error
from nicbench.cli.output import ReaderGoneError, print_json, results, say
from nicbench.cli.progress import make_progress
from nicbench.cli.signals import StoppedError, signals_wait
from nicbench.cli.summary_table import print_summary
from nicbench.core.errors import (
    HostError,
    InterruptedRunError,
    NicbenchError,
    ThresholdError,
    UnwrittenError,
    explain,
)
from nicbench.core.events import Bus, Event
from nicbench.core.redaction import Redactor
from nicbench.core.result import ResultVerdict, Summary
from nicbench.stages.plan import ends, list_planned
from nicbench.stages.turns import summarise
from nicbench.stats.activity import TimeLeft
from nicbench.stats.intervals import Agreement
from nicbench.store import manifest
from nicbench.store.confined import Fence, run_confined
from nicbench.store.files import ERROR
from nicbench.store.folder import RunFolder
from nicbench.store.now import NowFile

if TYPE_CHECKING:
    from nicbench.web.live import LivePage

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
    ``with_report``: write a report; without it an earlier one is kept. ``page``: the live page of the run, if any.
    ``show`` prints the results of a run that came to its end, where tables of all are not wanted.
    """
    if redact or bench.redact:
        folder.redact_with(Redactor.of_this_machine())
    bus = Bus()
    if page is not None:
        bus.subscribe(page.subscriber(bus))  # before the journal, whose last line is the end of the run
    bus.subscribe(folder.journal.append)
    bus.subscribe(_tell_watchers(bench, folder))
    try:
        with (
            stop_is_an_error(),
            make_progress(list_planned(bench), enabled=with_progress, ends=ends(bench)) as progress,
        ):
            bus.subscribe(progress.show)
            summary = run_to_the_end(_run_coroutine(run_it, bench, folder, bus, wait_s))
    except NicbenchError as error:
        if not resumed and not _is_worth_keeping(folder, error):
            folder.remove()  # refused before anything was measured: the folder would only clutter the list of runs
            raise ReportedError(error, None) from error
        conclude_failed(error, bench, folder, as_json=as_json, with_report=with_report)
    except Exception as error:
        raise ReportedError(CrashError.of(error, folder.path), _partial_summary(bench, folder)) from error
    finally:
        folder.journal.close()
    conclude(summary, folder, as_json=as_json, with_report=with_report, show=show or print_results)


def conduct_quietly(
    bench: BenchFile,
    folder: RunFolder,
    *,
    with_progress: bool,
    wait_s: float,
    with_report: bool = True,
    resumed: bool = False,
) -> None:
    """Runs ``bench`` like ``conduct``, without tables. A run that misses a threshold came to its end: no error."""
    try:
        conduct(
            bench,
            folder,
            as_json=False,
            with_progress=with_progress,
            resumed=resumed,
            wait_s=wait_s,
            with_report=with_report,
            show=_show_nothing,
        )
    except ReportedError as reported:
        if not isinstance(reported.error, ThresholdError):
            raise


def conclude_failed(
    error: NicbenchError, bench: BenchFile, folder: RunFolder, *, as_json: bool, with_report: bool
) -> NoReturn:
    """Shows what was measured before a run ended with ``error``, and raises its ReportedError."""
    with signals_wait():  # one more would lose what the first one left
        whole = isinstance(error, UnwrittenError) or (folder.journal.is_complete and folder.finished)
        summary = _partial_summary(bench, folder, whole=whole)
        error = _with_next_step(error, bench, folder, whole=whole)
        folder.journal.close()
    if summary is None:
        raise ReportedError(error, None) from error
    # Without results of its own there is no table to show, and without its summary nothing that a report needs.
    show = print_results if summary.results else _show_nothing
    conclude(summary, folder, as_json=as_json, with_report=with_report, show=show, error=error)
    raise ReportedError(error, summary, told=True) from error


def print_results(summary: Summary) -> None:
    """Prints the results of a run as tables."""
    print_summary(results(), summary)


def _show_nothing(_: Summary) -> None:
    """Stands in the place of tables where there is nothing to show."""


def conclude(
    summary: Summary,
    folder: RunFolder,
    *,
    as_json: bool,
    with_report: bool,
    show: Show = print_results,
    error: NicbenchError | None = None,
) -> None:
    """Shows the results of a run that has ended, and then makes its report, whose failure cannot unmake them.

    ``error`` is what ended the run. ReportedError where there is one, where a result is not what it must be, or where
    the report could not be made.
    """
    ended, told = error or _missed(summary), False
    try:
        unread = _give(summary, ended, show, as_json=as_json)
        told = True
        failed = _report(folder, "report" if error is None else "report of what was measured") if with_report else None
    except StoppedError as stopped:
        step = f"nicbench report {folder.path} shows them"
        failed = InterruptedRunError(f"{stopped.words}; the results are kept", next_step=step)
        raise ReportedError(ended or failed, summary, told=told) from stopped
    if show is not _show_nothing and not with_report and error is None and not (folder.path / "report.html").exists():
        say(f"\nwithout a report: nicbench report {folder.path} makes it")
    if ended is not None and failed is not None:
        say(f"without a report: {failed}")
    if (wrong := ended or failed) is not None:
        raise ReportedError(wrong, summary, told=True)
    if unread is not None:
        raise unread


def _report(folder: RunFolder, name: str) -> NicbenchError | None:
    """Makes the report and says where it is; returns why it could not be made."""
    try:
        say(f"\n{name}: {build_report(folder)}")
    except NicbenchError as error:
        return error
    return None


def _give(summary: Summary, ended: NicbenchError | None, show: Show, *, as_json: bool) -> Exception | None:
    """Prints the results; returns why they could not be printed, as the report is made all the same.

    Ctrl-C ends the reader of a pipe (``| tee log``) as well.
    """
    try:
        if not as_json:
            show(summary)
            sys.stdout.flush()
        elif ended is None:
            print_json(summary)
        else:
            print_json(document(ended, summary))
    except (ReaderGoneError, NicbenchError) as error:
        return error
    return None


def served(folder: RunFolder, *, wanted: bool) -> contextlib.AbstractContextManager[LivePage | None]:
    """Serves the live page of a run where it is wanted; returns None where it is not."""
    if not wanted:
        return contextlib.nullcontext()
    from nicbench.web.live import live_page  # imported here, as most runs are not watched

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


def build_report(folder: RunFolder) -> Path:
    """Builds the report of a run folder in a process of its own, as an ordinary user (``store/confined.py``).

    UnwrittenError where that fails, whatever becomes of the process; InterruptedRunError where a signal comes before
    it is done.
    """
    again = f"nicbench report {folder.path} makes it"

    def work() -> str:
        from nicbench.report import build  # imported here, as charts take a second to load

        try:
            return str(build(folder.path))
        except (NicbenchError, MemoryError):
            raise
        except Exception as error:
            raise CrashError.of(error, folder.path) from error

    fence = Fence((folder.path,), lambda path: manifest.is_report(folder.path, path) or path == folder.path / ERROR)
    try:
        ended = run_confined(work, fence, in_own_process=not _draws_here())
    except StoppedError as stopped:
        raise InterruptedRunError(
            f"{stopped.words} while the report was made; the results are kept", next_step=again
        ) from stopped
    if ended.status == 0 and isinstance(ended.answer, str) and manifest.is_report(folder.path, Path(ended.answer)):
        return Path(ended.answer)
    why = ended.error or HostError(f"its process ended with status {ended.status}, and made no report")
    raise UnwrittenError(
        f"the report could not be made, the results are kept: {why.message}",
        place=why.place or str(folder.path),
        next_step=f"{why.next_step}; {again}" if why.next_step else again,
    ) from why


def _draws_here() -> bool:
    """Whether this process draws charts itself, as a program may that calls nicbench: then it cannot be forked."""
    drawing = sys.modules.get("nicbench.report.drawing.svg")
    return drawing is not None and bool(drawing.has_drawn)


async def _run_coroutine(run_it: RunIt, bench: BenchFile, folder: RunFolder, bus: Bus, wait_s: float) -> Summary:
    return await run_it(bench, folder, bus, wait_s)


def _is_worth_keeping(folder: RunFolder, error: NicbenchError) -> bool:
    """Returns whether the folder of an aborted run is needed: it has results, or ``error`` refers to it.

    A run that ended without a result refers to it as well: its plan says what was asked of which ports.
    """
    if folder.journal.sample_count() or folder.journal.results() or folder.holds_outputs:
        return True
    return any(words in str(error) for words in (str(folder.path), "nicbench resume", "run folder"))


def _with_next_step(error: NicbenchError, bench: BenchFile, folder: RunFolder, *, whole: bool) -> NicbenchError:
    """Adds how to go on: after an interruption what is kept and `resume`, otherwise the fix and then `resume`."""
    resume = f"nicbench resume {folder.path}"
    if isinstance(error, InterruptedRunError):
        if whole:
            kept, step = "everything was measured and is kept", f"nicbench report {folder.path}"
        else:
            kept, step = _kept_words(bench, folder), resume
        return InterruptedRunError(f"{error.message}; {kept}", place=str(folder.path), next_step=step)
    if error.exit_status > 2 and error.may_resume:
        steps = f"{error.next_step}\n  then: {resume}" if error.next_step else resume
        error.next_step = steps
    return error


def _kept_words(bench: BenchFile, folder: RunFolder) -> str:
    try:
        return folder.journal.kept_words(bench.measures)
    except (NicbenchError, OSError) as error:
        return f"what is kept cannot be counted: {explain(error)}"


def _partial_summary(bench: BenchFile, folder: RunFolder, *, whole: bool = False) -> Summary | None:
    """Summarises what was measured, from the folder; None where even that cannot be read.

    ``whole``: everything was measured. Otherwise the run is incomplete, whatever a summary says that is there.
    """
    try:
        if whole:
            return summarise(bench, folder.journal, folder.run_id, complete=True)
        plain = folder.summary() or summarise(bench, folder.journal, folder.run_id, complete=False)
        return plain.replace(verdict=ResultVerdict.INCOMPLETE)
    except (NicbenchError, OSError, MemoryError):
        return None
