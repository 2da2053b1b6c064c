"""An error becomes a message, an exit status and, where asked, a JSON document. The type of the error decides."""

from __future__ import annotations

import errno
import os
import tempfile
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nicbench import __version__
from nicbench.cli.output import FORMAT, print_json, say
from nicbench.errors import InterruptedRunError, NicbenchError, UsageError
from nicbench.problems import WrongFileError
from nicbench.store.files import storage_error, write_atomically
from nicbench.store.names import ERROR

if TYPE_CHECKING:
    from nicbench.model.result import Summary

_INCOMPLETE = "incomplete"
"""``ResultVerdict.INCOMPLETE``: what fails has no verdict of its own, and need not load the models of results."""
REPORT_IT = "please report it with the text of that file; what was measured is kept"


class CrashError(NicbenchError):
    """An exception nobody expected: our own fault, exit status 1. ``place`` is the file that holds its traceback."""

    @classmethod
    def of(cls, error: BaseException, folder: Path | None = None) -> CrashError:
        """Writes the traceback to the run's folder, or to a temporary file, and says where it is."""
        text = f"nicbench {__version__}, {datetime.now(UTC).isoformat(timespec='seconds')}\n\n"
        text += "".join(traceback.format_exception(error))
        what = str(error).strip().splitlines()[0] if str(error).strip() else "no message"
        return cls(f"nicbench failed: {type(error).__name__}: {what}", place=_write(text, folder), next_step=REPORT_IT)


_REFUSED: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ELOOP}
)
"""What a machine says of a file, and no program can be blamed for."""
_SHOWN = 80
"""Of a name that is too long: its beginning."""


def of_system(error: OSError) -> NicbenchError | None:
    """The error for a file that the machine would not have looked at, made or read; None where it may be our fault."""
    if not isinstance(error.filename, str):
        return None
    if error.errno == errno.ENAMETOOLONG:
        return UsageError(
            f"is a name of {len(error.filename)} characters, too long for a file",
            place=f"{error.filename[:_SHOWN]}...",
            next_step="give a shorter one",
        )
    return storage_error(error, Path(error.filename)) if error.errno in _REFUSED else None


class ReportedError(Exception):
    """A run that ended with an error, and the summary of what it had measured until then."""

    def __init__(self, error: NicbenchError, summary: Summary | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.summary = summary


def _write(text: str, folder: Path | None) -> str | None:
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
    """Tells the user; gives the exit status. As JSON, what was measured until then stands beside the error."""
    speaks_for_itself = isinstance(error, InterruptedRunError | WrongFileError)
    prefix = "" if speaks_for_itself else "error: "
    say(f"{prefix}{error}")
    if as_json:
        print_json(document(error, summary))
    return error.exit_status


def document(error: NicbenchError, summary: Summary | None = None) -> dict[str, Any]:
    """The content of summary.json, as far as there is one, with ``error``."""
    kept = summary.model_dump(mode="json") if summary is not None else {"title": None, "results": []}
    problems = [_plain(one) for one in error.each()] if isinstance(error, WrongFileError) else []
    return {
        **kept,
        "format": FORMAT,
        "verdict": _INCOMPLETE,
        "error": {**_plain(error), "exit_status": error.exit_status, **({"problems": problems} if problems else {})},
    }


def usage_document() -> dict[str, Any]:
    """The document for arguments that were refused before a command began; stderr says which."""
    error = {"kind": "UsageError", "message": "wrong arguments", "place": None, "next": "see stderr", "exit_status": 2}
    return {"format": FORMAT, "title": None, "verdict": _INCOMPLETE, "results": [], "error": error}


def _plain(error: NicbenchError) -> dict[str, Any]:
    return {
        "kind": type(error).__name__,
        "message": error.message,
        "place": error.place,
        "next": error.next_step,
    }
