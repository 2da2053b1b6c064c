"""The published results that come with nicbench: their descriptors, rows, results and summaries."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import UsageError, suggest
from nicbench.core.frozen import frozen
from nicbench.core.plan import Plan
from nicbench.core.registry import find
from nicbench.core.result import Erratum, Result, Summary
from nicbench.importing.cells import Sheet, decode, read_sheet
from nicbench.importing.columns import ImportOptions, choose_rows, parse_link, parse_unit
from nicbench.importing.folder import GivenFile, plan_of, provenance, summary_of
from nicbench.importing.formats.base import Format
from nicbench.importing.results import ImportedResults, import_results, method_of

# Each descriptor is a TOML file in ``sets``, its name the data set's. Several may read parts of one table (``where``).


_FOLDER: Final = files("nicbench.importing.reference")


class Reading(Frozen):
    """How ``nicbench import`` reads the table: each field is the option of that name."""

    method: str
    form: str = "plain"
    columns: Mapping[str, str] = Field(default_factory=dict)
    units: Mapping[str, str] = Field(default_factory=dict)
    given: Mapping[str, str] = Field(default_factory=dict)
    where: Mapping[str, str] = Field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    link_speed: str | None = None
    errata: bool = False


class Points(Frozen):
    """How a comparison takes the results: as points that the study's own bench file makes.

    ``configurations`` lists the parameters whose values name an entry of the comparison. ``renamed`` maps values of a
    parameter to those of the bench file. ``given`` sets parameters; its text may name others in braces. ``without``
    removes parameters.
    """

    configurations: tuple[str, ...] = ()
    renamed: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)
    given: Mapping[str, str | int] = Field(default_factory=dict)
    without: tuple[str, ...] = ()

    def of(self, result: Result) -> Result:
        """Returns the result at its point."""
        said = result.parameters
        found = {name: self.renamed.get(name, {}).get(str(value), value) for name, value in said.items()}
        given = {name: text.format_map(found) if isinstance(text, str) else text for name, text in self.given.items()}
        kept = {name: value for name, value in {**found, **given}.items() if name not in self.without}
        names = [str(said[name]) for name in self.configurations if name in said]
        return result.replace(parameters=kept, configuration=", ".join(names) or result.configuration)


class DeclaredErratum(Frozen):
    """A printed cell that contradicts figures of other tables, which a check of its own row cannot find.

    It ``stands`` where the figure is plausible by itself. ``line`` is the line in the table, whose heading is line 1;
    ``column`` is a heading. ``metric`` names the figure in a table with one figure in each row.
    """

    line: int = Field(ge=2)
    column: str
    metric: str | None = None
    printed: str
    computed: str | None
    reason: str
    stands: bool = False


class DataSet(Frozen):
    """One built-in data set. It has either a ``reading`` or ``why_not``: the reason why no method can import it."""

    name: str
    title: str
    year: int
    source: str
    about: str
    table: str
    where: Mapping[str, str] = Field(default_factory=dict)
    """Selects rows by their text, for a data set without a reading."""
    notes: tuple[str, ...] = ()
    reading: Reading | None = None
    points: Points = Points()
    why_not: str | None = None
    errata: tuple[DeclaredErratum, ...] = ()

    @model_validator(mode="after")
    def _is_read_or_says_why_not(self) -> DataSet:
        if (self.reading is None) == (self.why_not is None):
            raise ValueError("a data set has either a `reading` or a `why_not`")
        return self

    def content(self) -> bytes:
        """Returns its table, a CSV, unchanged."""
        return (_FOLDER / "data" / self.table).read_bytes()

    @property
    def rows_wanted(self) -> Mapping[str, str]:
        """The rows of the table that belong to it: columns and the text that they must have."""
        return self.reading.where if self.reading else self.where


@cache
def data_sets() -> Mapping[str, DataSet]:
    """Returns all built-in data sets, by name."""
    found = {}
    for file in (_FOLDER / "sets").iterdir():
        name, end, _ = file.name.rpartition(".toml")
        if end:
            found[name] = DataSet.model_validate({"name": name, **tomllib.loads(file.read_text("utf-8"))})
    return MappingProxyType(dict(sorted(found.items())))


def data_set(name: str) -> DataSet:
    """Returns the data set of this name; UsageError if it does not exist."""
    known = data_sets()
    if name not in known:
        raise UsageError(f"there is no built-in data set {name!r}", next_step=suggest(name, tuple(known), "data set"))
    return known[name]


@frozen
class PlacedErratum:
    """An erratum of the table: found by the import's checks, or declared by the data set."""

    place: str
    column: str
    printed: str
    computed: str | None
    reason: str
    found_by: str


def sheet_of(data_set: DataSet) -> Sheet:
    """Returns the rows of the table that belong to the data set, as printed."""
    return choose_rows(
        read_sheet(decode(data_set.content(), data_set.table), data_set.table),
        ImportOptions(where=dict(data_set.rows_wanted)),
    )


def options_of(reading: Reading) -> ImportOptions:
    """Returns the import's options; ValueError where the descriptor has an invalid unit or link."""
    units = {column: parse_unit(text) for column, text in reading.units.items()}
    known = {column: unit for column, unit in units.items() if unit is not None}
    if len(known) < len(units):
        raise ValueError(f"a unit of {reading.units} is none")
    link = parse_link(reading.link_speed) if reading.link_speed else None
    return ImportOptions(
        link=link,
        columns=dict(reading.columns),
        units=known,
        given=dict(reading.given),
        where=dict(reading.where),
        ignore=reading.ignore,
        configurations=reading.configurations,
        decimal="point",
        errata=reading.errata,
    )


def results_of(data_set: DataSet) -> ImportedResults:
    """Returns its results, with both declared errata and those that the import finds.

    UsageError where no method can import it.
    """
    reading = data_set.reading
    if reading is None:
        raise UsageError(
            f"{data_set.name} cannot become a run: {data_set.why_not}",
            next_step=f"nicbench reference show {data_set.name}",
        )
    options = options_of(reading)
    formatted = find("nicbench.importing.formats", Format)[reading.form].sheet(
        sheet_of(data_set), data_set.table, reading.method, options
    )
    found = import_results(formatted, data_set.table, method_of(reading.method), options)
    return _add_declared_errata(found, data_set)


def errata_of(data_set: DataSet) -> tuple[PlacedErratum, ...]:
    """Returns all errata of its table, in the order of the table."""
    declared = [
        PlacedErratum(
            _place(data_set, one), one.metric or one.column, one.printed, one.computed, one.reason, "declared"
        )
        for one in data_set.errata
    ]
    if data_set.reading is None:
        return tuple(declared)
    results = results_of(data_set)
    heads = {one.key: one.head.text for one in results.columns}
    places = {one.place for one in declared}
    found = [
        PlacedErratum(one.place, heads.get(one.value, one.value), one.printed, one.computed, one.reason, "computed")
        for _, one in results.errata
        if one.place not in places
    ]
    return tuple(sorted((*found, *declared), key=lambda one: tuple(map(int, one.place.split(":")))))


def command_line(data_set: DataSet) -> str | None:
    """Returns the ``nicbench import`` command with the same results; None where no method can import it."""
    reading = data_set.reading
    if reading is None:
        return None
    words = ["nicbench", "import", data_set.table, "--method", reading.method]
    if reading.form != "plain":
        words += ["--from", reading.form]
    for option, texts in (
        ("--where", reading.where),
        ("--column", reading.columns),
        ("--unit", reading.units),
        ("--set", reading.given),
    ):
        words += [word for name, text in texts.items() for word in (option, f"{name}={text}")]
    for option, names in (("--configuration", reading.configurations), ("--ignore", reading.ignore)):
        words += [word for name in names for word in (option, name)]
    words += ["--link-speed", reading.link_speed] if reading.link_speed else []
    words += ["--errata"] if reading.errata else []
    words += ["--title", data_set.title, "--source", data_set.source, "--year", str(data_set.year)]
    return shlex.join(words)


def plain(data_set: DataSet) -> dict[str, Any]:
    """Returns the data set for JSON: the descriptor, the rows of its table as texts, its errata."""
    sheet = sheet_of(data_set)
    return {
        **data_set.model_dump(mode="json", exclude={"errata"}),
        "method": data_set.reading.method if data_set.reading else None,
        "command": command_line(data_set),
        "columns": list(sheet.texts()),
        "rows": [[cell.text for cell in row] for row in sheet.rows],
        "errata": [
            {
                "place": one.place,
                "column": one.column,
                "printed": one.printed,
                "computed": one.computed,
                "reason": one.reason,
                "found_by": one.found_by,
            }
            for one in errata_of(data_set)
        ],
    }


def _add_declared_errata(found: ImportedResults, data_set: DataSet) -> ImportedResults:
    values = {one.head.text: one for one in found.columns}
    declared: dict[int, list[Erratum]] = {}
    for one in data_set.errata:
        erratum = Erratum(
            value=values[one.metric or one.column].key,
            place=_place(data_set, one),
            printed=one.printed,
            computed=one.computed,
            reason=one.reason,
            stands=one.stands,
        )
        declared.setdefault(one.line, []).append(erratum)
    results = tuple(
        result.replace(
            imported=result.imported.replace(errata=(*result.imported.errata, *declared[result.imported.line]))
        )
        if result.imported is not None and result.imported.line in declared
        else result
        for result in found.results
    )
    return replace(found, results=results)


def _place(data_set: DataSet, erratum: DeclaredErratum) -> str:
    """Returns line and column of the cell in the table."""
    sheet = sheet_of(data_set)
    index = sheet.index_of(erratum.column)
    row = next((row for row in sheet.rows if row[0].position.line == erratum.line), None)
    if index is None or row is None:
        raise ValueError(f"{data_set.name} has no cell {erratum.line}, {erratum.column}")
    return f"{row[index].position.line}:{row[index].position.column}"


@frozen
class AsRun:
    """A data set as a run: its files, summary, and ``options``, which import.json stores."""

    files: tuple[GivenFile, ...]
    summary: Summary
    options: dict[str, Any]

    def plan(self, run_id: str) -> Plan:
        """Returns a plan with the little that is known of how it was measured."""
        return plan_of(run_id, self.summary, self.options, ())


def as_run(chosen: DataSet) -> AsRun:
    """Converts a data set to a run; UsageError where no method can import it."""
    found = results_of(chosen)
    reading = chosen.reading
    assert reading is not None  # noqa: S101 - results_of() refused it otherwise
    options = options_of(reading)
    files = (GivenFile(Path(chosen.table), chosen.content()),)
    known = provenance(
        files,
        found,
        source=chosen.source,
        year=chosen.year,
        device=None,
        method=reading.method,
        format=reading.form,
    )
    stored = {
        "method": reading.method,
        "format": reading.form,
        "reference": chosen.name,
        "pdr_loss_ratio": options.loss_ratio,
        "link_bits_per_s": options.link.bits_per_s if options.link else None,
        "columns": {one.head.text: one.key for one in found.columns},
    }
    return AsRun(files, summary_of(chosen.title, found, known), stored)
