"""Every kind of export has the numbers of summary.json, to the last digit, and unknown stays unknown."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nicbench
from nicbench.core.errors import UsageError
from nicbench.core.registry import find
from nicbench.core.result import Bounded, Result, ResultVerdict, Summary
from nicbench.export.document import FORMAT, ExportDocument, export_schema, export_schema_text
from nicbench.export.formats.base import ExportFormat
from nicbench.export.source import ExportSource, document_of
from nicbench.export.tables import BESIDE, OF_RESULT, OF_VALUE, long_table, unit_of, wide_table
from nicbench.methods.base import Method
from nicbench.store import RunFolder

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs/site"))
from nicbench_docs.program import column_rows  # noqa: E402

FORMATS = find("nicbench.export.formats", ExportFormat)  # type: ignore[type-abstract]


def exported(path: Path, kind: str, table: str = "results") -> bytes:
    stream = io.BytesIO()
    FORMATS[kind]().write(ExportSource(RunFolder.open(path)), table, stream)
    return stream.getvalue()


def rows(path: Path, table: str = "results") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(exported(path, "csv", table).decode(), newline="")))


def test_the_published_schema_is_current_and_an_export_fits_it(every_shape: Path, measured: Path) -> None:
    published = (ROOT / "docs" / "export.schema.json").read_text(encoding="utf-8")

    assert published == export_schema_text(), "to be made anew by `python -m nicbench.export.document`"
    for path in (every_shape, measured):
        jsonschema.validate(json.loads(exported(path, "json")), export_schema())


@given(
    value=st.one_of(st.none(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    upper=st.floats(allow_nan=False, allow_infinity=False),
)
@settings(max_examples=60)
def test_any_number_comes_through_json_and_csv_as_it_is(
    value: float | None, upper: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = RunFolder(tmp_path_factory.mktemp("empty"))
    given_values = {"x_ns": value, "rate_frames_per_s": Bounded(value=upper, lower=None, upper=upper, n=1)}
    row = Result(id="a", test="a", method="m", parameters={}, values=given_values)
    document = document_of(folder, Summary(title="t", verdict=ResultVerdict.VALID, results=(row,)))
    read = ExportDocument.model_validate_json(document.model_dump_json())
    assert [found.value for found in read.results[0].values] == [value, upper]
    table = wide_table(document)
    cells = dict(zip([column.name for column in table.columns], table.rows[0], strict=True))
    assert repr(cells["x_ns"]) == repr(value)
    assert repr(cells["rate_frames_per_s_upper"]) == repr(upper)


def test_csv_has_a_row_for_each_result_and_reads_back_exactly(every_shape: Path) -> None:
    found = rows(every_shape)

    assert [row["result"] for row in found] == ["first/64", "first/64/2", "first/mix", "second/64", "first/64/over"]
    first, second, mix, imported, over = found
    assert float(second["ndr_frames_per_s"]) == 0.1 + 0.2
    assert float(second["ndr_frames_per_s_upper"]) == 1234567.8901234567
    assert float(second["tiny_ratio"]) == 5e-324
    assert int(second["sent_frames"]) == 2**53 + 1
    assert second["loss_ratio"] == "", "unknown is empty"
    assert second["loss_percent"] == "0.0", "zero is not"
    assert second["ndr_frames_per_s_limited_by"] == "dut"
    assert second["pdr_frames_per_s_at_least"] == "true"
    assert second["idle_frames_per_s_reason_null"].startswith("passes nothing")
    assert (first["warm_up"], second["warm_up"]) == ("true", "false")
    assert mix["verdict"] == "disturbed"
    assert mix["disturbances"].endswith("; and more")
    assert (mix["parameter_frame_bytes"], mix["parameter_ports"]) == ("imix", '["a","b"]')
    assert (mix["latency_p50_ns"], mix["latency_p50_ns_text"]) == ("", "not timed")
    assert (imported["imported"], imported["latency_p50_ns_printed"]) == ("true", "5.4")
    assert imported["latency_p50_ns_errata"] == "7:3: digits swapped"
    assert (over["span"], over["run"], over["ndr_frames_per_s_runs"]) == ("over_runs", "", "4")
    assert (over["ndr_frames_per_s_lower"], over["ndr_frames_per_s_mean"]) == ("310000.0", "325000.0")


def test_the_long_table_has_a_row_for_each_value_with_its_unit(every_shape: Path) -> None:
    found = {(row["result"], row["name"]): row for row in rows(every_shape, "values")}

    assert found["first/64", "latency_p50_ns"]["unit"] == "ns"
    assert found["first/64", "latency_p50_ns"]["value"] == "5400"
    assert found["first/64", "latency_source"]["text"] == "software"
    assert found["first/64", "loss_ratio"]["kind"] == "unknown"
    assert found["first/64/2", "ndr_frames_per_s"]["near_limit"] == "near the ceiling"
    assert found["second/64", "loss_percent"]["computed"] == "true"
    assert found["first/64/over", "ndr_frames_per_s"]["mean_confidence_ratio"] == "0.95"


def test_csv_is_rfc_4180(every_shape: Path) -> None:
    text = exported(every_shape, "csv").decode("utf-8")

    assert text.endswith("\r\n")
    assert "\n" not in text.replace("\r\n", "")


def test_parquet_has_types_and_units(every_shape: Path) -> None:
    table = pq.read_table(io.BytesIO(exported(every_shape, "parquet")))

    assert table.schema.field("ndr_frames_per_s").metadata[b"unit"] == b"frames_per_s"
    assert table.schema.field("parameter_frame_bytes").metadata[b"unit"] == b"bytes"
    assert [str(table.schema.field(name).type) for name in ("sent_frames", "tiny_ratio", "warm_up", "verdict")] == [
        "int64",
        "double",
        "bool",
        "string",
    ]
    assert table["sent_frames"].to_pylist() == [2**53 + 1, 2**53 + 1, None, 2**53 + 1, None]
    assert table["ndr_frames_per_s"].to_pylist()[0] == 0.1 + 0.2


def test_the_long_parquet_has_all_digits_of_a_whole_number_that_its_column_cannot_hold(every_shape: Path) -> None:
    table = pq.read_table(io.BytesIO(exported(every_shape, "parquet", "values")))
    found = [row for row in table.to_pylist() if row["name"] == "sent_frames" and row["value"] is not None]

    assert found
    assert {(row["value"], row["text"]) for row in found} == {(float(2**53 + 1), str(2**53 + 1))}


@pytest.mark.parametrize("table", ["results", "values", "trials"])
def test_parquet_and_csv_have_the_same_rows(table: str, measured: Path) -> None:
    parquet = pq.read_table(io.BytesIO(exported(measured, "parquet", table)))
    found = rows(measured, table)

    assert parquet.column_names == list(found[0])
    assert parquet.num_rows == len(found) > 0


def sheets(content: bytes) -> dict[str, list[list[tuple[str | None, str]]]]:
    """Of each sheet its rows of cells: type, and what is stored."""
    space = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
    book = zipfile.ZipFile(io.BytesIO(content))
    names = [
        sheet.get("name")
        for sheet in ElementTree.fromstring(book.read("xl/workbook.xml")).iterfind(".//m:sheet", space)
    ]
    found = {}
    for number, name in enumerate(names, start=1):
        root = ElementTree.fromstring(book.read(f"xl/worksheets/sheet{number}.xml"))
        assert root.find(".//m:f", space) is None, "there is no formula"
        assert root.find(".//m:hyperlink", space) is None, "there is no link"
        found[str(name)] = [
            [(cell.get("t"), "".join(cell.itertext())) for cell in row.iterfind("m:c", space)]
            for row in root.iterfind(".//m:row", space)
        ]
    return found


def test_a_workbook_has_numbers_as_numbers_with_all_their_digits(every_shape: Path, measured: Path) -> None:
    found = sheets(exported(every_shape, "xlsx"))
    assert list(found) == ["results", "values", "settings", "machine"]
    assert (None, "0.30000000000000004") in found["results"][1]
    assert (None, "1234567.8901234567") in found["results"][1]
    assert ("inlineStr", str(2**53 + 1)) in found["results"][1], "text where a spreadsheet would drop digits"
    assert "ndr_frames_per_s [frames_per_s]" in [text for _, text in found["results"][0]]
    assert any(row[0][1] == "plan.thresholds[0].name" for row in found["settings"])

    assert list(sheets(exported(measured, "xlsx"))) == ["results", "values", "trials", "settings", "machine"]


def test_the_same_run_is_the_same_bytes_in_every_kind(measured: Path) -> None:
    for kind in FORMATS:
        assert exported(measured, kind) == exported(measured, kind), kind


def test_fixed_columns_come_first_in_a_stable_order(every_shape: Path, measured: Path) -> None:
    for make in (wide_table, long_table):
        one, other = (
            [column.name for column in make(document_of(RunFolder.open(path))).columns]
            for path in (every_shape, measured)
        )
        fixed = next(place for place, name in enumerate(one) if name.startswith("parameter_"))
        assert one[:fixed] == other[:fixed]


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("frames_per_s", "frames_per_s"),
        ("ndr_frames_per_s", "frames_per_s"),
        ("throughput_l1_bits_per_s", "bits_per_s"),
        ("bytes_per_s", "bytes_per_s"),
        ("ndr_percent_of_line_rate", "percent"),
        ("latency_p99_9_ns", "ns"),
        ("search_traffic_s", "s"),
        ("latency_p50_ns_change_percent", "percent"),
        ("tsc_cycles_per_packet", "cycles_per_packet"),
        ("core_clock_hz", "hz"),
        ("connections_per_s", "connections_per_s"),
        ("opened_per_s", "per_s"),
        ("joules_per_gigabit", "joules_per_gigabit"),
        ("joules_per_gigabit_above_idle", "joules_per_gigabit"),
        ("joules_per_gigabit_above_idle_interval", "joules_per_gigabit"),
        ("watts_lower", "watts"),
        ("ndr_frames_per_s_sum_of_ports", "frames_per_s"),
        ("fairness", None),
        ("met", None),
        ("status", None),
    ],
)
def test_the_unit_is_the_end_of_the_name(name: str, unit: str | None) -> None:
    assert unit_of(name) == unit


def test_no_rate_of_any_method_is_exported_as_a_time() -> None:
    names = {
        column.value
        for method in find("nicbench.methods", Method).values()
        for table in method.tables()
        for column in table.columns
    }
    rates = {name: unit_of(name) for name in names if name.split("_")[-2:-1] == ["per"]}
    assert len(rates) > 5
    assert {name: unit for name, unit in rates.items() if "per_" not in (unit or "")} == {}


def test_the_documentation_names_every_column_and_every_kind() -> None:
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    tables = (ROOT / "docs/tables/export.markdown").read_text(encoding="utf-8")

    shown = [*column_rows("results"), *column_rows("values")]
    assert [cell for cell, _, about in shown if not about] == []
    assert [cell for cell, _, _ in shown] == [f"`{c.name}`" for c in (*OF_RESULT, *OF_VALUE)]
    assert re.findall(r"^<!-- columns (\w+) -->$", tables, re.MULTILINE) == ["results", "values"]
    assert [figure for figure in BESIDE if f"`{figure}`" not in page] == []
    assert [kind for kind in FORMATS if f"| `{kind}` |" not in page] == []
    assert f"now {FORMAT}." in page


NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


def code_cells() -> list[str]:
    content = json.loads(NOTEBOOK.read_text())
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]


def test_importing_nicbench_loads_nothing_heavy() -> None:
    program = (
        "import sys, nicbench; print(*[n for n in ('pydantic', 'pyarrow', 'numpy', 'altair') if n in sys.modules])"
    )

    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout == b"\n"


def test_a_run_has_typed_results_and_tables(measured: Path) -> None:
    run = nicbench.load(measured)
    rate = run.results[0].values["ndr_frames_per_s"]

    assert isinstance(rate, nicbench.Bounded)
    results = run.results_frame()
    assert results.num_rows == len(run.results) == 6
    assert results["ndr_frames_per_s"][0].as_py() == rate.value
    assert results["ndr_frames_per_s_upper"][0].as_py() == rate.upper
    assert run.values_frame().num_rows == sum(len(result.values) for result in run.results)
    assert run.trials_frame().num_rows == 26
    assert run.rounds_frame().num_rows == run.frames_frame().num_rows == run.monitor_frame().num_rows == 0
    assert "value" in run.monitor_frame().column_names
    with pytest.raises(UsageError, match="did not sample nonsense"):
        run.monitor_frame(["nonsense"])


def test_a_run_is_found_by_its_id_and_as_the_latest(measured: Path) -> None:
    assert nicbench.load(measured.name, runs=measured.parent).run_id == measured.name
    assert nicbench.load("latest", runs=str(measured.parent)).run_id == measured.name


def test_a_run_that_is_not_finished_gives_its_results_so_far(synthetic: Any, tmp_path: Path) -> None:
    begun = synthetic.SyntheticRun(tmp_path).start()
    begun.measure((64,), latency=False)
    begun.folder.journal.close()
    run = nicbench.load(begun.folder.path)

    assert run.summary.verdict is ResultVerdict.INCOMPLETE
    assert not run.document.run.finished
    assert (len(run.results), run.trials_frame().num_rows) == (1, 11)


def test_every_cell_of_the_notebook_runs_and_draws_a_chart(
    measured: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NICBENCH_RUN", str(measured))
    names = {}
    for number, cell in enumerate(code_cells(), start=1):
        exec(compile(cell, f"cell {number}", "exec"), names)

    assert measured.name in capsys.readouterr().out
    drawn = names["chart"].to_dict()
    rows = next(iter(drawn["datasets"].values()))
    assert {row["name"] for row in rows} == {"ndr_frames_per_s", "pdr_frames_per_s"}
    assert {row["result"] for row in rows} == {"throughput/64"}, "what was disturbed is left out"


def test_the_notebook_holds_no_output() -> None:
    content = json.loads(NOTEBOOK.read_text())

    assert not [cell for cell in content["cells"] if cell.get("outputs") or cell.get("execution_count")]
