"""Parquet tables of a run folder, its schema, and folders of earlier formats."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nicbench
from nicbench.core.errors import HostError, UsageError
from nicbench.core.judging import Verdict
from nicbench.core.reading import Times
from nicbench.core.result import Summary
from nicbench.core.round import Figures, Flow, FrameFigures, Job, JobOutcome, JobSpec, Round, RoundRequest
from nicbench.stats.latency import histogram_of
from nicbench.store import Journal, manifest, tables
from nicbench.store.files import json_text, parse_json
from nicbench.store.listing import headline
from nicbench.store.tables import OF_FRAMES, OF_SAMPLES, TRIAL_SCHEMA, rounds_parquet

# Files of others: small ones that stand for more than memory holds, and counts that cannot be.

GOLDEN = Path(__file__).parent / "golden" / "run"


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


# rounds.parquet: a row for each job, figures with their units, failures in words.


def a_round(*outcomes: JobOutcome) -> Round:
    ask = JobSpec(duration_s=1.0, write_bytes=8192)
    jobs = tuple(
        Job(workload="iperf3", client=f"c{number}", server="s0", ask=ask, port=5201 + 16 * number)
        for number in range(len(outcomes))
    )
    return Round(
        id="r0007",
        key="tcp/0/0",
        test="tcp",
        configuration="default",
        parameters={"mode": "TCP"},
        repeat=0,
        request=RoundRequest(jobs=jobs, duration_s=1.0),
        outcomes=outcomes,
        counters={"s0": {"rx_bytes": 10}},
        verdict=Verdict(),
    )


def test_every_job_of_a_round_is_a_row() -> None:
    flow = Flow(direction="reverse", received_bytes=5, received_bits_per_s=40.0, retransmissions=2)
    done = JobOutcome(figures=Figures(flows=(flow,)), version="3.12", client_command=("iperf3", "-c", "a b"))
    failed = JobOutcome(failure="iperf3 is not installed", repeatable=False)
    first, second = pq.read_table(io.BytesIO(rounds_parquet([a_round(done, failed)]))).to_pylist()
    assert (first["round"], first["job"], first["client"], first["server"]) == ("r0007", 1, "c0", "s0")
    assert (first["reverse_received_bits_per_s"], first["reverse_retransmissions"]) == (40.0, 2)
    assert first["forward_received_bits_per_s"] is None
    assert first["client_command"] == "iperf3 -c 'a b'"
    assert first["counters_json"] == '{"s0":{"rx_bytes":10}}'
    assert (second["job"], second["failure"], second["version"]) == (2, "iperf3 is not installed", None)


def test_frames_have_columns_of_their_own() -> None:
    times = Times(
        count=3, minimum_ns=10, mean_ns=20.0, maximum_ns=30, histogram=histogram_of([(10, 1), (20, 1), (30, 1)])
    )
    figures = FrameFigures(
        engine="io_uring",
        measured_ns=1,
        frames=3,
        bytes=30,
        frames_per_s=24.0,
        bytes_per_s=240.0,
        dropped_frames=1,
        due_frames=4,
        completion=times,
    )
    (row,) = pq.read_table(
        io.BytesIO(rounds_parquet([a_round(JobOutcome(figures=Figures(frames=figures)))]))
    ).to_pylist()
    assert (row["engine"], row["frames_per_s"], row["bytes_per_s"], row["frames"]) == ("io_uring", 24.0, 240.0, 3)
    assert (row["dropped_frames"], row["due_frames"]) == (1, 4)
    assert (row["completion_p50_ns"], row["completion_p99_ns"], row["completion_maximum_ns"]) == (20, None, 30)


def test_no_rounds_are_an_empty_table() -> None:
    assert pq.read_table(io.BytesIO(rounds_parquet([]))).num_rows == 0


# What is published about summary.json is true, and what is kept of the format stays readable.

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests" / "golden" / "summary-1.7.json"
SCHEMA = json.loads((ROOT / "docs" / "summary.schema.json").read_text(encoding="utf-8"))


def test_the_kept_summary_is_of_the_format_fits_the_schema_and_is_written_as_it_was() -> None:
    text = KEPT.read_text(encoding="utf-8")

    assert KEPT.stem == f"summary-{Summary.model_fields['format'].default}"
    jsonschema.validate(json.loads(text), SCHEMA)
    assert json_text(Summary.model_validate_json(text), sort_keys=True) + "\n" == text


def test_a_summary_with_an_unknown_key_does_not_fit() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"title": "x", "verdict": "valid", "format": "1.0", "speed": 1}, SCHEMA)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("MANIFEST.json", {"format": "2.0"}),
        ("summary.json", {"format": "1.99", "from_the_future": 1}),
    ],
)
def test_a_folder_of_a_newer_format_says_so(name: str, change: dict[str, object], tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "run")
    path = tmp_path / "run" / name
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    if name != manifest.NAME:
        manifest.write(tmp_path / "run")

    assert "newer nicbench" in (headline(tmp_path / "run").trouble or "")
    with pytest.raises(UsageError, match="newer nicbench"):
        nicbench.load(tmp_path / "run")
