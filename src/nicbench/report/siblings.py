"""Sibling tables: the sections of one method's table in a report, whose like columns have the same decimals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from nicbench.core.result import Result
from nicbench.core.table import Column, ResultTable
from nicbench.core.units import Form

Among = Callable[[Column], Sequence[Result]]
"""The results whose values decide how many decimals a column has."""
_Key = tuple[str, str | None]


class Siblings:
    """Knows the results of all sections of a table that show the same value in the same unit."""

    def __init__(self, sections: Iterable[tuple[_Key, ResultTable, Sequence[Result]]]) -> None:
        self._results: dict[tuple[_Key, str, Form], list[Result]] = {}
        for key, table, results in sections:
            columns = (*table.columns, *(column for further in table.further for column in further.columns))
            columns = (*columns, table.grid.cell) if table.grid else columns
            for value, form in dict.fromkeys((column.value, column.form) for column in columns):
                self._results.setdefault((key, value, form), []).extend(results)

    def among(self, key: _Key, column: Column) -> Sequence[Result]:
        """Returns the results of every section with this column; empty where none has it."""
        return self._results.get((key, column.value, column.form), ())
