"""One value against something else: the axis of a chart, which is numbers, times or words, and what must be divided."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nicbench.compare.history.figures import Figure
from nicbench.compare.history.selection import (
    PARAMETER,
    RUN_KEYS,
    TIME,
    UNKNOWN,
    VALUE,
    Entry,
    SettingOf,
    parameters_of,
    reader_of,
    text_of,
)
from nicbench.core.errors import UsageError

MOST_WORDS: Final = 200
"""The most words of an axis of words."""
_LOADS: Final = (f"{VALUE}load_", f"{VALUE}offered_")
"""Values that say the load, as the parameters of a load do."""
OtherOf = Callable[[Entry], Figure | None]


@dataclass(frozen=True, slots=True)
class Axis:
    """Where figures stand: ``places`` for each entry, None where it has none; of words they are numbers from 0.

    ``below`` says of each whether its place is a bound, and the true one lies below it; empty where none does.
    """

    kind: Literal["number", "time", "words"]
    places: tuple[float | None, ...]
    words: tuple[str, ...] = ()
    below: tuple[bool, ...] = ()


def axis_of(key: str, entries: Sequence[Entry], setting_of: SettingOf, other_of: OtherOf) -> Axis:
    """Returns the axis of a key; ``other_of`` gives the other value of the result where the key is one.

    UsageError where there are more words than can stand beside each other.
    """
    if key == TIME:
        return Axis("time", tuple(entry.at_s for entry in entries))
    if key.startswith(VALUE):
        others = tuple(map(other_of, entries))
        return Axis(
            "number",
            tuple(None if other is None else other.number_or_bound for other in others),
            below=tuple(other is not None and other.is_only_below for other in others),
        )
    texts = list(map(reader_of(key, setting_of), entries))
    numbers = {} if key in RUN_KEYS else {text: _number(text) for text in set(texts) - {UNKNOWN}}
    if numbers and all(number is not None for number in numbers.values()):
        return Axis("number", tuple(numbers.get(text) for text in texts))
    words = sorted(set(texts), key=lambda text: (text == UNKNOWN, _parts(text)))
    if len(words) > MOST_WORDS:
        raise UsageError(
            f"has {len(words)} different values, too many to stand side by side",
            place="x",
            next_step="choose fewer runs by the filters, or another x",
        )
    at = {word: float(place) for place, word in enumerate(words)}
    return Axis("words", tuple(at[text] for text in texts), tuple(words))


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _parts(text: str) -> list[tuple[int, int, str]]:
    """A text as it is put in order: numbers in it by their size, so that 6.9 comes before 6.12."""
    parts: list[tuple[int, int, str]] = []
    digits = ""
    for letter in f"{text.casefold()}\0":
        if letter.isdecimal() and len(digits) < 18:
            digits += letter
            continue
        if digits:
            parts.append((0, int(digits), ""))
            digits = ""
        parts.append((1, 0, letter))
    return parts


def divided_by(key: str, entries: Sequence[Entry]) -> tuple[str, ...]:
    """Returns the parameters by which figures must be divided: those that differ where ``key`` does not.

    Figures that differ in them are not of one line: 64 and 1518 bytes in a chart of losses against the load.
    """
    measures = list({entry.measure: None for entry in entries})
    names = [name for name in parameters_of(measures) if PARAMETER + name != key]
    if key.startswith(_LOADS):
        names = [name for name in names if not name.startswith("load_")]
    if not key.startswith(PARAMETER):
        return tuple(PARAMETER + name for name in names)
    shown = key.removeprefix(PARAMETER)
    return tuple(
        PARAMETER + name for name in names if not _follows(name, shown, [each.parameters for each in measures])
    )


def _follows(name: str, shown: str, given: Sequence[Mapping[str, object]]) -> bool:
    """Whether a parameter says the same as another in other words: one value of it for each of the other's."""
    found: dict[str, set[str]] = {}
    for each in given:
        found.setdefault(text_of(each.get(shown)), set()).add(text_of(each.get(name)))
    return len(found) > 1 and all(len(values) == 1 for values in found.values())
