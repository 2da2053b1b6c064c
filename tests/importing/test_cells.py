"""Cells and their places, whatever wrote the file; the standard library's reader is the oracle of what they hold."""

from __future__ import annotations

import csv
import gzip
import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.errors import Position, UsageError, WrongFileError
from nicbench.core.number_reader import Writing
from nicbench.importing import cells
from nicbench.importing.cells import Dialect, decode, read_bytes, read_sheet
from nicbench.importing.columns import parse_heading, parse_link, parse_number, parse_unit

TEXTS = st.text(alphabet=st.sampled_from("ab1,;\"\t\n '."), max_size=12)


def rows(text: str, delimiter: str | None = None) -> list[list[str]]:
    sheet = read_sheet(text, "x.csv", Dialect(delimiter))
    return [[cell.text for cell in row] for row in sheet.rows]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"], ids=["unix", "windows", "old mac"])
@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_delimiters_and_line_ends_are_found(mark: str, ends: str) -> None:
    text = ends.join([mark.join("abc"), mark.join("123"), "", mark.join("456")]) + ends
    assert rows(text) == [["1", "2", "3"], ["4", "5", "6"]]


def test_a_line_of_excel_names_the_delimiter() -> None:
    assert rows("sep=;\na,x;b\n1,5;2\n") == [["1,5", "2"]]


def test_what_is_quoted_holds_anything_and_keeps_its_place() -> None:
    sheet = read_sheet('a,b\n"x, ""y""\nz" , 2\n3,4\n', "x.csv")
    assert [[(cell.text, cell.position) for cell in row] for row in sheet.rows] == [
        [('x, "y"\nz', Position(2, 1)), ("2", Position(3, 5))],
        [("3", Position(4, 1)), ("4", Position(4, 3))],
    ]


@given(st.lists(st.lists(TEXTS, min_size=3, max_size=3), min_size=1, max_size=6))
def test_what_the_standard_library_writes_is_read_as_it_was(table: list[list[str]]) -> None:
    stream = io.StringIO()
    csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([["a", "b", "c"], *table])
    kept = [[cell.strip() for cell in row] for row in table if any(cell.strip() for cell in row)]
    if kept:
        assert rows(stream.getvalue(), ",") == kept


@given(st.text(alphabet=st.sampled_from('a1,;"\n\r'), max_size=60))
def test_whatever_the_text_it_is_a_sheet_or_an_error_with_a_place(text: str) -> None:
    places, widths = ["x.csv:"], {0}
    try:
        sheet = read_sheet(text, "x.csv")
        widths = {len(row) - len(sheet.heads) for row in sheet.rows}
    except WrongFileError as error:
        places = [str(error.place)]
    assert widths == {0}
    assert places[0].startswith("x.csv:")


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "has no heading"),
        ("a,b\n", "1:1", "has headings and no rows"),
        ("a,b\n1,2,3\n", "2:5", "this row has 3 cells and the file 2 headings"),
        ("a,a\n1,2\n", "1:3", "`a` is a heading already, in column 1"),
        ("a,,c\n1,2,3\n", "1:3", "this column has no heading"),
        ('a,b\n"1,2\n', "2:1", "this quote is never closed"),
        ('a,b\n"1"x,2\n', "2:4", "there is text after the closing quote"),
        (f"a,b\n{'9' * 1001},2\n", "2:1", "this cell has more than 1000 characters"),
        (",".join(map(str, range(300))) + "\n1\n", "1:1", "has 300 columns, more than 256"),
    ],
)
def test_a_wrong_file_is_told_with_its_place(text: str, place: str, message: str) -> None:
    with pytest.raises(WrongFileError) as refused:
        read_sheet(text, "x.csv")
    assert (refused.value.place, refused.value.message) == (f"x.csv:{place}", message)


def test_rows_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "MOST_ROWS", 3)
    assert len(rows("a\n1\n2\n3\n")) == 3
    with pytest.raises(WrongFileError, match="has more than 3 rows"):
        rows("a\n1\n2\n3\n4\n")


def test_what_stands_above_the_headings_is_left_out_and_lines_keep_their_numbers() -> None:
    sheet = read_sheet('A report, "unfinished\n\na,b\n1,2\n', "x.csv", Dialect(heading_lines=(3, 3)))
    assert sheet.rows[0][1].position == Position(4, 3)


TEXT = "Größe;Latenz [µs]\r\n64;1,5\r\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_mark_names_the_encoding(encoding: str) -> None:
    assert decode(TEXT.encode(encoding), "x.csv") == TEXT


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_seen_without_its_mark_as_well(encoding: str) -> None:
    assert decode("frame size,load\n64,10\n".encode(encoding), "x.csv") == "frame size,load\n64,10\n"


def test_another_encoding_is_named_and_not_guessed() -> None:
    with pytest.raises(UsageError) as refused:
        decode("a,b\n64,µs\n".encode("cp1252"), "x.csv")
    assert refused.value.place == "x.csv:2:4"
    assert refused.value.next_step == "name the file's own encoding, for example --encoding cp1252"
    assert decode("a,µs\n".encode("cp1252"), "x.csv", "cp1252") == "a,µs\n"


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [(b"a,b\n1,\x002\n", None, "it holds a NUL"), (b"a", "klingon", "is no encoding")],
)
def test_what_is_no_text_is_refused(content: bytes, encoding: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        decode(content, "x.csv", encoding)


def test_only_a_regular_file_of_a_reasonable_size_is_read(tmp_path: Path) -> None:
    big = tmp_path / "big.csv"
    big.write_bytes(b"x" * 11)
    with pytest.raises(UsageError, match="is larger than"):
        read_bytes(big, 10)
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_bytes(tmp_path)
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_bytes(tmp_path / "nothing.csv")
    with pytest.raises(UsageError, match="is not a regular file"):
        read_bytes(Path(os.devnull))


def test_a_workbook_is_told_from_text_in_another_encoding() -> None:
    with pytest.raises(WrongFileError, match="a workbook or an archive") as refused:
        decode(b"PK\x03\x04\x14\x00", "results.xlsx")
    assert "save the sheet as CSV" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "name", "unit"),
    [
        ("Frame rate [Mpps]", "frame rate", "Mpps"),
        ("frame_rate_mpps", "frame rate", "Mpps"),
        ("Throughput (Gb/s) L1", "throughput", "Gb/s L1"),
        ("Throughput [Gbps L2]", "throughput", "Gb/s L2"),
        ("throughput_gbps", "throughput", "Gb/s"),
        ("Rate (MBps)", "rate", "MB/s"),
        ("Latency (µs)", "latency", "us"),
        ("p99.9 [us]", "p99.9", "us"),
        ("latency_p99_9_us", "latency p99 9", "us"),
        ("% of line rate", "percent of line rate", "% of line rate"),
        ("percent_of_line_rate", "percent of line rate", "% of line rate"),
        ("Tx Rate (% Line Rate)", "tx rate", "% of line rate"),
        ("Load [% of throughput]", "load", "% of throughput"),
        ("Loss %", "loss", "%"),
        ("Latency (min)", "latency min", None),
        ("offered frames", "offered frames", None),
        ("Frame size", "frame size", None),
    ],
)
def test_a_heading_is_a_name_and_the_unit_that_it_names(text: str, name: str, unit: str | None) -> None:
    heading = parse_heading(text)
    assert (heading.name, str(heading.unit) if heading.unit else None) == (name, unit)


@pytest.mark.parametrize(
    ("heading", "name", "unit"),
    [
        ("Frame_Size_Bytes", "frame size", "bytes"),
        ("FRAME_RATE_MPPS", "frame rate", "Mpps"),
        ("Latency_US", "latency", "us"),
        ("Rate_KFPS", "rate", "kpps"),
        ("Throughput_Gbit/S", "throughput", "Gb/s"),
        ("Paketgröße [Byte]", "paketgrosse", "bytes"),
        ("Card B", "card b", None),
        ("Throughput_MBPS", "throughput mbps", None),  # bits or bytes: nobody knows
    ],
)
def test_a_unit_is_known_in_any_case_that_leaves_no_doubt(heading: str, name: str, unit: str | None) -> None:
    found = parse_heading(heading)
    assert (found.name, found.unit.name if found.unit else None) == (name, unit)


def test_the_delimiter_is_the_one_that_stands_alike_in_most_lines() -> None:
    text = "Frame size [bytes, with FCS];Frame rate, highest [Mpps]\n64;1,25\n128;1,5\n"
    assert read_sheet(text, "x.csv").texts() == ("Frame size [bytes, with FCS]", "Frame rate, highest [Mpps]")


def test_two_heading_lines_are_one_and_notes_below_are_left_out() -> None:
    text = "A title\n,Card A,,Card B,\nSize,Mpps,us,Mpps,us\n64,1,2,3,4\nNote: two queues, 7.2, x, y, z, w\n"
    sheet = read_sheet(text, "x.csv", Dialect(heading_lines=(2, 3), last_line=4))
    assert sheet.texts() == ("Size", "Card A Mpps", "Card A us", "Card B Mpps", "Card B us")
    assert [[cell.text for cell in row] for row in sheet.rows] == [["64", "1", "2", "3", "4"]]
    assert sheet.rows[0][0].position == Position(4, 1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x1f\x8b\x08\x00", "its end is missing"),
        (b"\x1f\x8b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "gzip cannot unpack it"),
        (b"\xfd7zXZ\x00", "packed by xz"),
        (b"BZh91AY", "packed by bzip2"),
        (b"\x28\xb5\x2f\xfd\x00", "packed by zstd"),
        (gzip.compress(bytes(cells.MOST_BYTES_UNPACKED + 1)), "larger than 64 MiB when unpacked"),
    ],
    ids=["cut", "damaged", "xz", "bzip2", "zstd", "a bomb"],
)
def test_what_is_packed_and_cannot_be_unpacked_is_named(content: bytes, says: str) -> None:
    with pytest.raises(WrongFileError, match=says):
        decode(content, "x.csv.gz")


def test_what_gzip_packed_is_read() -> None:
    assert decode(gzip.compress("a,b\n1,2\n".encode("utf-16")), "x.csv.gz") == "a,b\n1,2\n"


@pytest.mark.parametrize("text", ["GBPS", "mm", "h", "min", "x/s", "ns L2", ""])
def test_what_is_no_unit_or_could_be_two_is_none(text: str) -> None:
    assert parse_unit(text) is None


@pytest.mark.parametrize(
    ("text", "decimal", "thousands", "value", "rounding"),
    [
        ("74.40", "point", None, "74.40", 0.005),
        ("74,40", "comma", None, "74.40", 0.005),
        ("1,300,000", "point", "comma", "1300000", 0.5),
        ("1.300.000,5", "comma", "point", "1300000.5", 0.05),
        ("1\u202f300", "point", "blank", "1300", 0.5),
        ("1.5e3", "point", None, "1.5e3", 50.0),
        ("99.9 %", "point", None, "99.9", 0.05),
        ("-0.5", "point", None, "-0.5", 0.05),
    ],
)  # fmt: skip
def test_a_number_keeps_its_digits_and_what_they_leave_open(
    text: str, decimal: str, thousands: str | None, value: str, rounding: float
) -> None:
    number = parse_number(text, Writing(decimal, thousands))  # type: ignore[arg-type]
    assert (number.text, float(number.value), float(number.rounding)) == (value, float(value), rounding)


@pytest.mark.parametrize(
    ("text", "decimal", "thousands", "hint"),
    [
        ("74,40", "point", None, "--decimal comma"),
        ("1.300,5", "comma", None, "--thousands point"),
        ("13,00", "point", "comma", "--decimal comma"),
        ("fast", "point", None, "write a number"),
        ("1 furlong", "point", None, "not a known unit"),
        ("9" * 50, "point", None, "write a number"),
        ("1e999", "point", None, "not a known unit"),
    ],
)
def test_what_is_no_number_says_what_to_do(text: str, decimal: str, thousands: str | None, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        parse_number(text, Writing(decimal, thousands))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "bits_per_s", "ports"),
    [("25GbE", 25e9, None), ("2x100GbE", 1e11, 2), ("4 x 25 Gb/s", 25e9, 4), ("400GE", 4e11, None)],
)  # fmt: skip
def test_a_link_is_the_speed_of_one_port_and_how_many(text: str, bits_per_s: float, ports: int | None) -> None:
    link = parse_link(text)
    assert (link.bits_per_s, link.ports) == (bits_per_s, ports)


@pytest.mark.parametrize("text", ["fast", "25", "0x10GbE", "0 Gb/s", "10 cars/s", "2.5", "0.88", "37.20"])
def test_what_is_no_speed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_link(text)
