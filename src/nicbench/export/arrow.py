"""Tables of an export as Arrow tables: the unit of a column, and what it is about, are metadata of its field."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from nicbench.export.tables import Cell, Kind, Table

_TYPES: Final[dict[Kind, pa.DataType]] = {
    "text": pa.string(),
    "number": pa.float64(),
    "integer": pa.int64(),
    "flag": pa.bool_(),
}


def arrow_table(table: Table) -> pa.Table:
    """Every column with the type of its kind; None is null."""
    fields, arrays = [], []
    for place, column in enumerate(table.columns):
        told = {"unit": column.unit, "about": column.about}
        metadata = {key: text for key, text in told.items() if text}
        fields.append(pa.field(column.name, _TYPES[column.kind], metadata=metadata or None))
        cells = [_cell(row[place], column.kind) for row in table.rows]
        arrays.append(pa.array(cells, type=_TYPES[column.kind]))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _cell(cell: Cell, kind: Kind) -> Cell:
    if cell is None:
        return None
    if kind == "number":
        return float(cell)
    return str(cell) if kind == "text" else cell
