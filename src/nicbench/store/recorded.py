"""monitor.parquet of what another program recorded: the same table as that of our own monitor, written at once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from nicbench.store.files import writing_atomically
from nicbench.store.monitor_table import NAME, SCHEMA

_ROWS: Final = 100_000
"""Kept in memory at one time."""


def write(folder: Path, rows: Iterable[tuple[Any, ...]]) -> None:
    """Rows in the order of ``SCHEMA``, those of a sample together. HostError where they cannot be written."""
    left = iter(rows)
    # One session, and what the recording cost nobody says.
    about = {b"nicbench.monitor": json.dumps({"format": "1.0", "sessions": [0], "costs": []}).encode()}
    with writing_atomically(folder / NAME) as stream, pq.ParquetWriter(stream, SCHEMA, compression="zstd") as writer:
        while part := list(islice(left, _ROWS)):
            columns = zip(*part, strict=True)
            arrays = [pa.array(column, type=each.type) for column, each in zip(columns, SCHEMA, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
        writer.add_key_value_metadata(about)
