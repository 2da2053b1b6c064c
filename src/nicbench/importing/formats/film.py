"""The CSV of tframetest (``tframetest -c``), of which every instance at once writes a file of its own.

The columns have the names of tframetest's documentation; times are in nanoseconds. A file is an instance of one run, in
the order in which files are named; where files are runs of one instance, ``--column "file number=run"`` says so.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from nicbench.core.errors import Problem, UsageError, WrongFileError, quote
from nicbench.core.number_reader import plain_number
from nicbench.importing.cells import Cell, Sheet
from nicbench.importing.columns import ImportOptions
from nicbench.importing.formats.base import FILE_NUMBER, FILES, Format

_COLUMNS: Final = ("case", "profile", "frames", "time", "fps")
_KEPT: Final = ("case", "profile", "threads")
_CLOSE: Final = 0.01
"""The relative error of a rate that was printed with a few digits."""


class Tframetest(Format):
    """Makes a row of each case: what was read or written, and how many frames a second."""

    kind = "tframetest"
    about = "CSV of tframetest (-c), a file for each instance of one run"
    of_files = (FILE_NUMBER, FILES)

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        if method != "frames":
            raise UsageError(
                f"tframetest measures frames of film, not what `{method}` does",
                place="--from",
                next_step="write --method frames",
            )
        places = {name: sheet.index_of(name) for name in _COLUMNS}
        missing = [name for name, place in places.items() if place is None]
        if missing:
            problem = f"this is no table of tframetest: it has no column {quote(missing[0])}"
            raise WrongFileError(path, [Problem(sheet.heads[0].position, problem, "is it what `tframetest -c` wrote?")])
        of_runs = options.columns.get(FILE_NUMBER) == "run"
        asked = {*options.configurations, *options.columns, *options.where}
        kept = [index for index, head in enumerate(sheet.heads) if head.text in ("case", "fps") or head.text in asked]
        heads = tuple(
            replace(sheet.heads[index], text={"case": "direction", "fps": "rate [fps]"}.get(name, name))
            for index in kept
            if (name := sheet.heads[index].text)
        )
        problems: list[Problem] = []
        rows = []
        for row in sheet.rows:
            _check(row, places, problems)
            rows.append((*(replace(row[index], is_typed=True) for index in kept), *_place(sheet, row, of_runs=of_runs)))
        if problems:
            raise WrongFileError(path, problems)
        more = tuple(
            Cell(name, sheet.heads[0].position) for name in ("instances", "instance", "run")[: 2 if of_runs else 3]
        )
        ignored = tuple(
            head.text
            for index, head in enumerate(sheet.heads)
            if index not in kept and head.text not in (FILE_NUMBER, FILES)
        )
        return replace(sheet, heads=(*heads, *more), rows=tuple(rows), ignored=(*sheet.ignored, *ignored))


def _place(sheet: Sheet, row: tuple[Cell, ...], *, of_runs: bool) -> tuple[Cell, ...]:
    """Returns the cells of instances, instance and run."""
    number, files = (sheet.index_of(name) for name in (FILE_NUMBER, FILES))
    place = row[0].position
    if of_runs or number is None or files is None:
        return Cell("1", place, is_typed=True), Cell("1", place, is_typed=True)
    return replace(row[files], position=place), replace(row[number], position=place), Cell("1", place, is_typed=True)


def _check(row: tuple[Cell, ...], places: dict[str, int | None], problems: list[Problem]) -> None:
    """Adds a problem where the rate is not that of frames and time beside it."""
    cells = [row[places[name] or 0] for name in ("frames", "time", "fps")]
    figures = []
    for cell in cells:
        try:
            figures.append(plain_number(cell.text))
        except ValueError:
            problems.append(Problem(cell.position, f"{quote(cell.text)} is no number as tframetest prints it", None))
            return
    frames, time_ns, rate = figures
    if time_ns <= 0 or not math.isclose(frames * 1e9 / time_ns, rate, rel_tol=_CLOSE):
        what = f"fps {cells[2].text} cannot be: {cells[0].text} frames in {cells[1].text} ns make another"
        problems.append(Problem(cells[2].position, what, "correct it, or leave the row out by --where"))
