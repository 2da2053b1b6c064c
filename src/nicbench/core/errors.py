"""Every error nicbench raises on purpose; the type sets the exit status.

    NicbenchError            1  our own fault
    ├── UsageError           2  a wrong option or argument
    │   └── BenchFileError   2  the bench file, with line and column
    ├── NotReadyError        3  the machine is not ready (preflight)
    │   └── BusyError        3  somebody else is using it
    ├── HostError            4  a host or peer failed
    │   ├── EngineError      4  the engine died or refused
    │   ├── ToolsFailedError 4  every tool of every round failed
    │   └── LostFolderError  4  somebody deleted the run folder
    ├── NothingMeasuredError 5  the run came to its end without a figure
    │   └── CannotTellError  5  runs cannot be compared: too little of them may be relied on
    ├── ThresholdError       6  a threshold was missed, or a known rate not found
    ├── UnwrittenError       7  everything was measured, and what is made of it could not be written
    └── InterruptedRunError  130

Each says what failed (``message``), where (``place``: file:line:column, host, interface), what to do (``next_step``).

One that is wrong in a file that a user wrote has all its problems at once, each with its line and column.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import ClassVar, NamedTuple

from nicbench.core.frozen import frozen


class NicbenchError(Exception):
    """Base of all errors of nicbench; prints as ``place: message``, with the next step on a line of its own."""

    exit_status = 1
    may_resume: ClassVar[bool] = True
    """Whether ``nicbench resume`` would measure what is missing; not where the run came to its end."""

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
    """A mistake in the bench file; ``place`` is file:line:column."""


class NotReadyError(NicbenchError):
    """The machine lacks something that the run needs; ``next_step`` is the command that fixes it."""

    exit_status = 3


class BusyError(NotReadyError):
    """Another user or run is using a machine or a port; waiting helps."""


class HostError(NicbenchError):
    """A command on a host failed, or the host cannot be reached any more."""

    exit_status = 4


class EngineError(HostError):
    """The engine died, hung, or answered with an error; ``kind`` is the error kind of the protocol."""

    def __init__(
        self, message: str, *, kind: str = "died", place: str | None = None, next_step: str | None = None
    ) -> None:
        super().__init__(message, place=place, next_step=next_step)
        self.kind = kind


class ToolsFailedError(HostError):
    """The run came to its end, and every tool of every round failed."""

    may_resume = False


class LostFolderError(HostError):
    """Somebody deleted the run folder while the run went on."""

    may_resume = False


class NothingMeasuredError(NicbenchError):
    """The run came to its end without any figure."""

    exit_status = 5
    may_resume = False


class CannotTellError(NothingMeasuredError):
    """The runs do not allow a decision on whether one is worse than another."""


class ThresholdError(NicbenchError):
    """A threshold was missed, or a known rate was not found."""

    exit_status = 6


class UnwrittenError(NicbenchError):
    """Everything was measured and is kept; a file that is made of it, such as the report, could not be written."""

    exit_status = 7
    may_resume = False


class InterruptedRunError(NicbenchError):
    """The run was ended by Ctrl-C or SIGTERM; what was measured is kept."""

    exit_status = 130


class UnknownFactError(Exception):
    """A host does not provide a fact; the message is the reason, and the fact becomes null."""


def explain(error: BaseException) -> str:
    """Says in one line why something failed, for an error of any type."""
    if isinstance(error, NicbenchError):
        return error.message
    if isinstance(error, MemoryError):
        return "it needs more memory than it may have"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


MOST_PROBLEMS_SHOWN = 20
LONGEST_QUOTE = 60


class Position(NamedTuple):
    """Line and column in a file, both counted from 1, as editors do."""

    line: int
    column: int
    path: str = ""
    """The file, where it is another than the one that is read: what was merged in stands there."""


@frozen
class Problem:
    """One mistake in a file: its position, what is wrong, and what to do about it.

    ``flags`` are options of the command line that would settle it.
    """

    position: Position
    message: str
    next_step: str | None = None
    flags: tuple[str, ...] = ()


class WrongFileError(UsageError):
    """All problems of one file, in the order of the file; ``place`` and ``message`` are those of the first problem."""

    kind: ClassVar[type[UsageError]] = UsageError
    """The type of the errors that ``list_errors`` returns, one for each problem."""

    def __init__(self, path: str, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.position.path, *problem.position)))
        first = self.problems[0]
        super().__init__(first.message, place=self._place_of(first), next_step=first.next_step)

    def _place_of(self, problem: Problem) -> str:
        return f"{problem.position.path or self.path}:{problem.position.line}:{problem.position.column}"

    def list_errors(self) -> tuple[UsageError, ...]:
        """Returns one error for each problem."""
        return tuple(
            self.kind(problem.message, place=self._place_of(problem), next_step=problem.next_step)
            for problem in self.problems
        )

    def __str__(self) -> str:
        shown = [str(error) for error in self.list_errors()[:MOST_PROBLEMS_SHOWN]]
        hidden = len(self.problems) - len(shown)
        lines = [*shown, f"... and {hidden} more problems"] if hidden else shown
        flags = list(dict.fromkeys(problem.flags for problem in self.problems if problem.flags))
        added = shlex.join(word for pair in flags for word in pair)
        return "\n".join([*lines, f"try it with: {added}"] if flags else lines)


def quote(value: object) -> str:
    """Quotes a value from a file for a message, shortened."""
    text = json.dumps(value) if value is None or isinstance(value, bool) else str(value)
    text = " ".join(text.split())
    return f"`{text[:LONGEST_QUOTE]}...`" if len(text) > LONGEST_QUOTE else f"`{text}`"


def nearest_name(given: str, known: Sequence[str]) -> str | None:
    """Returns the known name that was probably meant; None where none is similar.

    A name that is all but equal comes first, then one whose words the given name has among others
    ("rfc2544-throughput"), then one that is spelt alike, then the only one with the words of the given name ("loss").
    """
    all_but_equal, alike = (get_close_matches(given, known, n=1, cutoff=cutoff) for cutoff in (0.9, 0.6))
    words = _words(given)
    fewer = [name for name in known if _words(name) and _words(name) <= words]
    more = [name for name in known if words and words <= _words(name)]
    found = (*all_but_equal, *sorted(fewer, key=len, reverse=True), *alike, *(more if len(more) == 1 else ()))
    return found[0] if found else None


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", name.casefold()))


def plural(noun: str) -> str:
    """Returns the plural of a noun: "keys", "mixes", "searches"."""
    return f"{noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def suggest(given: str, known: Sequence[str], noun: str = "key") -> str:
    """Returns the next step after an unknown name: the closest known name, or all known names."""
    close = nearest_name(given, known)
    if close is not None:
        return f"did you mean `{close}`?"
    if not known:
        return f"remove it: no {plural(noun)} are known here"
    return f"known {plural(noun)}: {', '.join(f'`{name}`' for name in known)}"
