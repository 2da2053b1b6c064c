"""Which figures are shown, in which series: a test, a value, parameters, and what divides them. Pure.

A key names what distinguishes figures: ``parameter:NAME`` of its point, ``setting:PATH`` of its run, another
``value:NAME`` of the same result, or a name of ``RUN_KEYS``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from nicbench.compare.history.figures import FIRMWARE, Figure, Measure, Told
from nicbench.core.errors import UsageError
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.core.result import LimitedBy
from nicbench.core.turn import DEFAULT
from nicbench.core.units import SCALES, default_form, figures, round_up, suitable_form
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


@frozen
class Series:
    """Figures that belong together: ``name`` says what they have in common and others have not."""

    name: str
    entries: tuple[Entry, ...]


@frozen
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

    UsageError for anything else, with the name in the address as its place.
    """
    prefixes = (PARAMETER, SETTING, *(name for name in also if name.endswith(":")))
    names = (*KEYS, *(name for name in also if name not in prefixes))
    if key in names or any(key.startswith(prefix) and key != prefix for prefix in prefixes):
        return key
    known = ", ".join((*names, *(f"{prefix}NAME" for prefix in prefixes)))
    raise UsageError(f"there is nothing named {key!r}", place=place, next_step=f"one of {known}")


SettingOf = Callable[[Entry, str], str | None]
"""Returns a setting by its path, in the run and the configuration of a figure; None where it is not known."""


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
    groups = grouped((tuple([read(entry) for read in readers]), entry) for entry in entries)
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


MOST_WORDS: Final = 200
"""The most words of an axis of words."""
_LOADS: Final = (f"{VALUE}load_", f"{VALUE}offered_")
"""Values that say the load, as the parameters of a load do."""
OtherOf = Callable[[Entry], Figure | None]


@frozen
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
    """The sort key of a text: numbers in it by their size, so that 6.9 comes before 6.12."""
    parts = []
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


def figure_in_words(told: Told, figure: Figure) -> str:
    """Returns a figure with its unit: "14.2 Mpps"; "at least" where the DUT passed all that was tried, "< " where it
    passed none of it.
    """
    number = figure.number_or_bound
    form = suitable_form(default_form(told.value, None), abs(number))
    scale = SCALES.get(form)
    number, unit = (number * scale.factor, scale.unit) if scale else (number, told.unit)
    if figure.is_only_below:
        return f"< {figures(round_up(number))} {unit}".rstrip()
    is_bound = figure.lower is not None and figure.upper is None and figure.limited_by != LimitedBy.LINE_RATE
    return f"{'at least ' if is_bound else ''}{figures(number)} {unit}".rstrip()


def measure_in_words(measure: Measure) -> str:
    """Returns what is measured and at which point: "NDR, 64 bytes", after the configuration where that has a name."""
    size = measure.parameters.get("frame_bytes")
    whose = "" if measure.configuration == DEFAULT else f"{measure.configuration}: "
    told = [f"{whose}{measure.told.head}"] + ([] if size is None else [f"{text_of(size)} bytes"])
    others = {name: value for name, value in measure.parameters.items() if name in ("load_percent", "load_of")}
    if "load_percent" in others:
        told.append(f"{text_of(others['load_percent'])} % of {text_of(others.get('load_of', 'line rate'))}")
    return ", ".join(told)
