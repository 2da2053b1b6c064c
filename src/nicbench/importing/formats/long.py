"""A table with one figure in each row: ``metric`` (or ``statistic``), ``value`` and ``unit``, and its point."""

from __future__ import annotations

from typing import ClassVar

from nicbench.core.errors import Problem, WrongFileError
from nicbench.importing.cells import Cell, Sheet
from nicbench.importing.columns import ImportOptions
from nicbench.importing.formats.base import Format


class Long(Format):
    """Pivots the table: rows that agree in the other columns become one row, each metric a column."""

    kind: ClassVar[str] = "long"
    about: ClassVar[str] = "columns metric, value and unit: a figure on each row"

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        metric, value, unit = (sheet.index_of(name) for name in ("metric", "value", "unit"))
        metric = sheet.index_of("statistic") if metric is None else metric
        if metric is None or value is None:
            missing = "metric" if metric is None else "value"
            raise WrongFileError(
                path, [Problem(sheet.heads[0].position, f"there is no column `{missing}`", "is it --from plain?")]
            )
        keys = [number for number in range(len(sheet.heads)) if number not in (metric, value, unit)]
        points: dict[tuple[str, ...], dict[str, Cell]] = {}
        first_cells: dict[tuple[str, ...], list[Cell]] = {}
        heads: dict[str, Cell] = {}
        problems = []
        for row in sheet.rows:
            texts = tuple(row[key].text for key in keys)
            point = points.setdefault(texts, {})
            first_cells.setdefault(texts, [row[key] for key in keys])  # keeps the first row's cells
            name, cell = row[metric].text, row[value]
            if name in point:
                first = point[name].position.line
                problems.append(Problem(row[metric].position, f"`{name}` stands on line {first} already", None))
            written = f"{cell.text} {row[unit].text}".strip() if unit is not None and cell.text else cell.text
            point[name] = Cell(written, cell.position)
            heads.setdefault(name, row[metric])
        if problems:
            raise WrongFileError(path, problems)
        rows = []
        for texts, figures in points.items():
            place = next(iter(figures.values())).position
            rows.append((*first_cells[texts], *(figures.get(name, Cell("", place)) for name in heads)))
        return Sheet((*(sheet.heads[key] for key in keys), *heads.values()), tuple(rows))
