"""A hook for tests: ends this process by SIGKILL at a chosen boundary of a journal write.

``NICBENCH_TEST_KILL_AT_JOURNAL_WRITE=7`` kills before the seventh write of this process, ``7:torn`` after half of its
line is in the file, ``7:after`` when it is safely on disk. Nothing but a test sets it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import Literal

from nicbench.errors import UsageError

Moment = Literal["before", "torn", "after"]
Boundary = Callable[[int, Moment], None]  # called with the number of the write, from 1, and the moment

VARIABLE = "NICBENCH_TEST_KILL_AT_JOURNAL_WRITE"
_MOMENTS: tuple[Moment, ...] = ("before", "torn", "after")


def from_environment(environment: Mapping[str, str] = os.environ) -> Boundary | None:
    """The boundary that the environment asks for, or None, as always outside tests."""
    text = environment.get(VARIABLE)
    if not text:
        return None
    number, _, moment = text.partition(":")
    chosen = next((known for known in _MOMENTS if known == (moment or "before")), None)
    if not number.isdecimal() or int(number) < 1 or chosen is None:
        raise UsageError(
            f"{VARIABLE}={text} is not understood", next_step="write n, n:before, n:torn or n:after, n from 1"
        )
    return kill_at(int(number), chosen)


def kill_at(number: int, moment: Moment) -> Boundary:
    """A boundary that kills this process, with no chance to tidy up."""

    def boundary(current_number: int, current_moment: Moment) -> None:
        if (current_number, current_moment) == (number, moment):
            os.kill(os.getpid(), signal.SIGKILL)

    return boundary
