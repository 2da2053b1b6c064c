"""Reads the files of an import, each by itself so that errors name it, and joins them into one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from nicbench.core.errors import UsageError
from nicbench.core.imported import ImportCheck
from nicbench.core.result import Result
from nicbench.importing.cells import MOST_ROWS, Cell, Sheet, decode, read_bytes
from nicbench.importing.columns import ImportOptions, choose_rows
from nicbench.importing.formats.base import Format
from nicbench.importing.results import ImportedResults, import_results
from nicbench.methods.base import Method

MOST_FILES: Final = 500
MOST_BYTES_TOGETHER: Final = 64 * 2**20
FILE: Final = "file"
"""A column that options may name although no file has it: the file's name without its suffix."""


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file as the user named it, with its content."""

    path: Path
    content: bytes


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the files are written; None where each file shows it."""

    delimiter: str | None = None
    encoding: str | None = None
    heading_line: int = 1


def given_files(paths: Sequence[Path]) -> tuple[GivenFile, ...]:
    """Reads the files, within limits. UsageError where one cannot be read, or two have one name in the run folder."""
    if len(paths) > MOST_FILES:
        raise UsageError(f"{len(paths)} files are more than {MOST_FILES}", next_step="import a part of them at a time")
    seen: dict[str, Path] = {}
    found = []
    total = 0
    for path in paths:
        if path.name in seen:
            raise UsageError(
                f"has the name of {seen[path.name]}", place=str(path), next_step="give them names of their own"
            )
        seen[path.name] = path
        content = read_bytes(path)
        total += len(content)
        if total > MOST_BYTES_TOGETHER:
            limit = f"with it there are more than {MOST_BYTES_TOGETHER // 2**20} MiB"
            raise UsageError(limit, place=str(path), next_step="import a part of the files at a time")
        found.append(GivenFile(path, content))
    return tuple(found)


def import_files(
    files: Sequence[GivenFile],
    form: type[Format],
    method: type[Method],
    options: ImportOptions,
    dialect: Dialect,
) -> ImportedResults:
    """Imports all files.

    WrongFileError lists what is wrong with the first wrong file; UsageError where two files have the same point.
    """
    found = [_import_one(file, form, method, options, dialect) for file in files]
    if len(found) == 1:
        return found[0]
    seen: dict[str, Path] = {}
    results: list[Result] = []
    for file, one in zip(files, found, strict=True):
        for result in one.results:
            if result.id in seen:
                raise UsageError(
                    f"is about the same as {seen[result.id]}: {result.id}",
                    place=str(file.path),
                    next_step=f"tell the files apart: --configuration {FILE}, or --column {FILE}=PORT for instance",
                )
            results.append(_name_file_in_errata(result, file.path))
        seen |= {result.id: file.path for result in one.results}
        if len(results) > MOST_ROWS:
            raise UsageError(
                f"with it there are more than {MOST_ROWS} rows",
                place=str(file.path),
                next_step="import a part of the files at a time",
            )
    columns = {column.head.text: column for one in found for column in one.columns}
    ignored = dict.fromkeys(name for one in found for name in one.ignored)
    counted = Counter[str]()
    for check in (check for one in found for check in one.checks):
        counted[check.what] += check.comparisons
    checks = tuple(ImportCheck(what=what, comparisons=number) for what, number in counted.items())
    return ImportedResults(tuple(results), tuple(columns.values()), tuple(ignored), checks)


def _import_one(
    file: GivenFile, form: type[Format], method: type[Method], options: ImportOptions, dialect: Dialect
) -> ImportedResults:
    name = str(file.path)
    text = decode(file.content, name, dialect.encoding)
    cells = _add_file_column(form.cells(text, name, dialect.delimiter, dialect.heading_line), file.path, options)
    sheet = form.sheet(choose_rows(cells, options), name, method.kind, options)
    return import_results(sheet, name, method, options)


def _add_file_column(sheet: Sheet, path: Path, options: ImportOptions) -> Sheet:
    """Adds the file's name as a column, where an option names it and the file has no such heading."""
    asked = {*options.configurations, *options.columns, *options.where}
    if FILE not in asked or sheet.index_of(FILE) is not None:
        return sheet
    name = path.stem.encode("utf-8", "replace").decode()
    rows = tuple((*row, Cell(name, row[0].position)) for row in sheet.rows)
    return replace(sheet, heads=(*sheet.heads, Cell(FILE, sheet.heads[0].position)), rows=rows)


def _name_file_in_errata(result: Result, path: Path) -> Result:
    """Adds the file's name to the place of each erratum."""
    if result.imported is None or not result.imported.errata:
        return result
    name = path.name.encode("utf-8", "replace").decode()
    errata = tuple(one.replace(place=f"{name}:{one.place}") for one in result.imported.errata)
    return result.replace(imported=result.imported.replace(errata=errata))
