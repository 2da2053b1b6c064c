"""Titles, host names and words of tools that mean harm do none, in any kind of file."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest

from nicbench.core.errors import NicbenchError
from nicbench.core.registry import find
from nicbench.export.document import harmless_cell, replace_controls, storable
from nicbench.export.formats.base import ExportFormat
from nicbench.export.source import ExportSource
from nicbench.store import RunFolder

FORMATS = find("nicbench.export.formats", ExportFormat)  # type: ignore[type-abstract]
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def exported(path: Path, kind: str, table: str = "results") -> bytes:
    stream = io.BytesIO()
    FORMATS[kind]().write(ExportSource(RunFolder.open(path)), table, stream)
    return stream.getvalue()


def test_no_cell_of_text_begins_like_a_formula(hostile_run: Path) -> None:
    for table in ("results", "values"):
        text = exported(hostile_run, "csv", table).decode()
        for row in csv.reader(io.StringIO(text, newline="")):
            assert not [cell for cell in row if cell.startswith(FORMULA)]


@pytest.mark.parametrize("number", [-1.5, -7, 1e-30])
def test_a_negative_number_stays_one(number: float, hostile_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nicbench.export.tables import Column, Table

    table = Table("results", (Column("x_ns", "number", "ns"),), ((number,),))
    monkeypatch.setattr(ExportSource, "table", lambda self, name: table)

    assert exported(hostile_run, "csv").decode() == f"x_ns\r\n{number!r}\r\n"


def test_no_cell_of_a_workbook_is_more_than_text(hostile_run: Path) -> None:
    book = zipfile.ZipFile(io.BytesIO(exported(hostile_run, "xlsx")))
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    kinds = set()
    for name in book.namelist():
        root = ElementTree.fromstring(book.read(name))
        assert not list(root.iter(f"{space}f"))
        assert not list(root.iter(f"{space}hyperlink"))
        if "sheets/" in name:
            assert not list(root.iter(f"{space}r")), "no text is taken for the library's own rich text"
            kinds |= {cell.get("t") for cell in root.iter(f"{space}c")}
    assert kinds <= {None, "inlineStr", "b"}


def test_xml_and_json_are_well_formed_and_keep_the_words(hostile_run: Path) -> None:
    root = ElementTree.fromstring(exported(hostile_run, "junit"))
    assert len(list(root.iter("testcase"))) == 19
    assert "<script>alert(1)</script>" in "".join(root.itertext())
    document = json.loads(exported(hostile_run, "json"))
    summary = json.loads((hostile_run / "summary.json").read_text())
    assert [each["configuration"] for each in document["results"]] == [
        each["configuration"] for each in summary["results"]
    ]


def test_parquet_holds_the_words_as_they_are(hostile_run: Path) -> None:
    table = pq.read_table(io.BytesIO(exported(hostile_run, "parquet")))
    summary = json.loads((hostile_run / "summary.json").read_text())

    assert table["parameter_host"].to_pylist() == [each["parameters"]["host"] for each in summary["results"]]


def test_half_a_character_is_written_as_the_replacement_character() -> None:
    assert storable("a\ud800b") == "a\ufffdb"
    assert storable("\ud83d\ude00") == "\U0001f600"
    assert replace_controls("a\x00\ud800\tb\n") == "a\ufffd\ufffd\tb\n"
    assert harmless_cell("-5") == "'-5"


@pytest.mark.parametrize("wrong", ["1e999", "NaN", "-Infinity", "1" + "0" * 400])
@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_a_number_that_is_none_is_an_error_that_names_it(
    wrong: str, kind: str, every_shape: Path, tmp_path: Path
) -> None:
    path = damaged_copy(every_shape, tmp_path, '"latency_p50_ns": 5400', f'"latency_p50_ns": {wrong}')

    with pytest.raises(NicbenchError) as stopped:
        exported(path, kind)
    assert "latency_p50_ns" in stopped.value.message
    assert re.fullmatch(rf"{re.escape(str(path))}/summary\.json:\d+", stopped.value.place or "")


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_half_characters_in_a_summary_end_no_export(kind: str, every_shape: Path, tmp_path: Path) -> None:
    path = damaged_copy(every_shape, tmp_path, '"title": "A run"', '"title": "A \\ud800 run"')

    try:
        content = exported(path, kind)
    except NicbenchError as error:
        assert (error.place or "").startswith(str(path / "summary.json"))  # noqa: PT017 - either is well
    else:
        assert content


def test_an_inventory_that_is_nested_too_deep_is_damaged(every_shape: Path, tmp_path: Path) -> None:
    path = damaged_copy(every_shape, tmp_path, "", "")
    (path / "inventory.json").write_text("[" * 500 + "]" * 500)

    with pytest.raises(NicbenchError) as stopped:
        exported(path, "xlsx")
    assert stopped.value.place == f"{path}/inventory.json:1"


def damaged_copy(run: Path, parent: Path, old: str, new: str) -> Path:
    """A copy of a run with other words in its summary."""
    path = parent / "copy"
    path.mkdir()
    for file in run.iterdir():
        if file.is_file():
            (path / file.name).write_bytes(file.read_bytes())
    text = (path / "summary.json").read_text()
    assert old in text
    (path / "summary.json").write_text(text.replace(old, new) if old else text)
    return path
