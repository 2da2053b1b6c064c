"""The tables of a lake: their columns, which have the names of `nicbench list --json` and of the run's own tables."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from nicbench.lake.place import FIGURES, FORMAT, HEADLINE, ROUNDS, SETTINGS, SIGNATURE, TRIALS
from nicbench.store.record_tables import ROUND_SCHEMA, TRIAL_SCHEMA

_NAMES: Final = pa.list_(pa.string())
_OF_RUN: Final = (pa.field("run_id", pa.string(), nullable=False),)
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
        pa.field("path", pa.string(), nullable=False),
        pa.field("title", pa.string()),
        pa.field("started", pa.timestamp("ms", "UTC")),
        pa.field("verdict", pa.string()),
        pa.field("finished", pa.bool_(), nullable=False),
        pa.field("trials", pa.int64(), nullable=False),
        pa.field("results", pa.int64(), nullable=False),
        pa.field("has_report", pa.bool_(), nullable=False),
        pa.field("tags", _NAMES, nullable=False),
        pa.field("cards", _NAMES, nullable=False),
        pa.field("kernels", _NAMES, nullable=False),
        pa.field("drivers", _NAMES, nullable=False),
        pa.field("methods", _NAMES, nullable=False),
        pa.field("configurations", _NAMES, nullable=False),
        pa.field("nicbench_version", pa.string()),
        pa.field("format", pa.string()),
        pa.field("headline", pa.string()),
        pa.field("machines", _NAMES, nullable=False),  # host names; as tokens where the run was redacted
        pa.field("digest", pa.string(), nullable=False),  # of MANIFEST.json, so of all measured, and the format
        pa.field("tags_digest", pa.string(), nullable=False),  # of tags.json; empty where there is none
    ),
    # What a run disclosed, by the paths of `nicbench diff`: a long text, which many runs have in common.
    SETTINGS: (*_OF_RUN, pa.field("settings_json", pa.dictionary(pa.int32(), pa.string()), nullable=False)),
    FIGURES: (
        *_OF_RUN,
        pa.field("place", pa.int32(), nullable=False),  # of its result in the run
        pa.field("test", pa.string(), nullable=False),
        pa.field("method", pa.string(), nullable=False),
        pa.field("configuration", pa.string(), nullable=False),
        pa.field("scope", pa.string(), nullable=False),
        pa.field("parameters_json", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("label", pa.string(), nullable=False),
        pa.field("unit", pa.string(), nullable=False),
        pa.field("is_main", pa.bool_(), nullable=False),
        pa.field("higher_is_better", pa.bool_()),
        pa.field("value", pa.float64()),  # null where every load failed: it lies below ``upper``
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("lower", pa.float64()),
        pa.field("upper", pa.float64()),
        pa.field("limited_by", pa.string()),
        pa.field("near_limit", pa.bool_(), nullable=False),
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
