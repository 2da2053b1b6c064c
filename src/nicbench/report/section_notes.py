"""The sentences below a table; where configurations stand side by side, with the configuration and run that each is
about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from nicbench.core.result import Result
from nicbench.core.table import ResultTable

_MOST_RUNS: Final = 8
"""The most sentences about single runs; the others stand with their runs."""
_Said = tuple[str, str, Result]


def notes_of(results: Iterable[Result], table: ResultTable) -> tuple[str, ...]:
    """Returns each sentence once."""
    return tuple(dict.fromkeys(f"{about}: {text}" for about, text, _ in _notes_in(results, table)))


def notes_beside(
    over: Sequence[Result], single: Sequence[Result], table: ResultTable, name: Callable[[Result], str]
) -> tuple[str, ...]:
    """Returns the sentences about several configurations; ``name`` gives the name of a row. Where runs differ in what
    they say, each run has its own sentence.
    """
    rows: dict[str, list[str]] = {}
    for about, text, result in _notes_in(over, table):
        rows.setdefault(f"{about}: {text}", []).append(name(result))
    notes = [text if len(named) == len(over) else f"{text} ({'; '.join(named)})" for text, named in rows.items()]
    settled = {(result.configuration, about, name(result)) for about, _, result in _notes_in(over, table)}
    of_runs = [
        f"{about}, {name(result)}, run {result.run}: {text}"
        for about, text, result in _notes_in(single, table)
        if result.run is not None and (result.configuration, about, name(result)) not in settled
    ]
    more = len(of_runs) - _MOST_RUNS
    rest = [f"{more} more notes stand with each run by itself, below"] if more > 0 else []
    return (*notes, *of_runs[:_MOST_RUNS], *rest)


def _notes_in(results: Iterable[Result], table: ResultTable) -> list[_Said]:
    results = tuple(results)
    found = ((about, result.values.get(value), result) for value, about in table.notes for result in results)
    return [(about, text, result) for about, text, result in found if isinstance(text, str)]
