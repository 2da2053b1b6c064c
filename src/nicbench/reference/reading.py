"""A data set read as an import is: its rows, its results with their errata, the command line that says the same."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import Any

from nicbench.errors import UsageError
from nicbench.importing.cells import Sheet, read_sheet
from nicbench.importing.columns import Assigned, chosen_rows
from nicbench.importing.decoding import decode
from nicbench.importing.formats.base import Format
from nicbench.importing.links import parse_link
from nicbench.importing.options import ImportOptions
from nicbench.importing.results import ImportedResults, import_results, method_of
from nicbench.importing.units import parse_unit
from nicbench.model.imported import Erratum
from nicbench.reference.descriptor import DataSet, DeclaredErratum, Reading
from nicbench.registry import find


@dataclass(frozen=True, slots=True)
class PlacedErratum:
    """An erratum of the table: found by the import's arithmetic, or declared by the data set."""

    place: str
    column: str
    printed: str
    computed: str | None
    reason: str
    found_by: str


def sheet_of(data_set: DataSet) -> Sheet:
    """The rows of its table that are its own, as they are printed."""
    return chosen_rows(
        read_sheet(decode(data_set.content(), data_set.table), data_set.table),
        ImportOptions(where=dict(data_set.rows_wanted)),
    )


def options_of(reading: Reading) -> ImportOptions:
    """What the import is told; ValueError where a descriptor's unit or link is none."""
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
        errata=reading.errata,
    )


def results_of(data_set: DataSet) -> ImportedResults:
    """Its results, with what is declared to be wrong listed beside what the import finds.

    UsageError where no method takes it.
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
    return _with_declared(found, data_set)


def errata_of(data_set: DataSet) -> tuple[PlacedErratum, ...]:
    """Everything of its table that cannot be so, in the order of the table."""
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
    """The ``nicbench import`` of the same table that makes the same results; None where no method takes it."""
    reading = data_set.reading
    if reading is None:
        return None
    words = ["nicbench", "import", data_set.table, "--method", reading.method]
    if reading.form != "plain":
        words += ["--from", reading.form]
    for option, said in (
        ("--where", reading.where),
        ("--column", reading.columns),
        ("--unit", reading.units),
        ("--set", reading.given),
    ):
        words += [word for name, text in said.items() for word in (option, f"{name}={text}")]
    for option, names in (("--configuration", reading.configurations), ("--ignore", reading.ignore)):
        words += [word for name in names for word in (option, name)]
    words += ["--link-speed", reading.link_speed] if reading.link_speed else []
    words += ["--errata"] if reading.errata else []
    words += ["--title", data_set.title, "--source", data_set.source, "--year", str(data_set.year)]
    return shlex.join(words)


def plain(data_set: DataSet) -> dict[str, Any]:
    """Everything of it as JSON has it: the descriptor, the rows of its table as texts, its errata."""
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


def _with_declared(found: ImportedResults, data_set: DataSet) -> ImportedResults:
    values = {one.head.text: one for one in found.columns}
    declared: dict[int, list[Erratum]] = {}
    for one in data_set.errata:
        erratum = Erratum(
            value=_value(values, one),
            place=_place(data_set, one),
            printed=one.printed,
            computed=one.computed,
            reason=one.reason,
            stands=one.stands,
        )
        declared.setdefault(one.line, []).append(erratum)
    results = tuple(
        result.model_copy(
            update={
                "imported": result.imported.model_copy(
                    update={"errata": (*result.imported.errata, *declared[result.imported.line])}
                )
            }
        )
        if result.imported is not None and result.imported.line in declared
        else result
        for result in found.results
    )
    return replace(found, results=results)


def _value(columns: dict[str, Assigned], erratum: DeclaredErratum) -> str:
    return columns[erratum.metric or erratum.column].key


def _place(data_set: DataSet, erratum: DeclaredErratum) -> str:
    """Line and column of the cell in the table."""
    sheet = sheet_of(data_set)
    index = sheet.index_of(erratum.column)
    row = next((row for row in sheet.rows if row[0].position.line == erratum.line), None)
    if index is None or row is None:
        raise ValueError(f"{data_set.name} has no cell {erratum.line}, {erratum.column}")
    return f"{row[index].position.line}:{row[index].position.column}"
