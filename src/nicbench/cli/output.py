"""Sends results to stdout and everything else to stderr, and handles streams that break."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TextIO, cast

from nicbench.core.errors import NicbenchError
from nicbench.core.redaction import visible_in_json

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console


FORMAT = "1.0"
WIDTH_OF_A_FILE = 160
"""The width of tables where stdout is a file or a pipe: rich would cut them to 80 columns."""


class ReaderGoneError(Exception):
    """The reader of stdout closed the pipe (``| head -1``). It is not an OSError, for which typer would exit with 1."""


class _Stream(ABC):
    """A text stream that wraps ``inner``, or None if the descriptor was closed from the start."""

    def __init__(self, inner: TextIO | None) -> None:
        self._inner = inner

    def write(self, text: str) -> int:
        if self._inner is None:
            self._handle_failure(OSError(errno.EBADF, os.strerror(errno.EBADF)))
        elif text != "":  # typer writes nothing to test a stream, and would hide the error of a full disk
            try:
                self._inner.write(self._encodable(text))
            except (OSError, ValueError) as error:  # ValueError: the stream is closed
                self._handle_failure(error)
        return len(text)

    def _encodable(self, text: str) -> str:
        """Replaces what a terminal without UTF-8 cannot show by question marks."""
        encoding = getattr(self._inner, "encoding", None) or "utf-8"
        if getattr(self._inner, "errors", None) != "strict" or encoding.lower() in ("utf-8", "utf8"):
            return text
        return text.encode(encoding, "replace").decode(encoding)

    def write_bytes(self, content: bytes) -> None:
        if self._inner is None:
            self._handle_failure(OSError(errno.EBADF, os.strerror(errno.EBADF)))
        else:
            try:
                self._inner.flush()
                self._inner.buffer.write(content)
            except (OSError, ValueError) as error:  # ValueError: closed
                self._handle_failure(error)

    def flush(self) -> None:
        if self._inner is not None:
            try:
                self._inner.flush()
            except (OSError, ValueError) as error:
                self._handle_failure(error)

    def isatty(self) -> bool:
        return self._inner is not None and not self._inner.closed and self._inner.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @abstractmethod
    def _handle_failure(self, error: Exception) -> None:
        """Handles a failed write."""

    def _discard_buffer(self) -> None:
        """Sends what is still buffered to /dev/null, so that the interpreter can flush it when it ends."""
        if self._inner is None:
            return
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._inner.fileno())
            os.close(nowhere)


class _Results(_Stream):
    """Stdout: results that cannot be written are an error."""

    def _handle_failure(self, error: Exception) -> None:
        self._discard_buffer()
        if isinstance(error, BrokenPipeError):
            raise ReaderGoneError from error
        why = getattr(error, "strerror", None) or str(error)
        raise NicbenchError(
            f"the results cannot be written: {why}",
            place="stdout",
            next_step="free some space, or send stdout elsewhere; the run's folder has the results as well",
        ) from error


class _Messages(_Stream):
    """Stderr: messages that cannot be written are dropped, and break no run."""

    def _handle_failure(self, error: Exception) -> None:
        self._discard_buffer()


@contextlib.contextmanager
def streams_may_break() -> Iterator[None]:
    """Makes a failing stdout raise ReaderGoneError or NicbenchError, and a failing stderr raise nothing."""
    results = cast(TextIO, _Results(cast("TextIO | None", sys.stdout)))
    messages = cast(TextIO, _Messages(cast("TextIO | None", sys.stderr)))
    with contextlib.redirect_stdout(results), contextlib.redirect_stderr(messages):
        yield


def results() -> Console:
    """Returns the console for tables."""
    from nicbench.cli.console import VisibleConsole

    return VisibleConsole(file=sys.stdout, width=None if sys.stdout.isatty() else WIDTH_OF_A_FILE)


_shared: list[Console] = []
"""The console of a live view that is on the terminal, the last one: what others say must be printed above it."""


@contextlib.contextmanager
def messages_share(console: Console) -> Iterator[None]:
    """Sends all messages through this console, which shows a live view, for as long as it does."""
    _shared.append(console)
    try:
        yield
    finally:
        _shared.remove(console)


def messages() -> Console:
    """Returns the console for progress, notes and errors."""
    if _shared:
        return _shared[-1]
    from nicbench.cli.console import VisibleConsole

    return VisibleConsole(file=sys.stderr, soft_wrap=True)


def print_line(text: str, console: Console | None = None) -> None:
    """Prints one line of results literally, with brackets not taken for markup, and without breaking it."""
    (console or results()).print(text, markup=False, soft_wrap=True)


def print_table(
    console: Console, heads: Iterable[str], rows: Iterable[Iterable[str]], title: str | None = None
) -> None:
    """Prints a table of literal texts, in which long cells are folded."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(header_style="bold", title=title, title_justify="left", title_style="bold")
    for head in heads:
        table.add_column(escape(head), overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


def say(text: str) -> None:
    """Prints one message literally, with brackets not taken for markup."""
    messages().print(text, markup=False)


def print_json(content: BaseModel | dict[str, Any]) -> None:
    """Prints one JSON document on stdout."""
    plain = content if isinstance(content, dict) else content.model_dump(mode="json")
    sys.stdout.write(visible_in_json(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)) + "\n")
    sys.stdout.flush()


def write_bytes(content: bytes) -> None:
    """Writes a file's content to stdout unchanged; errors are those of ``streams_may_break``."""
    to = getattr(sys.stdout, "write_bytes", None) or sys.stdout.buffer.write
    to(content)
    sys.stdout.flush()
