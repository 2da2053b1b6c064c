"""The tables of an export, all kinds of files alike: a row for each value (long), a row for each result (wide).

The order of columns is stable: the fixed ones, then ``parameter_NAME`` for each parameter in the order in which results
name them, then, of the wide table, the values likewise. Cells are the numbers of summary.json. None is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, cast

from nicbench.core.frozen import frozen
from nicbench.core.lists import without_none
from nicbench.core.result import Erratum
from nicbench.export.document import ExportDocument, ExportedResult, ExportedValue
from nicbench.store.files import json_text

_UNITS: Final = (
    "frames_per_s",
    "bits_per_s",
    "bytes_per_s",
    "datagrams_per_s",
    "messages_per_s",
    "packets_per_s",
    "transactions_per_s",
    "connections_per_s",
    "per_s",
    "cycles_per_packet",
    "joules_per_gigabit",
    "percent",
    "ratio",
    "share",
    "ns",
    "us",
    "ms",
    "s",
    "hz",
    "bytes",
    "bits",
    "bursts",
    "cycles",
    "datagrams",
    "frames",
    "messages",
    "packets",
    "trials",
    "joules",
    "watts",
    "celsius",
)
_INSIDE: Final = {"_percent_of_line_rate": "percent", "_joules_per_gigabit_above_idle": "joules_per_gigabit"}
"""Names that go on after their unit, to say what it is a share of, or counted from."""
_BEHIND_THE_UNIT: Final = re.compile("_(lower|upper|interval|sum_of_ports)$")


def unit_of(name: str) -> str | None:
    """The unit that a name ends with, in that spelling; None where it has none.

    Behind the unit a name may say which figure of a value it is: ``watts_lower``, ``frames_per_s_sum_of_ports``.
    """
    name = _BEHIND_THE_UNIT.sub("", name)
    for end, unit in _INSIDE.items():
        if name.endswith(end) or name == end.removeprefix("_"):
            return unit
    return next((unit for unit in _UNITS if name == unit or name.endswith(f"_{unit}")), None)


Cell = str | int | float | bool | None
Kind = Literal["text", "number", "integer", "flag"]
_LARGEST_INTEGER: Final = 2**63 - 1
LARGEST_EXACT: Final = 2**53
"""Up to which a 64-bit floating-point number is every whole number."""


@frozen
class Column:
    """A column: its name, the unit of its numbers, what its cells are, and what it is about."""

    name: str
    kind: Kind = "text"
    unit: str | None = None
    about: str = ""


@frozen
class Table:
    """Rows under columns; every row has a cell for each."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


OF_RESULT: Final = (
    Column("run_id", about="the run's folder"),
    Column("result", about="the result's id in summary.json"),
    Column("span", about="`run`: of one run; `over_runs`: over all runs of its configuration"),
    Column("test", about="the test's name in the bench file"),
    Column("method", about="the way of measuring"),
    Column("configuration", about="its name in the bench file, else `default`"),
    Column("run", "integer", about="of the configuration, from 1; empty over runs"),
    Column("warm_up", "flag", about="of a run that warms up: it counts for nothing"),
    Column("scope", about="whether rates are per port or a sum of ports"),
    Column("verdict", about="`valid`, `disturbed`, `incomplete` or `imported`"),
    Column("disturbances", about="what disturbed it, sentences joined by `; `"),
    Column("imported", "flag", about="not measured by nicbench"),
)
"""First in both tables."""

OF_VALUE: Final = (
    Column("name", about="of the value; it ends with the unit"),
    Column("unit", about="the same unit; empty of words and of pure numbers"),
    Column("kind", about="`number`, `rate` (of a search), `interval`, `spread` (over runs), `text` or `unknown`"),
    Column("value", "number", about="of a spread the median"),
    Column("text", about="of a value that is words; of a whole number beyond 2^53 its digits"),
    Column(
        "lower",
        "number",
        about="of a rate the load up to which every trial passed; an interval's end; of a spread the least run",
    ),
    Column(
        "upper",
        "number",
        about="of a rate the load from which on none passed; an interval's end; of a spread the greatest",
    ),
    Column("some", "number", about="of a rate the highest load that passed at all, where trials disagreed"),
    Column("half", "number", about="of such a rate the load that half of the trials passed"),
    Column("loss_floor_ratio", "number", "ratio", about="lost at any load; half of the trials at `value` lose nothing"),
    Column("at_least", "flag", about="the true value may be higher than any load tried"),
    Column("limited_by", about="`dut`, `tester`, `line_rate` or `maximum_load`"),
    Column("n", "integer", about="trials or runs behind it"),
    Column("runs", "integer", about="of a spread: runs with and without a value"),
    Column("mean", "number", about="of a spread of a main value"),
    Column("mean_lower", "number", about="where the number of runs grows: its interval by Student's t"),
    Column("mean_upper", "number", about="likewise"),
    Column("mean_confidence_ratio", "number", "ratio", about="that interval's confidence"),
    Column("sample_standard_deviation", "number", about="of a main value over runs, n - 1 in the divisor"),
    Column("population_standard_deviation", "number", about="the same with n in the divisor"),
    Column("coefficient_of_variation", "number", "ratio", about="sample standard deviation over absolute mean"),
    Column("median_bootstrap_lower", "number", about="of a main value over runs: BCa interval of the median"),
    Column("median_bootstrap_upper", "number", about="likewise"),
    Column("mean_bootstrap_lower", "number", about="BCa interval of the mean"),
    Column("mean_bootstrap_upper", "number", about="likewise"),
    Column("bootstrap_confidence_ratio", "number", "ratio", about="the confidence of both"),
    Column("bootstrap_seed", "integer", about="of their 10,000 resamples"),
    Column("outlier_runs", about="runs beyond Tukey's fences, which count all the same"),
    Column("reason_null", about="why there is no value"),
    Column("near_limit", about="why the value may be the tester's own"),
    Column("printed", about="of an imported value: as its source printed it"),
    Column("printed_unit", about="the unit printed with it"),
    Column("computed", "flag", about="of an imported value: not printed, it follows from what is"),
    Column("errata", about="of an imported value: why what is printed cannot be so"),
)
"""After these in the long table."""

_OF_MEAN: Final = ("mean", "mean_lower", "mean_upper")
_STATISTICS: Final = (
    "sample_standard_deviation",
    "population_standard_deviation",
    "median_bootstrap_lower",
    "median_bootstrap_upper",
    "mean_bootstrap_lower",
    "mean_bootstrap_upper",
)
BESIDE: Final = (
    *("text", "lower", "upper", "some", "half", "loss_floor_ratio", "at_least", "limited_by", "n", "runs"),
    *(*_OF_MEAN, *_STATISTICS),
    *("coefficient_of_variation", "outlier_runs"),
    *("reason_null", "near_limit", "printed", "printed_unit", "errata"),
)
"""Further columns of a value in the wide table, as ``VALUE_lower``, where any result has it."""
_WITH_UNIT: Final = frozenset({"value", "lower", "upper", "some", "half", *_OF_MEAN, *_STATISTICS})


def long_table(*documents: ExportDocument) -> Table:
    """A row for each value of each result of these runs."""
    results = [result for document in documents for result in document.results]
    parameters = _parameters(results)
    rows = [
        (*_of_result(document, result), *_of_value(value), *(plain(result.parameters.get(name)) for name in parameters))
        for document in documents
        for result in document.results
        for value in result.values
    ]
    columns = (*OF_RESULT, *OF_VALUE, *_parameter_columns(parameters, results))
    return Table("values", _distinct(columns), tuple(rows))


def wide_table(*documents: ExportDocument) -> Table:
    """A row for each result of these runs, with a column for each value that any of them has."""
    of_run = [(document, result) for document in documents for result in document.results]
    results = [result for _, result in of_run]
    parameters = _parameters(results)
    by_result = [{value.name: value for value in result.values} for result in results]
    places = _places(by_result)
    rows = [
        (
            *_of_result(document, result),
            *(plain(result.parameters.get(name)) for name in parameters),
            *(_figure(values.get(place.value), place.figure) for place in places),
        )
        for (document, result), values in zip(of_run, by_result, strict=True)
    ]
    columns = [
        place.column([_figure(values.get(place.value), place.figure) for values in by_result]) for place in places
    ]
    fixed = (*OF_RESULT, *_parameter_columns(parameters, results))
    return Table("results", _distinct((*fixed, *columns)), tuple(rows))


def plain(value: Any) -> Cell:
    """A cell: what is a list or a dictionary is JSON in it."""
    return value if value is None or isinstance(value, str | int | float) else json_text(value, indent=None)


def kind_of(cells: Iterable[Cell]) -> Kind:
    """What a column of these cells is."""
    known = without_none(cells)
    if not known or any(isinstance(cell, str) for cell in known):
        return "text"
    if all(isinstance(cell, bool) for cell in known):
        return "flag"
    if all(isinstance(cell, int) and abs(cell) <= _LARGEST_INTEGER for cell in known):
        return "integer"
    return "number"


def _of_result(document: ExportDocument, result: ExportedResult) -> tuple[Cell, ...]:
    return (
        document.run.run_id,
        result.result,
        result.span,
        result.test,
        result.method,
        result.configuration,
        result.run,
        result.warm_up,
        result.scope,
        result.verdict,
        "; ".join(result.disturbances),
        result.imported,
    )


def _of_value(value: ExportedValue) -> tuple[Cell, ...]:
    return tuple(_of_long(value, column.name) for column in OF_VALUE)


def _of_long(value: ExportedValue, name: str) -> Cell:
    if name == "errata":
        return _errata(value.errata)
    if name == "text" and isinstance(value.value, int) and abs(value.value) > LARGEST_EXACT:
        return str(value.value)
    return cast(Cell, getattr(value, name))


def _figure(value: ExportedValue | None, figure: str) -> Cell:
    if value is None:
        return None
    return _errata(value.errata) if figure == "errata" else cast(Cell, getattr(value, figure))


def _errata(errata: tuple[Erratum, ...]) -> str | None:
    return "; ".join(f"{each.place}: {each.reason}" for each in errata) or None


def _parameters(results: Iterable[ExportedResult]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for result in results for name in result.parameters))


def _parameter_columns(names: Iterable[str], results: Sequence[ExportedResult]) -> tuple[Column, ...]:
    return tuple(
        Column(
            f"parameter_{name}",
            kind_of(plain(result.parameters.get(name)) for result in results),
            unit_of(name),
            "parameter of the test",
        )
        for name in names
    )


@frozen
class _Place:
    """A column of the wide table: which figure of which value."""

    value: str
    figure: str
    is_main: bool
    """The value itself, which has the column of its own name."""

    def column(self, cells: Sequence[Cell]) -> Column:
        kind = kind_of(cells)
        if self.figure == "value" and kind == "text":
            kind = "number"  # of nothing but unknowns
        has_unit = kind in ("number", "integer") and self.figure in _WITH_UNIT
        unit = unit_of(self.value) if has_unit else None
        if self.is_main:
            return Column(self.value, kind, unit)
        return Column(f"{self.value}_{self.figure}", kind, unit, f"{self.figure} of {self.value}")


def _places(by_result: Sequence[Mapping[str, ExportedValue]]) -> list[_Place]:
    """Each value, and beside it what is known of it in any result."""
    places = []
    for name in dict.fromkeys(name for values in by_result for name in values):
        found = [values[name] for values in by_result if name in values]
        kinds = {value.kind for value in found}
        main = "text" if "text" in kinds and kinds <= {"text", "unknown"} else "value"
        places.append(_Place(name, main, is_main=True))
        places += [
            _Place(name, figure, is_main=False)
            for figure in BESIDE
            if figure != main and any(_figure(value, figure) is not None for value in found)
        ]
    return places


def _distinct(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Names that are taken, as of a value called ``run``, become ``value_run``."""
    taken = set()
    found = []
    for column in columns:
        name = column.name
        while name in taken:
            name = f"value_{name}"
        taken.add(name)
        found.append(Column(name, column.kind, column.unit, column.about))
    return tuple(found)
