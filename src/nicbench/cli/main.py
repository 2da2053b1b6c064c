"""The entry point. It loads nothing of nicbench before signals are heard: loading takes a part of a second."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from nicbench.cli.signals import WHOLE_PROCESS, StoppedError, give_back_signals, ignore_signals, signals_are_heard


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status, which is 0 or that of the error (core/errors.py)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    umask = os.umask(0o077)
    os.umask(umask | 0o002)  # whatever is made, not everybody may write to it
    WHOLE_PROCESS.set(arguments is None)
    if arguments is None:
        _open_standard_streams()
        gc.set_threshold(50_000, 20, 100)  # what is loaded stays: looking through it all the time is a tenth of a start
    try:
        with signals_are_heard():
            return _run(given, whole_process=arguments is None)
    except StoppedError as stopped:
        ignore_signals()
        from nicbench.cli.app import report_signal

        return report_signal(stopped, given)
    finally:
        ignore_signals()  # the work is done, and so is what it says
        if arguments is not None:  # somebody else's process goes on
            os.umask(umask)
            give_back_signals()


def _run(given: list[str], *, whole_process: bool) -> int:
    if whole_process and os.geteuid() == 0:
        from nicbench.cli.confining import confine

        status = confine(given)
        if status is not None:
            return status
    from nicbench.cli.app import run_command

    return run_command(given)


def _open_standard_streams() -> None:
    """Opens /dev/null where one of them is closed: the next file would get its number, and what is written to it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest number that is free: this one
