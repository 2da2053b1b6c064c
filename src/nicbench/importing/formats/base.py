"""The interface of formats: from what a tester exports to a sheet with the headings of the method.

To add one:

1. Write ``src/nicbench/importing/formats/NAME.py`` with one subclass of ``Format``: it gives a sheet in the words of
   the method (``frame rate [fps]``) and keeps the places of cells. Its docstring says where the layout is known from;
   what no public source shows is left out.
2. Put a file of it in ``tests/importing/golden``, and its results in ``tests/importing/test_formats.py``.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar, Final

from nicbench.core.errors import Position, Problem, UsageError, WrongFileError
from nicbench.importing.cells import Cell, Dialect, Sheet, decode, make_sheet, read_lines
from nicbench.importing.columns import ImportOptions
from nicbench.importing.workbook import is_workbook, read_workbook

FILE: Final = "file"
"""A column that options may name although no file has it: the file's name without its suffix."""
FILE_NUMBER: Final = "file number"
"""The same, for the number of the file among all of an import."""
FILES: Final = "files"
"""The same, for how many files there are."""


class Format(ABC):
    """Subclasses define ``kind``, a sentence ``about`` for the help, and ``sheet``."""

    kind: ClassVar[str]
    about: ClassVar[str]

    of_files: ClassVar[tuple[str, ...]] = ()
    """What the format needs of ``FILE``, ``FILE_NUMBER`` and ``FILES``, as columns of each sheet."""
    is_table: ClassVar[bool] = True
    """Whether its files are tables, and not documents of another kind."""

    @classmethod
    def cells(cls, content: bytes, path: str, dialect: Dialect) -> Sheet:
        """Parses the file before rows are chosen: a CSV or a workbook, unless the tester writes something else.

        WrongFileError with a position for any other content.
        """
        return make_sheet(lines_of(content, path, dialect), path, dialect)

    @classmethod
    @abstractmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        """Returns the rows and columns of ``method`` in a parsed file; cells keep their positions.

        WrongFileError with a position where the file is not of this format.
        """


def lines_of(content: bytes, path: str, dialect: Dialect) -> list[list[Cell]]:
    """Returns the lines of a CSV, from its headings on, or all of a sheet of a workbook."""
    if is_workbook(content):
        return read_workbook(content, path, dialect.sheet)
    return read_lines(decode(content, path, dialect.encoding), path, dialect)


Names = Mapping[str, Mapping[str, str]]
"""By method: the tester's headings, and the method's names for them, with units."""
_KEYS: Final = re.compile(r"[\w-]+(?:\.[\w-]+)+")
"""How errors of a reader name a place: total.opackets."""


def place_of(error: Exception, text: str) -> Position:
    """Returns where the JSON parser stopped, or else where the innermost part named by the error begins."""
    cause = error.__cause__
    if isinstance(cause, json.JSONDecodeError):
        return Position(cause.lineno, cause.colno)
    named = _KEYS.search(str(error))
    at = 0
    for key in named[0].split(".") if named else ():
        found = text.find(json.dumps(key), at)
        if found < 0:
            break
        at = found
    return Position(text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1)


def rename_columns(
    sheet: Sheet, path: str, names: Names, method: str, tester: str, key: Callable[[str], str] = str
) -> Sheet:
    """Renames the columns that the method takes and drops the others; ``key`` normalises headings of versions."""
    if method not in names:
        raise UsageError(
            f"nothing is known of how {tester} exports `{method}`",
            place="--from",
            next_step=f"known are {', '.join(f'`{name}`' for name in names)}; or rename columns and use --from plain",
        )
    wanted = names[method]
    taken = {}
    for number, head in enumerate(sheet.heads):
        name = wanted.get(key(head.text))
        if name is not None and name not in taken:
            taken[name] = (number, head)
    missing = "frame size" not in taken
    if missing or len(taken) < 2:
        known = ", ".join(f"`{name}`" for name in wanted)
        problem = Problem(
            sheet.heads[0].position,
            f"this is no table of {tester} for `{method}`: "
            + ("it has no frame size" if missing else "nothing but the frame size is known of it"),
            f"the headings that are known: {known}; is it --from plain?",
        )
        raise WrongFileError(path, [problem])
    used = {number for number, _ in taken.values()}
    left_out = tuple(head.text for number, head in enumerate(sheet.heads) if number not in used)
    heads = tuple(Cell(name, head.position) for name, (_, head) in taken.items())
    rows = tuple(tuple(row[number] for number, _ in taken.values()) for row in sheet.rows)
    return replace(sheet, heads=heads, rows=rows, ignored=(*sheet.ignored, *left_out))
