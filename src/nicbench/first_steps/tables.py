"""How a table of results becomes a datasheet: the options of ``nicbench import`` that it needs, found by trying."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from nicbench.core.errors import Problem, UsageError, WrongFileError
from nicbench.importing.cells import decode, read_bytes, read_sheet
from nicbench.importing.columns import ImportOptions
from nicbench.importing.results import import_results, importable, likely_method, method_of

_MOST_TRIES: Final = 3
_GUESSED: Final = ("--column", "--configuration", "--ignore")
"""Options that a table's content suggests; what needs a value of its author is left open."""


@dataclass(frozen=True, slots=True)
class HowToImport:
    """The method, the options, and what only the table's author knows: problems that are left."""

    method: str
    options: tuple[str, ...] = ()
    open: tuple[Problem, ...] = field(default=())


def how_to_import(path: Path) -> HowToImport:
    """The options by which the table can be imported. UsageError where it is no table of any method's results."""
    sheet = read_sheet(decode(read_bytes(path), str(path), None), str(path))
    name = likely_method(sheet, importable())
    if name is None:
        step = f"see the columns of each method in docs/import.md, then: nicbench import {path} --method NAME"
        raise UsageError("its columns are those of no method", place=str(path), next_step=step)
    options, flags = ImportOptions(), list[tuple[str, ...]]()
    for _ in range(_MOST_TRIES):
        try:
            import_results(sheet, str(path), method_of(name), options)
        except WrongFileError as error:
            added = [one.flags for one in error.problems if one.flags and one.flags[0] in _GUESSED]
            left = tuple(one for one in error.problems if one.flags not in added)
            flags += dict.fromkeys(added)
            if not added:
                flags += dict.fromkeys(one.flags for one in left if one.flags)
                return HowToImport(name, _words(flags), left)
            options = _with(options, added)
        else:
            return HowToImport(name, _words(flags))
    return HowToImport(name, _words(flags))


def _words(flags: list[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(word for pair in dict.fromkeys(flags) for word in pair)


def _with(options: ImportOptions, flags: list[tuple[str, ...]]) -> ImportOptions:
    """The options as if these were given too."""
    columns = dict(options.columns)
    columns.update(tuple(value.rsplit("=", 1)) for option, value in flags if option == "--column")  # type: ignore[misc]
    return replace(
        options,
        columns=columns,
        configurations=(*options.configurations, *(value for option, value in flags if option == "--configuration")),
        ignore=(*options.ignore, *(value for option, value in flags if option == "--ignore")),
    )
