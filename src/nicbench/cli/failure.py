"""How a command ends before its work is done: by an error, or by a signal.

An error becomes a message, an exit status and, if asked for, a JSON document, by its type. Ctrl-C, SIGTERM and a closed
terminal cancel the work once, and its undo runs to the end.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from nicbench import __version__
from nicbench.cli.output import FORMAT, print_json, say
from nicbench.cli.signals import SIGNALS, WHOLE_PROCESS, StoppedError, signals_wait, take_noted
from nicbench.core.errors import InterruptedRunError, NicbenchError, UnwrittenError, UsageError, WrongFileError, explain
from nicbench.store.files import ERROR, storage_error, write_atomically

if TYPE_CHECKING:
    from nicbench.core.result import Summary

Outcome = TypeVar("Outcome")


@contextmanager
def stop_is_an_error() -> Iterator[None]:
    """Makes a signal outside of an event loop an InterruptedRunError, as one inside of it is."""
    try:
        yield
    except StoppedError as stopped:
        raise InterruptedRunError(stopped.words) from stopped


def run_to_the_end(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Runs ``work``; the first signal cancels it, so that its ``finally`` clauses undo what it changed.

    Further signals only print a message: an undo is never cut short. Raises InterruptedRunError afterwards.
    """
    import asyncio  # imported here, as it loads slowly and most commands do not need it

    if WHOLE_PROCESS.get() and sys.version_info < (3, 12) and hasattr(os, "pidfd_open"):
        # Later versions do this by themselves. A thread for each process might fail to start, and its end stay unknown.
        asyncio.set_child_watcher(_make_child_watcher())
    before = {number: signal.getsignal(number) for number in SIGNALS}
    with contextlib.ExitStack() as closing:
        try:
            return asyncio.run(_run_cancellable(work, closing))
        finally:
            # asyncio restores the defaults instead of these. Signals wait meanwhile: by a default one would kill.
            for number, handler in before.items():
                signal.signal(number, handler)


def _make_child_watcher() -> Any:
    import asyncio

    class Watcher(asyncio.PidfdChildWatcher):
        def attach_loop(self, loop: asyncio.AbstractEventLoop | None) -> None:
            with warnings.catch_warnings():  # a process that outlives the loop is no fault of whoever ends the loop
                warnings.simplefilter("ignore", RuntimeWarning)
                super().attach_loop(loop)

    return Watcher()


async def _run_cancellable(work: Coroutine[Any, Any, Outcome], closing: contextlib.ExitStack) -> Outcome:
    import asyncio

    from nicbench.stages.machine import run_and_close_hosts  # imported here, as `--help` needs no hosts

    task = asyncio.ensure_future(run_and_close_hosts(work))
    received = []

    def stop(number: signal.Signals) -> None:
        received.append(number)
        if len(received) == 1:
            say("stopping: undoing all changes")
            task.cancel()
        else:
            say("already stopping: undoing changes, please wait")

    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop, number)
    if (earlier := take_noted()) is not None:  # it came to nothing before
        stop(signal.Signals(earlier))
    try:
        return await task
    except asyncio.CancelledError as error:
        name = received[0].name if received else "a cancellation"
        raise InterruptedRunError(f"stopped by {name}") from error
    finally:
        closing.enter_context(signals_wait())
        work.close()


_INCOMPLETE = "incomplete"
"""The value of ``ResultVerdict.INCOMPLETE``, written out to avoid loading the models of results."""
REPORT_IT = "please report this with the text of that file; what was measured is kept"


class CrashError(NicbenchError):
    """An unexpected exception: a fault of nicbench, exit status 1. ``place`` is the file that holds its traceback."""

    @classmethod
    def of(cls, error: BaseException, folder: Path | None = None) -> CrashError:
        """Writes the traceback to the run's folder, or to a temporary file, and names the file."""
        text = f"nicbench {__version__}, {datetime.now(UTC).isoformat(timespec='seconds')}\n\n"
        text += "".join(traceback.format_exception(error))
        return cls(
            f"nicbench failed: {explain(error)}",
            place=_write_traceback(text, folder),
            next_step=REPORT_IT,
        )


_REFUSED: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ELOOP}
)
"""Errors of the machine with a file, which are not faults of the program."""
_MOST_NAME_SHOWN = 80
"""How many characters of a name that is too long are shown."""


def of_system(error: OSError) -> NicbenchError | None:
    """Converts an OSError about a file that the machine refused; None where it may be a fault of nicbench."""
    if not isinstance(error.filename, str):
        return None
    if error.errno == errno.ENAMETOOLONG:
        return UsageError(
            f"is too long for a file name ({len(error.filename)} characters)",
            place=f"{error.filename[:_MOST_NAME_SHOWN]}...",
            next_step="give a shorter one",
        )
    return storage_error(error, Path(error.filename)) if error.errno in _REFUSED else None


class ReportedError(Exception):
    """A run that ended with an error, with the summary of what was measured before.

    ``told``: whether its results, with the error where they are JSON, were printed already.
    """

    def __init__(self, error: NicbenchError, summary: Summary | None, *, told: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.summary = summary
        self.told = told


def _write_traceback(text: str, folder: Path | None) -> str | None:
    if folder is not None:
        try:
            path = folder / ERROR
            write_atomically(path, text.encode(errors="backslashreplace"))
            return str(path)
        except (OSError, NicbenchError):
            pass  # a full disk may be the very error: the temporary folder is the second choice
    try:
        descriptor, name = tempfile.mkstemp(prefix="nicbench-error-", suffix=".txt", text=True)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except OSError:
        say(text)
        return None
    return name


def report(error: NicbenchError, *, as_json: bool, summary: Summary | None = None) -> int:
    """Prints the error and returns its exit status; in JSON, the results measured before it are included."""
    has_own_prefix = isinstance(error, InterruptedRunError | WrongFileError)
    prefix = "" if has_own_prefix else "error: "
    say(f"{prefix}{error}")
    if as_json:
        print_json(document(error, summary))
    return error.exit_status


def document(error: NicbenchError, summary: Summary | None = None) -> dict[str, Any]:
    """Returns the content of summary.json, as far as there is one, with ``error``."""
    content = summary.model_dump(mode="json") if summary is not None else {"title": None, "results": []}
    verdict = content["verdict"] if isinstance(error, UnwrittenError) and summary is not None else _INCOMPLETE
    problems = [_plain(one) for one in error.list_errors()] if isinstance(error, WrongFileError) else []
    return {
        **content,
        "format": FORMAT,
        "verdict": verdict,
        "error": {**_plain(error), "exit_status": error.exit_status, **({"problems": problems} if problems else {})},
    }


def usage_document() -> dict[str, Any]:
    """Returns the document for arguments that were refused before a command began; stderr has the details."""
    error = {"kind": "UsageError", "message": "wrong arguments", "place": None, "next": "see stderr", "exit_status": 2}
    return {"format": FORMAT, "title": None, "verdict": _INCOMPLETE, "results": [], "error": error}


def _plain(error: NicbenchError) -> dict[str, Any]:
    return {
        "kind": type(error).__name__,
        "message": error.message,
        "place": error.place,
        "next": error.next_step,
    }
