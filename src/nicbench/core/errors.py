"""Every error nicbench raises on purpose; the type sets the exit status.

    NicbenchError            1  our own fault
    ├── UsageError           2  a wrong option or argument
    │   └── BenchFileError   2  the bench file, with line and column
    ├── NotReadyError        3  the machine is not ready (preflight)
    │   └── BusyError        3  somebody else is using it
    ├── HostError            4  a host or peer failed
    │   └── EngineError      4  the engine died or refused
    ├── NothingMeasuredError 5
    │   └── CannotTellError  5  runs cannot be compared: too little of them may be relied on
    ├── ThresholdError       6  a threshold was missed
    └── InterruptedRunError  130

Each says what failed (``message``), where (``place``: file:line:column, host, interface), what to do (``next_step``).
"""

from __future__ import annotations


class NicbenchError(Exception):
    """Base of all errors of nicbench; prints as ``place: message`` and the next step on a line of its own."""

    exit_status = 1

    def __init__(self, message: str, *, place: str | None = None, next_step: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.next_step = next_step

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        return f"{text}\n  next: {self.next_step}" if self.next_step else text


class UsageError(NicbenchError):
    """A wrong option or argument."""

    exit_status = 2


class BenchFileError(UsageError):
    """The bench file is wrong; ``place`` is file:line:column."""


class NotReadyError(NicbenchError):
    """The machine lacks something; ``next_step`` is the command that fixes it."""

    exit_status = 3


class BusyError(NotReadyError):
    """Another user or run is using a machine or a port; waiting helps."""


class HostError(NicbenchError):
    """A command on a host failed, or the host is gone."""

    exit_status = 4


class EngineError(HostError):
    """The engine died, hung, or answered with an error; ``kind`` is that of the protocol."""

    def __init__(
        self, message: str, *, kind: str = "died", place: str | None = None, next_step: str | None = None
    ) -> None:
        super().__init__(message, place=place, next_step=next_step)
        self.kind = kind


class NothingMeasuredError(NicbenchError):
    """The run ended without any result."""

    exit_status = 5


class CannotTellError(NothingMeasuredError):
    """It cannot be decided whether a run is worse than another."""


class ThresholdError(NicbenchError):
    """A threshold of the bench file was missed."""

    exit_status = 6


class InterruptedRunError(NicbenchError):
    """Ctrl-C or SIGTERM; what was measured is kept."""

    exit_status = 130


class UnknownFactError(Exception):
    """A host does not provide a fact; the message is the reason, and the fact becomes null."""
