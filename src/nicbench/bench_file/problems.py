"""What is wrong in a bench file: each problem with its line and column, all of them in one error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nicbench.errors import BenchFileError
from nicbench.problems import Position, Problem, WrongFileError, quote, suggest

__all__ = ["Position", "Problem", "WrongBenchFileError", "quote", "suggest", "told_once"]


class WrongBenchFileError(WrongFileError, BenchFileError):
    """Every problem of one bench file, in the order of the file; ``place`` and ``message`` are those of the first."""

    kind = BenchFileError


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
