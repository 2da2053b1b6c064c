"""The figures of one run: every number that a table of its method shows."""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

from nicbench.compare.points import comparable_number, point_of, quantity_of
from nicbench.compare.regressions import RELIABLE
from nicbench.compare.run_differences import index_by_name, is_identity, is_volatile, read_settings, shorten
from nicbench.core.redaction import is_redacted
from nicbench.core.registry import find
from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy, Result, ResultVerdict, Spread, Value
from nicbench.methods.base import Method, main_values, tables_of
from nicbench.stats.sample import MOST
from nicbench.store.folder import RunFolder
from nicbench.store.listing import clean

_MOST_RESULTS: Final = 2000
_MOST_SHAPES: Final = 1000
_LONGEST_POINT: Final = 2000
_LIMITS: Final = {limit.value: limit for limit in LimitedBy}
_VERDICTS: Final = frozenset(verdict.value for verdict in ResultVerdict)


class Told(NamedTuple):
    """What a table says of a value. ``is_main``: printed bold; ``higher_is_better`` stays None where neither is."""

    value: str
    head: str
    unit: str
    is_main: bool
    higher_is_better: bool | None


class Measure(NamedTuple):
    """What a figure measures: a value of a test at a point, whose parameters ``given`` has as JSON, keys sorted."""

    test: str
    method: str
    configuration: str
    scope: str
    given: str
    told: Told

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the point."""
        return _parameters(self.given)


@lru_cache(maxsize=16384)
def _parameters(given: str) -> dict[str, Any]:
    try:
        found = json.loads(given)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def is_point(given: str) -> bool:
    """Whether a text of a file is the parameters of a point."""
    return len(given) <= _LONGEST_POINT and given.startswith("{") and (given == "{}" or bool(_parameters(given)))


class Figure(NamedTuple):
    """A number of one result, in the base unit of its value's name; ``near``: close to the tester's own limit.

    ``lower``, ``upper`` and ``limited_by`` are those of a rate that a search enclosed; ``number`` is 0 where the DUT
    passed nothing. It stays None where every load that was tried failed: the rate is unknown, and lies below ``upper``.
    """

    number: float | None
    verdict: str
    lower: float | None = None
    upper: float | None = None
    limited_by: str | None = None
    near: bool = False

    @property
    def is_reliable(self) -> bool:
        """Whether a claim may rest on it."""
        return self.verdict in RELIABLE

    @property
    def is_only_below(self) -> bool:
        """Whether the number is unknown, and lies below ``upper``."""
        return self.number is None

    @property
    def number_or_bound(self) -> float:
        """The number, or the bound below which it lies: where a figure stands among others."""
        found = self.upper if self.number is None else self.number
        assert found is not None, "``figure_of`` makes no figure without a number and an upper bound"  # noqa: S101
        return found

    @property
    def value(self) -> Value:
        """The value as its result had it."""
        limit = _LIMITS.get(self.limited_by or "")
        if self.number is None:
            return Bounded(value=None, upper=self.upper, limited_by=limit)
        if self.lower is None and self.upper is None and limit is None:
            return self.number
        if self.lower is None and self.number == 0.0:
            return Bounded(
                value=None, upper=self.upper, limited_by=limit, reason_null=PASSES_NOTHING, passes_nothing=True
            )
        return Bounded(value=self.number, lower=self.lower, upper=self.upper, limited_by=limit)


def median_figure(figures: Sequence[Figure]) -> Figure:
    """Returns the median of the figures of one measure over the runs of a run folder, with the worst verdict.

    It is a bound where a figure in the middle, or one that may move it, is.
    """
    if len(figures) == 1:
        return figures[0]
    worst = max((ResultVerdict(figure.verdict) for figure in figures), key=list(ResultVerdict).index)
    verdict = worst.value
    ordered = sorted(figures, key=lambda figure: figure.number_or_bound)
    if any(figure.is_only_below for figure in ordered[(len(ordered) - 1) // 2 :]):
        return Figure(None, verdict, upper=statistics.median(figure.number_or_bound for figure in ordered))
    values = [figure.number_or_bound if figure.is_only_below else figure.value for figure in ordered]
    spread = Spread.of([value for value in values if isinstance(value, Bounded | int | float)], len(ordered))
    lower = spread.median if spread.at_least else None
    return Figure(spread.median, verdict, lower, limited_by=spread.limited_by and spread.limited_by.value)


def figure_of(
    number: object,
    verdict: object,
    lower: object,
    upper: object,
    limited_by: object,
    near: object,
) -> Figure | None:
    """Makes a figure of what a file says of it, which may be damaged or anybody's; None for anything else."""
    if not (_is_number(upper if number is None else number) and isinstance(verdict, str) and verdict in _VERDICTS):
        return None
    if not (_is_bound(lower) and _is_bound(upper)):
        return None
    if limited_by is not None and not (isinstance(limited_by, str) and limited_by in _LIMITS):
        return None
    told = (number, verdict, lower, upper, limited_by, bool(near))
    return Figure(*told)  # type: ignore[arg-type]  # as was just seen


def _is_number(value: object) -> bool:
    return isinstance(value, float) and abs(value) <= MOST


def _is_bound(value: object) -> bool:
    return value is None or _is_number(value)


class FigureReader:
    """Reads the figures of runs. Most results of a lab have the same tables: what these say of a value is kept."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Told, ...]] = {}

    def figures_of(self, folder: RunFolder) -> Iterator[tuple[int, Measure, Figure]]:
        """Yields the figures of a finished run, with the place of their result; none of one without a summary.

        NicbenchError where it cannot be read.
        """
        summary = folder.summary() if folder.finished else None
        for place, result in enumerate(islice(summary.counted, _MOST_RESULTS) if summary is not None else ()):
            yield from ((place, measure, figure) for measure, figure in self._figures(result))

    def _figures(self, result: Result) -> Iterator[tuple[Measure, Figure]]:
        point = point_of(result)
        if len(point.given) > _LONGEST_POINT:
            return
        test, method, configuration, scope = map(clean, (point.test, point.method, result.configuration, point.scope))
        near = {one.value for one in result.near_tester_limit or ()}
        errata = result.imported.errata if result.imported else ()
        wrong = {erratum.value for erratum in errata if not erratum.stands}
        for told in self._told_of(result):
            value = None if told.value in wrong else result.values.get(told.value)
            number = comparable_number(value)
            if number is None and not (isinstance(value, Bounded) and value.is_only_below):
                continue
            measure = Measure(test, method, configuration, scope, point.given, told)
            bounds = (value.lower, value.upper, value.limited_by) if isinstance(value, Bounded) else (None, None, None)
            figure = figure_of(number, result.verdict.value, *bounds, told.value in near)
            if figure is not None:
                yield measure, figure

    def _told_of(self, result: Result) -> tuple[Told, ...]:
        """Returns what the tables say of each value that they show; what else a result has are details."""
        everything = {**result.parameters, **result.values}
        texts = tuple((name, each) for name, each in everything.items() if isinstance(each, str))
        shape = (result.method, tuple(result.values), tuple(result.parameters), texts)
        found = self._known.get(shape)
        if found is None:
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            found = self._known[shape] = tuple(_tell(result, name) for name in _names_in_tables(result))
        return found


def _tell(result: Result, name: str) -> Told:
    told = quantity_of(result, name)
    return Told(clean(name), clean(told.name), clean(told.unit), name in main_values(result), told.higher_is_better)


def _names_in_tables(result: Result) -> tuple[str, ...]:
    method = find("nicbench.methods", Method).get(result.method)
    if method is None:
        return ()
    columns = [column for table in tables_of(method) for column in method.table_for(table, (result,), {}).columns]
    return tuple(dict.fromkeys((*main_values(result), *(column.value for column in columns))))


FIRMWARE: Final = "firmware"
"""The name under which the firmware of all adapters under test stands among the settings of a run."""
_CONFIGURATIONS: Final = "configurations"
"""A name that no path has: under it the JSON of the settings has those of each configuration."""
_MOST_SETTINGS: Final = 1000
_MOST_CONFIGURATIONS: Final = 200
_LONGEST_SETTING: Final = 80
_BETWEEN: Final = " / "


class RunSettings(NamedTuple):
    """The settings of a run by their paths as `nicbench diff` names them.

    ``every`` has the values of all machines and configurations, one after the other where they differ. ``own`` has for
    each configuration what is not so there: its own value, or None where it does not have that setting.
    """

    every: Mapping[str, str] = {}
    own: Mapping[str, Mapping[str, str | None]] = {}

    def get(self, path: str, configuration: str) -> str | None:
        """Returns the value of a setting in a configuration; None where it has none."""
        own = self.own.get(configuration)
        return own[path] if own is not None and path in own else self.every.get(path)

    @property
    def text(self) -> str:
        """The settings as JSON: paths and values, with the settings of configurations under a separate name."""
        plain = {**self.every, **({_CONFIGURATIONS: self.own} if self.own else {})}
        return json.dumps(plain, sort_keys=True, ensure_ascii=False)


def settings_from(text: str | bytes) -> RunSettings | None:
    """Reads what ``RunSettings.text`` gave from a file that anybody may have written; None for any other text."""
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(plain, dict):
        return None
    own = plain.pop(_CONFIGURATIONS, {})
    if not all(isinstance(value, str) for value in plain.values()) or not isinstance(own, dict):
        return None
    for each in own.values():
        if not isinstance(each, dict) or not all(value is None or isinstance(value, str) for value in each.values()):
            return None
    return RunSettings(plain, own)


def settings_of(folder: RunFolder) -> RunSettings:
    """Returns the settings that a run discloses.

    What differs at every reading, and what identifies one specimen, is left out. NicbenchError where the run cannot be
    read.
    """
    plan = folder.plan()
    names = plan.compared[:_MOST_CONFIGURATIONS] if plan is not None else ()
    every: dict[str, dict[str, None]] = {}
    of_one: dict[str | None, dict[str, dict[str, None]]] = {}
    for place, settings in read_settings(folder).items():
        own = of_one.setdefault(_configuration_of(place, names), {})
        for path, text in islice(_texts(settings), _MOST_SETTINGS):
            every.setdefault(path, {})[text] = None
            own.setdefault(path, {})[text] = None
    joined = {path: _BETWEEN.join(texts) for path, texts in every.items()}
    common = of_one.get(None, {})
    return RunSettings(joined, {name: found for name in names if (found := _own(common, of_one.get(name, {}), joined))})


def _configuration_of(place: str, names: tuple[str, ...]) -> str | None:
    """Returns the configuration whose settings ``read_settings`` has at a place: its name, or a machine's and it."""
    last = place.rpartition(", ")[2]
    return last if last in names else None


def _own(
    common: Mapping[str, Mapping[str, None]], own: Mapping[str, Mapping[str, None]], joined: Mapping[str, str]
) -> dict[str, str | None]:
    """Returns the settings of a configuration that are not those of all of them."""
    found = {}
    for path, of_all in joined.items():
        text = _BETWEEN.join({**common.get(path, {}), **own.get(path, {})}) or None
        if text != of_all:
            found[path] = text
    return found


def _texts(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for path, value in _leaves(settings, ""):
        if value is None or not _is_setting(path):
            continue
        whole = shorten(value, path, sys.maxsize)
        if is_redacted(whole):
            continue
        text = _short(whole)
        yield clean(path), text
        if path.startswith("inventory.drivers.") and path.endswith(".firmware"):
            yield FIRMWARE, text


def _short(text: str) -> str:
    """Puts a text on one line and cuts a long one; its checksum tells it from others with the same beginning."""
    if len(text) <= _LONGEST_SETTING:
        return clean(text)
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{clean(text[:_LONGEST_SETTING])}… #{digest[:6]}"


@lru_cache(maxsize=16384)
def _is_setting(path: str) -> bool:
    return not is_volatile(path) and not is_identity(path)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    members = value if isinstance(value, Mapping) else index_by_name(value)
    if members is None:
        yield path, value
        return
    for name, each in members.items():
        yield from _leaves(each, f"{path}.{name}" if path else str(name))
