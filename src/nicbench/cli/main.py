"""The entry point. It loads nothing of nicbench before signals are heard: loading takes a part of a second."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _StoppedError(BaseException):
    """A signal; no Exception, which a module that is being loaded might catch."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status, which is 0 or that of the error (core/errors.py)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    umask = os.umask(0o077)
    os.umask(umask | 0o002)  # whatever is made, not everybody may write to it
    if arguments is None:
        _open_standard_streams()
    before = {number: signal.signal(number, _stop) for number in _SIGNALS}
    try:
        from nicbench.cli.app import run_command

        return run_command(given)
    except _StoppedError as stopped:
        _ignore_signals()
        from nicbench.cli.app import report_signal

        return report_signal(stopped.number, given)
    finally:
        _ignore_signals()  # the work is done, and so is what it says
        if arguments is not None:  # somebody else's process goes on
            os.umask(umask)
            for number, handler in before.items():
                signal.signal(number, handler)


def _open_standard_streams() -> None:
    """Opens /dev/null where one of them is closed: the next file would get its number, and what is written to it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest number that is free: this one


def _stop(number: int, _frame: object) -> NoReturn:
    raise _StoppedError(number)


def _ignore_signals() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
