"""The wish that a run ends after its present test: the file ``.stop-after-test`` in its folder.

Whoever may write to the folder may ask for it, from any machine that shares it: ``touch RUN/.stop-after-test`` does the
same. The controller looks for it before it begins a test. An interruption at once is a signal, SIGTERM or Ctrl-C.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from nicbench.core.errors import InterruptedRunError
from nicbench.store.files import hands, storage_error

NAME: Final = ".stop-after-test"


def ask_to_stop(folder: Path) -> None:
    """Asks the run of this folder to end after its present test. HostError where the folder cannot be written to."""
    path = folder / NAME
    try:
        os.close(hands().open_to_append(path))
    except OSError as error:
        raise storage_error(error, path) from error


def is_asked_to_stop(folder: Path) -> bool:
    """Whether somebody asked for it."""
    return (folder / NAME).is_file()


def forget_request(folder: Path) -> None:
    """Removes the request: it was honoured, or it is of an earlier session of the run."""
    (folder / NAME).unlink(missing_ok=True)


def end_where_asked(folder: Path, following: str) -> None:
    """Raises InterruptedRunError where the run is to end before what follows; the request is then done with."""
    if is_asked_to_stop(folder):
        forget_request(folder)
        raise InterruptedRunError(f"stopped before {following}, as somebody asked for")
