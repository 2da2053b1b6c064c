"""`nicbench import` from the command line to the run folder, and what the other commands make of it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from nicbench.core.result import Summary
from nicbench.store import manifest
from nicbench.store.files import storage_error
from nicbench.store.schema import summary_schema

TABLE = """\
Frame size,Frame rate [Mpps],Line rate [Mpps],% of line rate
64,148.66,148.81,99.9
128,84.38,84.46,99.9
"""
SAID = ("--method", "throughput", "--link-speed", "100GbE", "--ports", "1", "--title", "A card <b>", "--year", "2019")


@pytest.fixture
def folder(nicbench: Any) -> Path:
    """The run of an import."""
    Path("card.csv").write_text(TABLE)
    ended = nicbench("import", "card.csv", *SAID, "--source", "A maker & Co", "--device", "Card 9")
    assert ended.status == 0, ended.stderr
    [path] = Path("runs").iterdir()
    return path


def test_an_import_is_a_run_folder_with_the_file_as_it_was(folder: Path) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    jsonschema.validate(summary, summary_schema())
    assert (summary["format"], summary["title"], summary["verdict"]) == (
        Summary.model_fields["format"].default,
        "A card <b>",
        "imported",
    )
    source = summary["imported"]
    assert (source["source"], source["year"], source["device"]) == ("A maker & Co", 2019, "Card 9")
    assert source["statement"] == "imported: not measured by nicbench"
    raw = folder / source["file"]
    assert raw.read_text() == TABLE
    assert source["sha256"] == hashlib.sha256(TABLE.encode()).hexdigest()
    assert manifest.differences(folder) == ()
    assert "raw/card.csv" in (folder / "MANIFEST.json").read_text()
    assert not (folder / "bench.yaml").exists()


def test_its_report_says_everywhere_that_it_was_not_measured(folder: Path, nicbench: Any) -> None:
    first = (folder / "report.html").read_text()
    assert nicbench("report", "latest").status == 0
    page = (folder / "report.html").read_text()
    assert page == first
    assert "Imported: not measured by nicbench. The numbers are those of A maker &amp; Co (2019)." in page
    assert page.count("Imported: not measured by nicbench") >= 5  # head, verdict, figure, both tables, foot
    for cell in ("148.66", "84.46", "99.9", "A card &lt;b&gt;", "Card 9", "raw/card.csv"):
        assert cell in page
    for claim in ("trials measured the DUT", "How to repeat it", "Trials of", "calibrated the tester", "≥ 1"):
        assert claim not in page


def test_list_shows_it_as_imported(folder: Path, nicbench: Any) -> None:
    (run,) = json.loads(nicbench("list", "--json").stdout)["runs"]
    assert (run["title"], run["verdict"], run["results"]) == ("A card <b>", "imported", 2)
    assert run["headline"] == "NDR 148.66 Mpps at 64 bytes"
    assert "imported" in nicbench("list").stdout


@pytest.mark.parametrize(
    ("command", "word"), [("resume", "there is nothing to resume"), ("restore", "it changed nothing")]
)
def test_what_goes_on_or_undoes_refuses_it(command: str, word: str, folder: Path, nicbench: Any) -> None:
    ended = nicbench(command, str(folder))
    assert ended.status == 2
    assert "this run was imported, not measured by nicbench" in ended.stderr
    assert word in ended.stderr


def test_a_dry_run_shows_it_and_writes_nothing(nicbench: Any) -> None:
    Path("card.csv").write_text(TABLE)
    ended = nicbench("import", "card.csv", *SAID, "--dry-run")
    assert ended.status == 0
    for text in ("Frame rate [Mpps]", "frame rate", "148.66", "imported: not measured by nicbench"):
        assert text in ended.stdout
    assert "nothing was written" in ended.stderr
    assert not Path("runs").exists()


def test_json_is_the_summary(nicbench: Any) -> None:
    Path("card.csv").write_text(TABLE)
    ended = nicbench("import", "card.csv", *SAID, "--dry-run", "--json")
    assert Summary.model_validate_json(ended.stdout).imported is not None


def test_a_wrong_file_is_told_problem_by_problem(nicbench: Any) -> None:
    Path("card.csv").write_text(TABLE.replace("148.66", "150.66").replace("84.38", "fast"))
    ended = nicbench("import", "card.csv", *SAID, "--json")
    assert ended.status == 2
    assert "card.csv:3:5: frame rate `fast`: it is no number" in ended.stderr
    (problem,) = json.loads(ended.stdout)["error"]["problems"]
    assert problem["place"] == "card.csv:3:5"
    assert not Path("runs").exists()


def test_errata_are_listed_on_the_terminal_and_in_the_report(nicbench: Any) -> None:
    Path("card.csv").write_text(TABLE.replace("148.66", "150.66"))
    refused = nicbench("import", "card.csv", *SAID)
    assert refused.status == 2
    assert (
        "card.csv:2:4: frame rate 150.66 Mpps cannot be: the line carries no more; computed: 148.81 Mpps"
        in refused.stderr
    )
    ended = nicbench("import", "card.csv", *SAID, "--errata")
    assert ended.status == 0
    assert (
        "erratum: frame rate is printed as 150.66 Mpps, computed 148.81 Mpps: the line carries no more" in ended.stdout
    )
    [path] = Path("runs").iterdir()
    page = (path / "report.html").read_text()
    assert "Errata of the source" in page
    assert "†" in page


def test_a_file_as_a_tester_on_windows_writes_it(nicbench: Any) -> None:
    text = "Framegröße;Last [% of line rate];Latenz max [µs];p99,9 [µs]\r\n64;90;1.234,5;12,30\r\n"
    Path("export.csv").write_bytes(text.encode("utf-16"))
    names = ("--column", "Framegröße=frame size", "--column", "Last [% of line rate]=load [% of line rate]")
    more = ("--column", "Latenz max [µs]=max [us]", "--column", "p99,9 [µs]=p99.9 [us]")
    ended = nicbench(
        *("import", "export.csv", "--method", "latency", *names, *more),
        *("--decimal", "comma", "--thousands", "point", "--json"),
    )
    assert ended.status == 0, ended.stderr
    (result,) = json.loads(ended.stdout)["results"]
    assert (result["values"]["latency_maximum_ns"], result["values"]["latency_p99_9_ns"]) == (1_234_500.0, 12_300.0)
    assert result["parameters"]["load_of"] == "line rate"


def test_a_file_whose_name_is_no_text_is_kept_under_one_that_is(nicbench: Any) -> None:
    Path(os.fsdecode(b"t\xff.csv")).write_text(TABLE)
    assert nicbench("import", os.fsdecode(b"t\xff.csv"), *SAID).status == 0
    [path] = Path("runs").iterdir()
    assert json.loads((path / "summary.json").read_text())["imported"]["file"] == "raw/t?.csv"
    assert (path / "raw" / "t?.csv").read_text() == TABLE


WILD = {
    "throughput": "frame size,frame rate [Mpps],PDR [Mpps],line rate [Mpps]\n64,-5,1e50,-3\n128,0,,0\n",
    "latency": "frame size,load [% of line rate],min [us],max [us],timed frames,frames to 10 us,frames outside 10 us\n"
    "64,-5,9,-1,-7,-1,1e30\n64,900,0,0,0,0,0\n",
    "frame-loss": "frame size,load [%],loss [%],sent frames\n64,-5,900,-1\n",
    "load-sweep": "frame size,load [%],returned [%]\n64,-5,-900\n",
    "single-core": "frame size,frame rate [Mpps],throughput [Gb/s L2],TSC cycles per packet\n64,-5,-1,-3\n",
    "back-to-back": "frame size,burst,min,implied buffer time [us]\n64,-5,1.5,-1\n",
}


@pytest.mark.parametrize("method", WILD)
def test_whatever_is_printed_has_a_report(method: str, nicbench: Any) -> None:
    Path("wild.csv").write_text(WILD[method])
    ended = nicbench("import", "wild.csv", "--method", method, "--errata", "--link-speed", "10GbE")
    assert ended.status == 0, ended.stderr
    assert "erratum" in ended.stdout
    assert nicbench("import", "wild.csv", "--method", method, "--link-speed", "10GbE").status == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "speed"), "there is no method `speed`"),
        (("--method", "throughput", "--from", "excel"), "--from cannot be 'excel'"),
        (("--method", "throughput", "--unit", "x"), "--unit 'x' is not NAME=VALUE"),
        (("--method", "throughput", "--unit", "x=parsec"), "'parsec' is not a known unit"),
        (("--method", "throughput", "--link-speed", "fast"), "--link-speed 'fast' is not a speed"),
        (("--method", "throughput", "--link-speed", "2x25GbE", "--ports", "4"), "contradict each other"),
        (("--method", "throughput", "--decimal", "dot"), "--decimal cannot be 'dot'"),
        (("--method", "throughput", "--decimal", "comma", "--thousands", "comma"), "cannot both be comma"),
        (("--method", "throughput", "--pdr-loss", "much"), "--pdr-loss"),
    ],
)
def test_a_wrong_option_is_told(options: tuple[str, ...], message: str, nicbench: Any) -> None:
    Path("card.csv").write_text(TABLE)
    ended = nicbench("import", "card.csv", *options)
    assert ended.status == 2
    assert message in " ".join(ended.stderr.split())
    assert "next:" in ended.stderr or "--pdr-loss" in options


def test_several_files_make_one_run(nicbench: Any) -> None:
    Path("a.csv").write_text(TABLE)
    Path("b.csv").write_text(TABLE)
    refused = nicbench("import", "a.csv", "b.csv", *SAID)
    assert refused.status == 2
    assert "b.csv: is about the same as a.csv" in refused.stderr
    ended = nicbench("import", "a.csv", "b.csv", *SAID, "--configuration", "file")
    assert ended.status == 0, ended.stderr
    [path] = Path("runs").iterdir()
    summary = json.loads((path / "summary.json").read_text())
    jsonschema.validate(summary, summary_schema())
    assert [result["configuration"] for result in summary["results"]] == ["a", "a", "b", "b"]
    assert summary["imported"]["file"] == "raw/a.csv"
    assert [file["file"] for file in summary["imported"]["more_files"]] == ["raw/b.csv"]
    assert (path / "raw/b.csv").read_text() == TABLE
    assert "raw/b.csv" in (path / "report.html").read_text()


def test_files_of_one_name_are_refused(nicbench: Any) -> None:
    for folder in ("x", "y"):
        Path(folder).mkdir()
        (Path(folder) / "card.csv").write_text(TABLE)
    ended = nicbench("import", "x/card.csv", "y/card.csv", *SAID)
    assert ended.status == 2
    assert "y/card.csv: has the name of x/card.csv" in ended.stderr


def test_an_import_that_fails_half_way_leaves_no_folder(nicbench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise storage_error(OSError(errno.ENOSPC, "full"), Path("summary.json"))

    Path("card.csv").write_text(TABLE)
    monkeypatch.setattr("nicbench.store.folder.RunFolder.finish", full)
    ended = nicbench("import", "card.csv", *SAID)

    assert ended.status == 4
    assert "the disk is full" in ended.stderr
    assert list(Path("runs").iterdir()) == []


def test_words_that_are_no_utf_8_become_question_marks(nicbench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("card.csv").write_text(TABLE)
    words = ("import", "card.csv", *SAID, "--title", "A\udcffB", "--source", "\udcfe", "--device", "\udcfd")
    monkeypatch.setattr("sys.argv", ["nicbench", *words])
    ended = nicbench(*words)

    assert ended.status == 0, ended.stderr
    [run] = Path("runs").iterdir()
    summary = json.loads((run / "summary.json").read_text())
    assert summary["title"] == "A?B"
    assert (summary["imported"]["source"], summary["imported"]["device"]) == ("?", "?")


def test_decimal_commas_are_proposed_where_no_number_may_have_marks_between_thousands(nicbench: Any) -> None:
    Path("a.csv").write_text("Frame size;frame rate [Mpps]\n64;1,25\n128;2,500\n")
    ended = nicbench("import", "a.csv", "--method", "throughput")
    assert ended.status == 2
    assert ended.stderr.endswith("try it with: --decimal comma\n")
    assert (
        nicbench("import", "a.csv", "--method", "throughput", "--decimal", "comma", "--link-speed", "10 Gb/s").status
        == 0
    )
    Path("b.csv").write_text("Frame size;frame rate [pps]\n64;1,250\n128;2,500\n")
    assert "try it with" not in nicbench("import", "b.csv", "--method", "throughput").stderr


def test_a_column_that_is_nearly_known_is_to_be_named_and_not_left_out(nicbench: Any) -> None:
    Path("a.csv").write_text("Frame size,frame rates [Mpps],drops\n64,1.25,3\n")
    said = nicbench("import", "a.csv", "--method", "throughput").stderr
    assert "did you mean `frame rate`?" in said
    assert "--column 'frame rates [Mpps]=NAME'" in said
    assert "--ignore drops" in said


def test_json_is_told_from_a_table(nicbench: Any) -> None:
    Path("a.json").write_text('{"start": {}, "intervals": []}')
    said = nicbench("import", "a.json", "--method", "stream").stderr
    assert "a.json:1:1: this is JSON, not a table" in said
    assert "--from iperf3" in said
