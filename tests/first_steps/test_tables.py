"""Tables as vendors and labs keep them: what `nicbench init datasheet` proposes works, unedited, in two commands."""

from __future__ import annotations

import gzip
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from nicbench.cli.main import main
from nicbench.first_steps.tables import how_to_import

Expected = set[tuple[str, str, int, float]]
"""Method, configuration, frame size, and frames/s or ns."""
A, B = "Card A", "Card B"
RATES = {("throughput", "default", 64, 37.2e6), ("throughput", "default", 512, 5.87e6)}
LATENCIES = {("latency", "default", 64, 9100.0), ("latency", "default", 512, 14000.0)}
OF_TWO = {
    ("throughput", A, 64, 37.2e6),
    ("throughput", A, 512, 5.87e6),
    ("throughput", B, 64, 30.1e6),
    ("throughput", B, 512, 5.5e6),
}
LATENCIES_OF_TWO = {
    ("latency", A, 64, 9100.0),
    ("latency", A, 512, 14_000.0),
    ("latency", B, 64, 12_500.0),
    ("latency", B, 512, 20_000.0),
}


@dataclass(frozen=True)
class Table:
    """A spreadsheet: its name, what writes it, and what is in it."""

    name: str
    write: Callable[[Path], None]
    expected: Expected


def text(content: str, encoding: str = "utf-8") -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content.encode(encoding)) and None


def packed(content: str) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(gzip.compress(content.encode())) and None


def workbook(
    *rows: tuple[Any, ...], merged: tuple[str, ...] = (), percent: int | None = None, second: bool = False
) -> Callable[[Path], None]:
    """An XLSX of these rows; a merged area repeats nothing, as spreadsheets save it."""

    def write(path: Path) -> None:
        with xlsxwriter.Workbook(path) as book:
            if second:
                book.add_worksheet("Remarks").write(0, 0, "Measured in May")
            sheet = book.add_worksheet("Results")
            shown = book.add_format({"num_format": "0.0%"})
            for line, row in enumerate(rows):
                for column, cell in enumerate(row):
                    if cell is not None:
                        sheet.write(line, column, cell, shown if column == percent and line else None)
            for area in merged:
                first = area.partition(":")[0]
                line, column = int(first[1:]) - 1, ord(first[0]) - ord("A")
                sheet.merge_range(area, rows[line][column])

    return write


NAMES = ("Frame size", "Throughput [Mpps]")
TABLES = [
    Table("plain.csv", text("Frame size [bytes],Frame rate [Mpps]\n64,37.2\n512,5.87\n"), RATES),
    Table("packed.csv.gz", packed("size,Mpps\n64,37.2\n512,5.87\n"), RATES),
    Table("unit_heads.csv", text("FRAME_SIZE_BYTES,FRAME_RATE_MPPS\n64,37.2\n512,5.87\n"), RATES),
    Table("german.csv", text("Paketgröße [Byte];Durchsatz [Mpps]\n64;37,2\n512;5,87\n"), RATES),
    Table("windows.csv", text("Paketgröße [Byte];Durchsatz [Mpps]\n64;37,2\n512;5,87\n", "cp1252"), RATES),
    Table("thousands.csv", text("Rahmengröße;Durchsatz [Pakete/s]\n64;37.200.000\n512;5.870.000\n"), RATES),
    Table("blanks.csv", text("Taille de trame;Débit [fps]\n64;37\u202f200\u202f000\n512;5\u202f870\u202f000\n"), RATES),
    Table("both.csv", text("Size,Throughput [Mpps],Latency [us]\n64,37.2,9.1\n512,5.87,14\n"), RATES | LATENCIES),
    Table(
        "beide.csv",
        text("Paketgröße;Durchsatz [Mpps];mittlere Latenz [µs]\n64;37,2;9,1\n512;5,87;14,0\n"),
        RATES | LATENCIES,
    ),
    Table(
        "comma_in_heads.csv",
        text("Frame size [bytes];Frame rate [Mpps];Remark, if any\n64;37,2;a, b\n512;5,87;c, d\n"),
        RATES,
    ),
    Table("across.csv", text("Frame size,Card A [Mpps],Card B [Mpps]\n64,37.2,30.1\n512,5.87,5.5\n"), OF_TWO),
    Table(
        "two_lines.csv",
        text(
            ",Card A,,Card B,\nFrame size,Rate [Mpps],Latency [us],Rate [Mpps],Latency [us]\n"
            "64,37.2,9.1,30.1,12.5\n512,5.87,14,5.5,20\n"
        ),
        OF_TWO | LATENCIES_OF_TWO,
    ),
    Table(
        "measures_above.csv",
        text(
            ",Throughput (Mpps),,Latency (µs),\nSize,Card A,Card B,Card A,Card B\n"
            "64,37.2,30.1,9.1,12.5\n512,5.87,5.5,14,20\n"
        ),
        OF_TWO | LATENCIES_OF_TWO,
    ),
    Table(
        "units_below.csv",
        text("Frame size,Throughput,Latency\nbytes,Mpps,us\n64,37.2,9.1\n512,5.87,14\n"),
        RATES | LATENCIES,
    ),
    Table(
        "sizes_across.csv",
        text("Throughput [Mpps],64,512\nCard A,37.2,5.87\nCard B,30.1,5.5\n"),
        OF_TWO,
    ),
    Table(
        "measures_down.csv",
        text("Frame size,64 B,512 B\nThroughput (Mpps),37.2,5.87\nLatency (us),9.1,14\n"),
        RATES | LATENCIES,
    ),
    Table(
        "title_and_notes.csv",
        text(
            "Throughput of our card, May 2026\n\nFrame size [bytes],Frame rate [Mpps]\n64,37.2\n512,5.87\n\n"
            "* measured with 2 queues, firmware 7.2\n"
        ),
        RATES,
    ),
    Table("merged.csv", text("NIC,Size,Mpps\nCard A,64,37.2\n,512,5.87\nCard B,64,30.1\n,512,5.5\n"), OF_TWO),
    Table("long.csv", text("frame size,metric,value,unit\n64,throughput,37.2,Mpps\n512,throughput,5.87,Mpps\n"), RATES),
    Table(
        "twice.csv",
        text("Packet Size (Bytes),Throughput (Mpps),Throughput (Gbps)\n64,37.2,19.05\n512,5.87,24.04\n"),
        RATES,
    ),
    Table(
        "verbunden.csv",
        text(
            "Karte;Paketgröße (Byte);Durchsatz (Mpps);Anteil Linerate;Bemerkung\n"
            "Card A;64;37,2;100 %;warm\n;512;5,87;99,9 %;\nCard B;64;30,1;80,9 %;\n;512;5,5;93,6 %;kalt\n"
        ),
        OF_TWO,
    ),
    Table("sheet.xlsx", workbook(NAMES, (64, 37.2), (512, 5.87)), RATES),
    Table("two_sheets.xlsx", workbook(NAMES, (64, 37.2), (512, 5.87), second=True), RATES),
    Table(
        "merged.xlsx",
        workbook(
            *(("NIC", *NAMES), (A, 64, 37.2), (None, 512, 5.87), (B, 64, 30.1), (None, 512, 5.5)),
            merged=("A2:A3", "A4:A5"),
        ),
        OF_TWO,
    ),
    Table(
        "wide.xlsx",
        workbook(
            ("Results of two cards", None, None, None, None),
            (None, A, None, B, None),
            ("Frame size", "Mpps", "us", "Mpps", "us"),
            (64, 37.2, 9.1, 30.1, 12.5),
            (512, 5.87, 14, 5.5, 20),
            ("Firmware 7.2, two queues",),
            merged=("A1:E1", "B2:C2", "D2:E2"),
        ),
        OF_TWO | LATENCIES_OF_TWO,
    ),
    Table(
        "percent.xlsx",
        workbook(("Frame size", "Frame rate [Mpps]", "% of line rate"), (64, 37.2, 0.5), (512, 5.87, 0.25), percent=2),
        RATES,
    ),
]  # fmt: skip
VALUES = {"throughput": "ndr_frames_per_s", "latency": "latency_mean_ns"}


def found_in(summary: str) -> Expected:
    found = set()
    for result in json.loads(summary)["results"]:
        value = result["values"][VALUES[result["method"]]]
        number = value["value"] if isinstance(value, dict) else value
        found.add((result["method"], result["configuration"], result["parameters"]["frame_bytes"], round(number, 6)))
    return found


def proposed(table: Table, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """The command lines that `nicbench init datasheet` prints; nothing may be left to fill in."""
    table.write(Path(table.name))
    assert main(["init", "datasheet", "--csv", table.name]) == 0
    shown = capsys.readouterr()
    assert "to be filled in" not in shown.err
    return [shlex.split(line)[1:] for line in shown.out.splitlines()]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_what_is_proposed_imports_the_table_as_it_is(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    first, _ = proposed(table, capsys)
    ended = main([*first, "--dry-run", "--json"])
    shown = capsys.readouterr()
    assert ended == 0, shown.err
    assert found_in(shown.out) == table.expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_two_commands_make_the_datasheet(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in proposed(table, capsys):
        assert main(words) == 0, capsys.readouterr().err
    [path] = tmp_path.glob("runs/*/summary.json")
    assert found_in(path.read_text()) == table.expected
    assert list(path.parent.glob("*.pdf"))


def test_a_unit_beside_drops_is_no_throughput(tmp_path: Path) -> None:
    path = tmp_path / "drops.csv"
    path.write_text("Frame size,Drops A [Mpps],Drops B [Mpps]\n64,0.1,0.2\n512,0,0\n")
    found = how_to_import(path)
    assert "not said what the figures of `Drops A [Mpps]` are" in found.open[0].message


def test_what_is_open_is_asked_at_once(tmp_path: Path) -> None:
    path = tmp_path / "latency.csv"
    path.write_text("Frame size,Min,Avg,Max\n64,5.1,5.6,9\n512,6,7,8\n")
    found = how_to_import(path)
    assert [one.flags for one in found.open] == [
        ("--set", "load=LOAD"),
        *(("--unit", f"{head}=UNIT") for head in ("Min", "Avg", "Max")),
    ]


def test_a_load_that_is_assumed_is_told(tmp_path: Path) -> None:
    path = tmp_path / "both.csv"
    path.write_text("Size,Throughput [Mpps],Latency [us]\n64,37.2,9.1\n")
    assert "at the throughput" in how_to_import(path).notes[0]
