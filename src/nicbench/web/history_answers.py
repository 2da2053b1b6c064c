"""What the views of many runs answer alike: what can be chosen, series of points, and figures as rows of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from nicbench.compare.history.figures import Measure
from nicbench.compare.history.selection import (
    ANY,
    CONFIGURATION,
    KEYS,
    PARAMETER,
    SCOPE,
    SETTING,
    Choice,
    Entry,
    Series,
    check_key,
    divide,
    label_of,
    parameters_of,
    tests_of,
    text_of,
    values_of,
)
from nicbench.core.errors import BusyError
from nicbench.store.listing import clean
from nicbench.web.history import Asked, History, Progress, Selected

MOST_SERIES: Final = 6
"""The most series that a chart shows; the others are counted."""
MOST_POINTS: Final = 4000
"""The most points of a chart; of more, the lowest and the highest of successive ones are shown."""
DEFAULT_KEYS: Final = ("title", "card")
COLUMNS: Final = ("series", "run", "at", "test", "configuration", "parameters", "value", "number", "lower", "upper",
                  "limited_by", "verdict")  # fmt: skip


def _plain(progress: Progress | None) -> dict[str, int] | None:
    """Returns how many of how many runs were read, while they are; else None."""
    return None if progress is None else {"done": progress.done, "of": progress.of}


def not_ready(history: History) -> dict[str, Any]:
    """The answer as long as nothing is known."""
    return {"ready": False, "reading": _plain(history.progress)}


def still_reading() -> BusyError:
    """The error of what must have every figure, or is not given at all."""
    return BusyError("the runs are still being read", next_step="ask again in a moment")


def keys_of(asked: Asked, choice: Choice) -> tuple[str, ...]:
    """Returns the keys that divide the figures: those asked for, and those that must never be mixed.

    UsageError for a key that is none.
    """
    wanted = DEFAULT_KEYS if asked.by is None else tuple(check_key(key, "by") for key in asked.by)
    open_ones = tuple(PARAMETER + name for name, value in choice.given.items() if value == ANY)
    return tuple(dict.fromkeys((*wanted, CONFIGURATION, SCOPE, *open_ones)))


def series_of(selected: Selected, keys: Sequence[str]) -> list[Series]:
    """Divides what was selected."""
    return divide(selected.entries, keys, selected.known.setting_of)


def about(asked: Asked, selected: Selected) -> dict[str, Any]:
    """Returns what was chosen and what could be chosen instead."""
    choice, every = selected.choice, selected.known.measures.values()
    values = values_of(every, choice.test)
    same = [each for each in every if each.test == choice.test and each.told.value == choice.value]
    parameters = parameters_of(same)
    told = values[choice.value].told
    keys = [*KEYS, *(PARAMETER + name for name in parameters), *(SETTING + path for path in selected.known.varying)]
    return {
        "ready": True,
        "reading": _plain(selected.reading),
        "test": choice.test,
        "value": choice.value,
        "label": told.head,
        "unit": told.unit,
        "higher_is_better": told.higher_is_better,
        "given": dict(choice.given),
        "by": list(DEFAULT_KEYS if asked.by is None else asked.by),
        "tests": tests_of(every),
        "values": [
            {"name": name, "label": each.told.head, "unit": each.told.unit, "main": each.told.is_main}
            for name, each in values.items()
        ],
        "parameters": {name: [text_of(value) for value in found] for name, found in parameters.items()},
        "keys": [{"key": key, "label": label_of(key)} for key in keys],
    }


def points(entries: Sequence[Entry]) -> dict[str, list[Any]]:
    """Returns the points of a series as columns."""
    return {
        "at": [entry.at_s for entry in entries],
        "number": [entry.figure.number for entry in entries],
        "lower": [entry.figure.lower for entry in entries],
        "upper": [entry.figure.upper for entry in entries],
        "verdict": [entry.figure.verdict for entry in entries],
        "run": [entry.run.name for entry in entries],
    }


def thin(entries: Sequence[Entry], most: int) -> Sequence[Entry]:
    """Returns at most so many: of equal numbers of successive ones the lowest and the highest, in their order."""
    if len(entries) <= most:
        return entries
    size = -(-2 * len(entries) // most)
    kept: list[Entry] = []
    for begin in range(0, len(entries), size):
        places = sorted(
            range(begin, min(begin + size, len(entries))), key=lambda place: entries[place].figure.number_or_bound
        )
        ends = {places[0], places[-1]}
        kept += [entries[place] for place in sorted(ends)]
    return kept


def parameters_in_words(measure: Measure) -> str:
    """Returns the parameters of a point as the cell of a table."""
    return clean("; ".join(f"{name}={text_of(value)}" for name, value in measure.parameters.items()))


def rows(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """Yields every figure of the series, by the names of ``COLUMNS``."""
    for each in series:
        for entry in each.entries:
            figure, measure = entry.figure, entry.measure
            yield {
                "series": each.name,
                "run": entry.run.name,
                "at": entry.run.at,
                "test": measure.test,
                "configuration": measure.configuration,
                "parameters": parameters_in_words(measure),
                "value": measure.told.value,
                "number": figure.number,
                "lower": figure.lower,
                "upper": figure.upper,
                "limited_by": figure.limited_by,
                "verdict": figure.verdict,
            }
