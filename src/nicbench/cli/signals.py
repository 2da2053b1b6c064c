"""What a signal does: it is noted, and ends the command once, by an exception where one can be raised.

An exception that a handler raises in a destructor is lost, and the command would go on. There the signal is only noted,
and heard a moment later. While an event loop runs, the loop hears signals instead (``failure.run_to_the_end``).
Nothing of nicbench is loaded here: signals are heard before that.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from types import FrameType
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
WHOLE_PROCESS: Final = ContextVar("WHOLE_PROCESS", default=False)
"""Whether the command is all that this process does."""
_AGAIN_S: Final = 0.01


class StoppedError(BaseException):
    """A signal; no Exception, which a library, or a module that is being loaded, might catch."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def words(self) -> str:
        """The message about the signal."""
        return f"stopped by {signal.Signals(self.number).name}"


class _Noted:
    """The first signal that came, until the command has ended by it."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.before: dict[int, Any] = {}
        """The handlers of whoever called."""

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Notes a signal and raises StoppedError, now or as soon as no destructor runs."""
        if self.number is None:
            self.number = number
        self.raise_or_wait(frame)

    def raise_or_wait(self, frame: FrameType | None) -> None:
        """Raises what was noted, unless the interrupted code is a destructor's, which would lose it."""
        if self.number is None:
            return
        if _is_destructor(frame):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
            return
        raise StoppedError(self.number)


_noted = _Noted()


def _is_destructor(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def signals_are_heard() -> Iterator[None]:
    """Makes signals end the block by a StoppedError; afterwards they are ignored, as what is left is to say so."""
    _noted.number = None
    before: dict[int, Any] = {number: signal.signal(number, _noted.hear) for number in SIGNALS}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, lambda _, frame: _noted.raise_or_wait(frame))
    hook = sys.unraisablehook

    def hear_again(lost: Any) -> None:  # a callback of a weak reference, a destructor without a frame
        if isinstance(lost.exc_value, StoppedError):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            hook(lost)

    sys.unraisablehook = hear_again
    try:
        yield
    finally:
        ignore_signals()
        sys.unraisablehook = hook
        _noted.before = before


def ignore_signals() -> None:
    """Ignores all further signals."""
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def give_back_signals() -> None:
    """Gives the handlers back that were there before: somebody else's process goes on."""
    for number, handler in _noted.before.items():
        signal.signal(number, handler)


def take_noted() -> int | None:
    """Returns a signal that was noted and has ended nothing yet: whoever takes it ends the command."""
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    number, _noted.number = _noted.number, None
    return number


@contextlib.contextmanager
def signals_wait() -> Iterator[None]:
    """Lets signals wait until the end of the block, in which handlers are changed: none is lost between two."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
