"""Problems of a bench file: each with its line and column, all of them in one error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nicbench.core.errors import BenchFileError, Position, Problem, WrongFileError, quote, suggest

__all__ = ["Position", "Problem", "WrongBenchFileError", "merge_problems", "quote", "suggest"]


class WrongBenchFileError(WrongFileError, BenchFileError):
    """Every problem of one bench file, in the order of the file; ``place`` and ``message`` are those of the first."""

    kind = BenchFileError


def merge_problems(by_configuration: Mapping[str, Sequence[Problem]], of: int) -> list[Problem]:
    """The problems of all configurations, each once; one that not all ``of`` them have names those that do."""
    names_of: dict[Problem, list[str]] = {}
    for name, problems in by_configuration.items():
        for problem in dict.fromkeys(problems):
            names_of.setdefault(problem, []).append(name)
    return [
        problem
        if len(names) == of
        else replace(problem, message=f"configuration {_join_names(names)}: {problem.message}")
        for problem, names in names_of.items()
    ]


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(quote(name) for name in names)
