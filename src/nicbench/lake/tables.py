"""The tables of a lake: their columns, which have the names of `nicbench list --json` and of the run's own tables.

A ``Part`` of a month's file is read column by column; a damaged one is an error that names the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nicbench.core.errors import HostError
from nicbench.core.frozen import frozen
from nicbench.lake.place import FIGURES, FORMAT, HEADLINE, ROUNDS, SETTINGS, SIGNATURE, TRIALS, Lake, Month
from nicbench.store.tables import (
    FLAG,
    NUMBER,
    ROUND_SCHEMA,
    TEXT,
    TEXTS,
    TRIAL_SCHEMA,
    WHOLE,
    Bounds,
    known,
    optional,
    refuse_excess,
)

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


_OF_RUN: Final = known(TEXT, "run_id")
_NOT_OF_A_LAKE: Final = frozenset(
    {"key", "findings", "ask_json", "cpu_json", "counters_json", "bonds_json", "client_command", "server_command"}
    | {"files", "settle_s", "drain_s", "sending_ns", "sent_while_sending"}
)
"""Columns of a run's own tables that explain one trial; whoever asks for them opens the run."""


def _own(schema: pa.Schema) -> tuple[pa.Field, ...]:
    """Returns columns of a run's table, all of which an older run may lack; ``place`` is the row's place in it."""
    of_run = (*_OF_RUN, pa.field("place", pa.int32(), nullable=False))
    return (*of_run, *(each.with_nullable(True) for each in schema if each.name not in _NOT_OF_A_LAKE))


_FIELDS: Final = {
    HEADLINE: (
        *_OF_RUN,
        *known(TEXT, "path"),
        *optional(TEXT, "title"),
        pa.field("started", pa.timestamp("ms", "UTC")),
        *optional(TEXT, "verdict"),
        *known(FLAG, "finished"),
        *known(WHOLE, "trials", "results"),
        *known(FLAG, "has_report"),
        *known(TEXTS, "tags", "cards", "kernels", "drivers", "methods", "configurations"),
        *optional(TEXT, "nicbench_version", "format", "headline"),
        *known(TEXTS, "machines"),  # host names; as tokens where the run was redacted
        *known(TEXT, "digest"),  # of MANIFEST.json, so of all measured, and the format
        *known(TEXT, "tags_digest"),  # of tags.json; empty where there is none
    ),
    # What a run disclosed, by the paths of `nicbench diff`: a long text, which many runs have in common.
    SETTINGS: (*_OF_RUN, pa.field("settings_json", pa.dictionary(pa.int32(), pa.string()), nullable=False)),
    FIGURES: (
        *_OF_RUN,
        pa.field("place", pa.int32(), nullable=False),  # of its result in the run
        *known(TEXT, "test", "method", "configuration", "scope", "parameters_json", "name", "label", "unit"),
        *known(FLAG, "is_main"),
        *optional(FLAG, "higher_is_better"),
        *optional(NUMBER, "value"),  # null where every load failed: it lies below ``upper``
        *known(TEXT, "verdict"),
        *optional(NUMBER, "lower", "upper"),
        *optional(TEXT, "limited_by"),
        *known(FLAG, "near_limit"),
    ),
    TRIALS: _own(TRIAL_SCHEMA),
    ROUNDS: _own(ROUND_SCHEMA),
}
SCHEMAS: Final = {table: pa.schema(fields, metadata={SIGNATURE: FORMAT.encode()}) for table, fields in _FIELDS.items()}
ORDERS: Final = {
    HEADLINE: ("run_id",),
    # What a chart or a check asks for lies together, so that the rest of the file is not read.
    FIGURES: ("test", "name", "configuration", "parameters_json", "method", "scope", "run_id", "place"),
    SETTINGS: ("run_id",),
    TRIALS: ("run_id", "place"),
    ROUNDS: ("run_id", "place"),
}
"""Rows of a table in order: no two are equal in it, so that equal rows give equal files."""


def fit(table: pa.Table, name: str) -> pa.Table:
    """Returns a table with the columns of the lake's: what it lacks is null, what is not of the lake is left out.

    pa.ArrowException where a column holds something else.
    """
    schema = SCHEMAS[name]
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


# Writes a month of a table anew: its rows without those that are replaced, and new ones, in their order.  Row groups
# have a fixed number of rows. With the order of rows, and one file for each month, equal rows are equal bytes.

_ROWS: Final = {HEADLINE: 65_536, SETTINGS: 4096, FIGURES: 131_072}
_ROWS_OF_SAMPLES: Final = 65_536
_LARGEST_DICTIONARY: Final = 2**28
_PLAIN: Final = ("run_id", "value", "lower", "upper", "digest", "headline", "path")
"""Columns whose values are all different: a dictionary of them is larger than they are."""


def merge(lake: Lake, month: Month, table: str, new: Sequence[pa.Table], replaced: Iterable[str]) -> bool:
    """Writes the month with the rows of ``new``, and without the earlier ones of the runs that are ``replaced``.

    Whether anything was written: a month without a row gets no file. HostError where it cannot be read or written.
    """
    old = lake.parts(month, table)
    if not old and not sum(each.num_rows for each in new):
        return False
    gone = pa.array(sorted(replaced), pa.string())
    added = pa.concat_tables([SCHEMAS[table].empty_table(), *new]).sort_by(_order(table))
    if ORDERS[table][0] == "run_id":
        parts = _in_between(_old_parts(table, old, gone), added)
    else:
        parts = iter([pa.concat_tables([*_rows_of(table, old, gone), added]).sort_by(_order(table))])
    with lake.writing(month, table) as stream:
        _write(table, parts, stream)
    return True


def write_table(table: str, rows: Iterable[pa.Table], stream: BinaryIO) -> None:
    """Writes rows that are in order as a file of the lake."""
    _write(table, iter(rows), stream)


def _order(table: str) -> list[tuple[str, str]]:
    return [(name, "ascending") for name in ORDERS[table]]


def _rows_of(table: str, old: Sequence[Part], gone: pa.Array) -> Iterator[pa.Table]:
    for rows, _ in _old_parts(table, old, gone):
        yield rows


def _old_parts(table: str, old: Sequence[Part], gone: pa.Array) -> Iterator[tuple[pa.Table, str]]:
    """Yields the rows that stay, in parts, each with the last run of the part before anything was taken out of it."""
    needed = [each.name for each in SCHEMAS[table] if not each.nullable]
    others = [each.name for each in SCHEMAS[table] if each.nullable]
    for part in old:
        # A file of an older format lacks some columns, and declares others as never null.
        rows = fit(part.read(needed, newer=others), table).replace_schema_metadata(None)
        if rows.num_rows:
            last = rows.column("run_id")[-1].as_py()
            yield (rows.filter(pc.invert(pc.is_in(rows.column("run_id"), gone))) if len(gone) else rows), last


def _in_between(parts: Iterator[tuple[pa.Table, str]], added: pa.Table) -> Iterator[pa.Table]:
    """Puts new rows, which are in the order of their runs, between the old ones: no run is both new and old."""
    names = added.column("run_id").to_pylist()
    done = 0
    order = [("run_id", "ascending"), *([("place", "ascending")] if "place" in added.column_names else [])]
    for rows, last in parts:
        until = done
        while until < len(names) and names[until] <= last:
            until += 1
        some = added.slice(done, until - done).replace_schema_metadata(None)
        yield pa.concat_tables([rows, some]).sort_by(order) if some.num_rows else rows
        done = until
    yield added.slice(done).replace_schema_metadata(None)


def _write(table: str, parts: Iterator[pa.Table], stream: BinaryIO) -> None:
    schema, size = SCHEMAS[table], _ROWS.get(table, _ROWS_OF_SAMPLES)
    with pq.ParquetWriter(
        stream,
        schema,
        compression="zstd",
        use_dictionary=[name for name in schema.names if name not in _PLAIN],
        store_schema=True,
        dictionary_pagesize_limit=_LARGEST_DICTIONARY,
    ) as writer:
        waiting = []
        count = 0
        for part in parts:
            waiting.append(part.replace_schema_metadata(schema.metadata))
            count += part.num_rows
            while count >= size:
                whole = pa.concat_tables(waiting)
                writer.write_table(_one_chunk(whole.slice(0, size)), row_group_size=size)
                waiting, count = [whole.slice(size)], count - size
        if count:
            writer.write_table(_one_chunk(pa.concat_tables(waiting)), row_group_size=size)


def _one_chunk(rows: pa.Table) -> pa.Table:
    """Returns rows in one chunk, and dictionaries in the order in which their texts first occur in it, without others.

    So the bytes of a row group do not tell from which files its rows came.
    """
    whole = rows.combine_chunks()
    columns = [
        _plain_dictionary(column.combine_chunks()) if pa.types.is_dictionary(column.type) else column
        for column in whole.columns
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _plain_dictionary(column: pa.Array) -> pa.Array:
    places = column.indices.to_numpy(zero_copy_only=False)
    used, first, again = np.unique(places, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(used), dtype=np.int32)
    rank[order] = np.arange(len(used), dtype=np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(rank[again], pa.int32()), column.dictionary.take(pa.array(used[order]))
    )
