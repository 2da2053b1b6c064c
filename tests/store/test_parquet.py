"""Files of others: small ones that stand for more than memory holds, and counts that cannot be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nicbench.core.errors import HostError
from nicbench.store import Journal, tables
from nicbench.store.files import parse_json
from nicbench.store.tables import OF_FRAMES, OF_SAMPLES, TRIAL_SCHEMA

GOLDEN = Path(__file__).parent / "golden" / "1.6"


def test_more_rows_than_a_run_has_are_refused_by_what_the_file_says_of_them(tmp_path: Path) -> None:
    path = tmp_path / "trials.parquet"
    rows = OF_SAMPLES.rows + 1
    pq.write_table(pa.table({"id": pa.repeat("t0001", rows), "note": pa.repeat("x" * 1000, rows)}), path)
    assert path.stat().st_size < 100_000
    with pytest.raises(HostError, match="it has more than 250000 rows"):
        tables.read(path)
    with pytest.raises(HostError, match="is damaged"):
        tables.read_trials(path)
    assert tables.read(path, ["id"], bounds=OF_FRAMES).num_rows == rows


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("lost", -1, "t0001: lost is -1: less than none"),
        ("received", 10**12, "t0001: 1488095 frames were sent, and 1.* are accounted for"),
        ("reordered", 20_017, "t0001: 20017 frames are reordered, of 20016 received"),
    ],
)
def test_counts_of_a_trial_that_contradict_themselves_are_refused(
    tmp_path: Path, name: str, value: int, said: str
) -> None:
    path = tmp_path / "trials.parquet"
    shutil.copy(GOLDEN / path.name, path)
    table = tables.read_trials(path)
    column = table.column_names.index(name)
    wrong = pa.array([value, *table.column(name).to_pylist()[1:]], pa.int64())
    pq.write_table(table.set_column(column, table.schema.field(name), wrong), path)
    with pytest.raises(HostError, match=said):
        tables.read_trials(path)


def test_what_is_not_known_of_a_trial_is_no_contradiction(tmp_path: Path) -> None:
    path = tmp_path / "trials.parquet"
    table = tables.read(GOLDEN / path.name)
    unknown = {name: pa.nulls(table.num_rows, pa.int64()) for name in ("received", "lost")}
    for name, column in unknown.items():
        table = table.set_column(table.column_names.index(name), TRIAL_SCHEMA.field(name), column)
    pq.write_table(table, path)
    assert tables.read_trials(path).num_rows == table.num_rows


def test_text_of_more_parts_than_a_run_has_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_bytes(b"[" + b"[]," * 2**21 + b"0]")
    with pytest.raises(HostError, match="more than 2097152 lists and objects"):
        parse_json(path)
    path.write_bytes(b"[" + b"[]," * 2**19 + b"0]\n")
    with pytest.raises(HostError, match="line 1 has more than 524288 lists and objects"):
        list(Journal(path).events())
