"""What is wrong in a file that a user wrote: each problem with its line and column, all of them in one error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import ClassVar, NamedTuple

from nicbench.core.errors import UsageError

MOST_PROBLEMS_SHOWN = 20
LONGEST_QUOTE = 60


class Position(NamedTuple):
    """Line and column in the file, both counted from 1, as editors do."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, what, and what to do about it."""

    position: Position
    message: str
    next_step: str | None = None


class WrongFileError(UsageError):
    """Every problem of one file, in the order of the file; ``place`` and ``message`` are those of the first."""

    kind: ClassVar[type[UsageError]] = UsageError
    """The messages of the problems, one each."""

    def __init__(self, path: str, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(sorted(problems, key=lambda problem: problem.position))
        first = self.problems[0]
        super().__init__(first.message, place=self._place_of(first), next_step=first.next_step)

    def _place_of(self, problem: Problem) -> str:
        return f"{self.path}:{problem.position.line}:{problem.position.column}"

    def list_errors(self) -> tuple[UsageError, ...]:
        """One error per problem."""
        return tuple(
            self.kind(problem.message, place=self._place_of(problem), next_step=problem.next_step)
            for problem in self.problems
        )

    def __str__(self) -> str:
        shown = [str(error) for error in self.list_errors()[:MOST_PROBLEMS_SHOWN]]
        hidden = len(self.problems) - len(shown)
        return "\n".join([*shown, f"... and {hidden} more problems"] if hidden else shown)


def quote(value: object) -> str:
    """Quotes a value of the file for a message, shortened."""
    text = json.dumps(value) if value is None or isinstance(value, bool) else str(value)
    text = " ".join(text.split())
    return f"`{text[:LONGEST_QUOTE]}...`" if len(text) > LONGEST_QUOTE else f"`{text}`"


def nearest_name(given: str, known: Sequence[str]) -> str | None:
    """Returns the known name most similar to the given one; None where none is."""
    close = get_close_matches(given, known, n=1, cutoff=0.6)
    return close[0] if close else None


def suggest(given: str, known: Sequence[str], noun: str = "key") -> str:
    """The next step after an unknown name: the closest known one, or all of them."""
    close = nearest_name(given, known)
    if close is not None:
        return f"did you mean `{close}`?"
    if not known:
        return f"remove it: no {noun}s are known here"
    return f"known {noun}s: {', '.join(f'`{name}`' for name in known)}"
