"""Which figures are shown, in which series: a test, a value, parameters, and what divides them. Pure.

A key names what a figure is told apart by: ``parameter:NAME`` of its point, ``setting:PATH`` of its run, another
``value:NAME`` of the same result, or a name of ``RUN_KEYS``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from nicbench.compare.history.figures import Figure, Measure
from nicbench.compare.history.run_settings import FIRMWARE
from nicbench.core.errors import UsageError
from nicbench.stats.sample import MOST
from nicbench.store.listing import RunHeadline, clean

RUN_KEYS: Final[Mapping[str, Callable[[RunHeadline], str]]] = {
    "title": lambda run: run.title or run.run_id,
    "card": lambda run: ", ".join(run.cards),
    "driver": lambda run: ", ".join(run.drivers),
    "kernel": lambda run: ", ".join(run.kernels),
    "tag": lambda run: ", ".join(run.tags),
    "nicbench": lambda run: run.nicbench_version or "",
}
"""What a run says of itself by which its figures are divided."""
TIME: Final = "time"
CONFIGURATION, SCOPE = "configuration", "scope"
_OF_MEASURE: Final[Mapping[str, Callable[[Measure], str]]] = {
    CONFIGURATION: lambda measure: measure.configuration,
    SCOPE: lambda measure: measure.scope,
}
PARAMETER, SETTING, VALUE = "parameter:", "setting:", "value:"
KEYS: Final = (*RUN_KEYS, FIRMWARE, CONFIGURATION)
ANY: Final = "*"
"""Of a parameter: each of its values."""
UNKNOWN: Final = "not known"


class Entry(NamedTuple):
    """A figure with its run and its measure; ``at_s`` are seconds since 1970 in UTC, None where it is not known."""

    figure: Figure
    run: RunHeadline
    measure: Measure
    at_s: float | None
    place: int = 0
    """Which result of the run it belongs to."""


@dataclass(frozen=True, slots=True)
class Series:
    """Figures that belong together: ``name`` says what they have in common and others have not."""

    name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """What is shown. ``given`` are conditions on parameters of points, by name."""

    test: str
    value: str
    given: Mapping[str, str] = field(default_factory=dict)


def text_of(value: Any) -> str:
    """Returns the value of a parameter as an address and a list of choices have it; of 10.0 that is 10."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return clean(value if isinstance(value, str) else json.dumps(int(value) if whole else value, ensure_ascii=False))


def tests_of(measures: Iterable[Measure]) -> list[str]:
    """Returns the names of the tests, those with a main value first, each in the order of the alphabet."""
    main: dict[str, bool] = {}
    for measure in measures:
        main[measure.test] = main.get(measure.test, False) or measure.told.is_main
    return sorted(main, key=lambda test: (not main[test], test.casefold()))


def values_of(measures: Iterable[Measure], test: str) -> dict[str, Measure]:
    """Returns the values of a test, main ones first, each with one of its measures."""
    found: dict[str, Measure] = {}
    for measure in measures:
        if measure.test == test:
            found.setdefault(measure.told.value, measure)
    return dict(sorted(found.items(), key=lambda item: (not item[1].told.is_main, item[0])))


def parameters_of(measures: Iterable[Measure]) -> dict[str, list[Any]]:
    """Returns each parameter by which these measures differ, with its values in order."""
    given = [measure.parameters for measure in measures]
    names = dict.fromkeys(name for each in given for name in each)
    found = {}
    for name in names:
        values = {text_of(each.get(name)): each.get(name) for each in given}
        if len(values) > 1:
            found[name] = sorted(values.values(), key=_in_order)
    return found


def _in_order(value: Any) -> tuple[int, float, str]:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MOST:
        return 0, float(value), ""
    return 1, 0.0, text_of(value)


def choose(
    measures: Mapping[int, Measure], test: str | None, value: str | None, given: Mapping[str, str], *, first: bool
) -> tuple[Choice, dict[int, Measure]]:
    """Returns what is shown, with its measures. With ``first``, a parameter without a condition has its first value.

    Where no test is asked for it is the one that was read first of those with a main value: the first of a bench file.
    UsageError where what is asked for was never measured; its place is the name in the address.
    """
    every = measures.values()
    tests = tests_of(every)
    first_read = next((each.test for each in every if each.told.is_main), None)
    test = _known(test or first_read, tests, "test")
    value = _known(value, list(values_of(every, test)), "value")
    found = {number: each for number, each in measures.items() if each.test == test and each.told.value == value}
    conditions = {}
    for name, said in given.items():
        wanted = said.removesuffix(".0") if said.removesuffix(".0").isdigit() else said  # as addresses had it once
        texts = {text_of(each.parameters.get(name)) for each in found.values()}
        if wanted != ANY:
            _known(wanted, sorted(texts), f"p.{name}")
            found = {number: each for number, each in found.items() if text_of(each.parameters.get(name)) == wanted}
        conditions[name] = wanted
    while first:
        left = {name: values for name, values in parameters_of(found.values()).items() if name not in conditions}
        if not left:
            break
        name, values = next(iter(left.items()))
        conditions[name] = text_of(values[0])
        found = {
            number: each for number, each in found.items() if text_of(each.parameters.get(name)) == conditions[name]
        }
    return Choice(test, value, conditions), found


def _known(asked: str | None, known: Sequence[str], place: str) -> str:
    if not known:
        raise UsageError(
            "no run has ended with a number yet", next_step="look again when one has; the list of runs shows them"
        )
    if asked is None:
        return known[0]
    if asked not in known:
        names = ", ".join(known[:8])
        raise UsageError(f"no run has {asked!r}", place=place, next_step=f"one of {names}")
    return asked


def check_key(key: str, place: str, *, also: Sequence[str] = ()) -> str:
    """Returns a key that is one; ``also`` names others, and prefixes of others, that may stand here.

    UsageError where it is none, with the name in the address as its place.
    """
    prefixes = (PARAMETER, SETTING, *(name for name in also if name.endswith(":")))
    names = (*KEYS, *(name for name in also if name not in prefixes))
    if key in names or any(key.startswith(prefix) and key != prefix for prefix in prefixes):
        return key
    known = ", ".join((*names, *(f"{prefix}NAME" for prefix in prefixes)))
    raise UsageError(f"there is nothing named {key!r}", place=place, next_step=f"one of {known}")


SettingOf = Callable[[Entry, str], str | None]
"""Returns a setting by its path, as it was in the run and the configuration of a figure; None where it is not known."""


def reader_of(key: str, setting_of: SettingOf) -> Callable[[Entry], str]:
    """Returns what tells the text that a figure has under a key; ``UNKNOWN`` where it has nothing."""
    if key in RUN_KEYS:
        of_run = RUN_KEYS[key]
        return lambda entry: of_run(entry.run) or UNKNOWN
    if key in _OF_MEASURE:
        of_measure = _OF_MEASURE[key]
        return lambda entry: of_measure(entry.measure)
    if key.startswith(PARAMETER):
        return _parameter_reader(key.removeprefix(PARAMETER))
    path = key.removeprefix(SETTING)
    return lambda entry: setting_of(entry, path) or UNKNOWN


def _parameter_reader(name: str) -> Callable[[Entry], str]:
    known: dict[str, str] = {}  # by point: there are few of them, and very many figures

    def read(entry: Entry) -> str:
        given = entry.measure.given
        word = known.get(given)
        if word is None:
            parameters = entry.measure.parameters
            word = known[given] = text_of(parameters[name]) if name in parameters else UNKNOWN
        return word

    return read


def seconds_of(run: RunHeadline) -> float | None:
    """Returns when a run began, in seconds since 1970; None where that is not known."""
    try:
        return datetime.fromisoformat(run.at).timestamp() if run.at else None
    except (ValueError, OverflowError):
        return None


def divide(entries: Iterable[Entry], keys: Sequence[str], setting_of: SettingOf) -> list[Series]:
    """Divides figures into series by these keys, the longest first; each keeps the order of the figures.

    The name of a series has only what differs between them.
    """
    readers = [reader_of(key, setting_of) for key in keys]
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        groups.setdefault(tuple([read(entry) for read in readers]), []).append(entry)
    differ = [len({group[number] for group in groups}) > 1 for number in range(len(keys))]
    made = []
    for group, members in groups.items():
        told = [_say(key, word) for key, word, is_told in zip(keys, group, differ, strict=True) if is_told]
        made.append(Series(", ".join(told), tuple(members)))
    return sorted(made, key=lambda series: (-len(series.entries), series.name))


def _say(key: str, word: str) -> str:
    """A word as the name of a series has it: what is a name speaks for itself, a number needs what it counts."""
    if key.startswith((PARAMETER, SETTING)):
        return f"{label_of(key)} {word}"
    return word if word != UNKNOWN else f"{key} {UNKNOWN}"


def label_of(key: str) -> str:
    """Returns a key as a label: ``frame bytes`` for ``parameter:frame_bytes``; paths of settings stay as they are."""
    if key.startswith(SETTING):
        return key.removeprefix(SETTING)
    if key == "nicbench":
        return "version of nicbench"
    return key.removeprefix(PARAMETER).removeprefix(VALUE).replace("_", " ")
