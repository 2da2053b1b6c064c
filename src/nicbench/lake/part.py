"""A part of a month's file, which is read column by column; a damaged one is an error that names the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from nicbench.core.errors import HostError
from nicbench.core.frozen import frozen
from nicbench.store.tables import Bounds, refuse_excess

_BOUNDS: Final = Bounds(4_000_000, 2 * 2**30)
"""Many times the rows of a part that is written here, so that other programs may write larger ones."""


@frozen
class Part:
    """A row group of the file at ``place``."""

    place: str
    file: pq.ParquetFile
    number: int

    @property
    def count(self) -> int:
        """How many rows it has."""
        return int(self.file.metadata.row_group(self.number).num_rows)

    def read(self, columns: Sequence[str] | None = None, *, newer: Sequence[str] = ()) -> pa.Table:
        """Reads these columns, or all, and those ``newer`` ones that the file has: one of an older format lacks some.

        HostError where they are damaged, or the file lacks one of ``columns``.
        """
        if columns is not None:
            columns = [*columns, *(name for name in newer if name in self.file.schema_arrow.names)]
        try:
            refuse_excess(self.file.metadata, [self.number], _BOUNDS)
            # By one thread, which takes less memory; the columns of a search are small.
            rows = self.file.read_row_group(self.number, columns=columns, use_threads=False)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise damaged_error(self.place, error) from error
        if lacking := [name for name in columns or () if name not in rows.column_names]:
            raise damaged_error(self.place, ValueError(f"it has no column {lacking[0]}"))
        return rows

    def bounds(self, column: str) -> tuple[Any, Any] | None:
        """Returns the least and the greatest value of a column; None where the file does not say."""
        about = self.file.metadata.row_group(self.number)
        told = about.column(self.file.schema_arrow.get_field_index(column)).statistics
        return (told.min, told.max) if told is not None and told.has_min_max else None


def damaged_error(place: str, error: Exception) -> HostError:
    """Makes the error for a file of a lake that cannot be read."""
    return HostError(
        f"cannot be read: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
        place=place,
        next_step="put it back from a copy, or remove the month and gather its runs again",
    )
