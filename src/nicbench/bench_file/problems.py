"""What is wrong in a bench file: each problem with its line and column, all of them in one error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import NamedTuple

from nicbench.errors import BenchFileError

MOST_PROBLEMS_SHOWN = 20
LONGEST_QUOTE = 60


class Position(NamedTuple):
    """Line and column in the bench file, both counted from 1, as editors do."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, what, and what to do about it."""

    position: Position
    message: str
    next_step: str | None = None


class WrongBenchFileError(BenchFileError):
    """Every problem of one bench file, in the order of the file; ``place`` and ``message`` are those of the first."""

    def __init__(self, path: str, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(sorted(problems, key=lambda problem: problem.position))
        first = self.problems[0]
        super().__init__(first.message, place=self._place_of(first), next_step=first.next_step)

    def _place_of(self, problem: Problem) -> str:
        return f"{self.path}:{problem.position.line}:{problem.position.column}"

    def each(self) -> tuple[BenchFileError, ...]:
        """One error per problem."""
        return tuple(
            BenchFileError(problem.message, place=self._place_of(problem), next_step=problem.next_step)
            for problem in self.problems
        )

    def __str__(self) -> str:
        shown = [str(error) for error in self.each()[:MOST_PROBLEMS_SHOWN]]
        hidden = len(self.problems) - len(shown)
        return "\n".join([*shown, f"... and {hidden} more problems"] if hidden else shown)


def told_once(by_configuration: Mapping[str, Sequence[Problem]], of: int) -> list[Problem]:
    """The problems of all configurations; one that not all ``of`` them have says whose it is."""
    whose: dict[Problem, list[str]] = {}
    for name, problems in by_configuration.items():
        for problem in dict.fromkeys(problems):
            whose.setdefault(problem, []).append(name)
    return [
        problem if len(names) == of else replace(problem, message=f"configuration {_and(names)}: {problem.message}")
        for problem, names in whose.items()
    ]


def _and(names: Sequence[str]) -> str:
    return " and ".join(quote(name) for name in names)


def quote(value: object) -> str:
    """``value`` as it stands in the file, shortened, for a message."""
    text = json.dumps(value) if value is None or isinstance(value, bool) else str(value)
    text = " ".join(text.split())
    return f"`{text[:LONGEST_QUOTE]}...`" if len(text) > LONGEST_QUOTE else f"`{text}`"


def suggest(given: str, known: Sequence[str], noun: str = "key") -> str:
    """The next step after an unknown name: the closest known one, or all of them."""
    close = get_close_matches(given, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    if not known:
        return f"remove it: no {noun}s are known here"
    return f"known {noun}s: {', '.join(f'`{name}`' for name in known)}"
