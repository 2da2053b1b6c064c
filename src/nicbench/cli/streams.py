"""stdout and stderr that may break: a reader that has seen enough, a full disk, a closed descriptor.

Results that cannot be written are an error; messages that cannot be written are nobody's loss, and break no run.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, TextIO, cast

from nicbench.errors import NicbenchError


class ReaderGoneError(Exception):
    """Whoever read stdout has seen enough (``| head -1``). No OSError, which typer would make an exit status of 1."""


class _Stream(ABC):
    """A text stream in the place of ``inner``, which is None where the descriptor was closed from the start."""

    def __init__(self, inner: TextIO | None) -> None:
        self._inner = inner

    def write(self, text: str) -> int:
        if self._inner is None:
            self._failed(OSError(errno.EBADF, os.strerror(errno.EBADF)))
        else:
            try:
                self._inner.write(self._in_its_encoding(text))
            except (OSError, ValueError) as error:  # ValueError: closed
                self._failed(error)
        return len(text)

    def _in_its_encoding(self, text: str) -> str:
        """A terminal that is not of UTF-8 gets a question mark for what it cannot show, and not no results."""
        encoding = getattr(self._inner, "encoding", None) or "utf-8"
        if getattr(self._inner, "errors", None) != "strict" or encoding.lower() in ("utf-8", "utf8"):
            return text
        return text.encode(encoding, "replace").decode(encoding)

    def write_bytes(self, content: bytes) -> None:
        if self._inner is None:
            self._failed(OSError(errno.EBADF, os.strerror(errno.EBADF)))
        else:
            try:
                self._inner.flush()
                self._inner.buffer.write(content)
            except (OSError, ValueError) as error:  # ValueError: closed
                self._failed(error)

    def flush(self) -> None:
        if self._inner is not None:
            try:
                self._inner.flush()
            except (OSError, ValueError) as error:
                self._failed(error)

    def isatty(self) -> bool:
        return self._inner is not None and not self._inner.closed and self._inner.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @abstractmethod
    def _failed(self, error: Exception) -> None:
        """What to do when the stream took no more."""

    def _drop_the_rest(self) -> None:
        """What is still buffered goes nowhere, so that the interpreter can flush it when it ends."""
        if self._inner is None:
            return
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._inner.fileno())
            os.close(nowhere)


class _Results(_Stream):
    def _failed(self, error: Exception) -> None:
        self._drop_the_rest()
        if isinstance(error, BrokenPipeError):
            raise ReaderGoneError from error
        why = getattr(error, "strerror", None) or str(error)
        raise NicbenchError(
            f"the results cannot be written: {why}",
            place="stdout",
            next_step="free some space, or send stdout elsewhere; the run's folder has the results as well",
        ) from error


class _Messages(_Stream):
    def _failed(self, error: Exception) -> None:
        self._drop_the_rest()


@contextlib.contextmanager
def streams_may_break() -> Iterator[None]:
    """Within it, stdout raises ReaderGoneError or NicbenchError where it fails, and stderr never raises."""
    results = cast(TextIO, _Results(cast("TextIO | None", sys.stdout)))
    messages = cast(TextIO, _Messages(cast("TextIO | None", sys.stderr)))
    with contextlib.redirect_stdout(results), contextlib.redirect_stderr(messages):
        yield
