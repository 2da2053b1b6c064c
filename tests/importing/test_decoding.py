"""Files as testers on Windows write them; what is no text is told with its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nicbench.core.errors import UsageError, WrongFileError
from nicbench.importing.cells import decode, read_bytes

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
