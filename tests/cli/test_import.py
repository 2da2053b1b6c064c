"""`nicbench import` from the command line to the run folder, and what the other commands make of it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from nicbench.core.result import Summary
from nicbench.store import manifest, monitor_samples
from nicbench.store.files import storage_error

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "summary.schema.json").read_text(encoding="utf-8"))
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
    jsonschema.validate(summary, SCHEMA)
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
    jsonschema.validate(summary, SCHEMA)
    assert [result["configuration"] for result in summary["results"]] == ["a", "a", "b", "b"]
    assert summary["imported"]["file"] == "raw/a.csv"
    assert [file["file"] for file in summary["imported"]["more_files"]] == ["raw/b.csv"]
    assert (path / "raw/b.csv").read_text() == TABLE
    assert "raw/b.csv" in (path / "report.html").read_text()


def test_a_sheet_of_two_cards_is_about_both_and_names_its_publisher(nicbench: Any) -> None:
    Path("cards.csv").write_text("Card,Frame size,Frame rate [Mpps]\nAlpha,64,37.20\nBeta,64,29.76\n")
    said = ("--report", "contact=The help desk of Alpha", "--report", "disclaimer=Figures may change.")
    ended = nicbench("import", "cards.csv", *SAID, "--configuration", "Card", *said)
    assert ended.status == 0, ended.stderr
    assert nicbench("report", "latest", "--layout", "datasheet", "--format", "md").status == 0
    (path,) = Path("runs").iterdir()
    page = (path / "report-datasheet.md").read_text().replace("\N{NO-BREAK SPACE}", " ")
    for text in (
        "(Alpha) passes 37.20 Mpps",
        "(Beta) passes 29.76 Mpps",
        "The help desk of Alpha",
        "Alpha, Beta",
        "Figures may change.",
    ):
        assert text in page


def test_an_unknown_key_of_the_report_is_refused_with_those_that_are_known(nicbench: Any) -> None:
    Path("card.csv").write_text(TABLE)
    ended = nicbench("import", "card.csv", *SAID, "--report", "contakt=x")
    assert ended.status == 2
    assert "contakt" in ended.stderr
    assert "contact, sponsor" in ended.stderr


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


# The published frames tables by real command lines, as docs/import.md has them, and what their reports hold.

PUBLISHED = "frametest_r750_2022_{}.csv"
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "import.md"
REFERENCE = Path(__file__).parents[2] / "src/nicbench/importing/reference/data"
SUSTAINED = {
    ("read", "1x100"): ("9", "9"),
    ("read", "4x25"): ("2", "4"),
    ("write", "1x100"): ("9", "9"),
    ("write", "4x25"): ("3", "4"),
}


def page_of(nicbench: Any, file: str, content: str) -> tuple[str, str]:
    """What the terminal shows, and the report, of the command line that the documentation has for this file."""
    [line] = [line for line in DOCUMENTATION.read_text().splitlines() if line.startswith(f"nicbench import {file} ")]
    Path(file).write_text(content)
    ended = nicbench(*shlex.split(line)[1:], "--source", "Published frames tables", "--year", "2022")
    assert ended.status == 0, ended.stderr
    [path] = Path("runs").iterdir()
    return ended.stdout, (path / "report.html").read_text()


def sustained_in(page: str) -> dict[tuple[str, str], tuple[str, str]]:
    section = page.partition("Streams sustained</h3>")[2].partition("</table>")[0]
    rows = re.findall(
        r'<tr><th scope="row">(\w+)</th><th scope="row">(\w+)</th><td><strong>([^<]+)</strong></td><td>([^<]+)</td>',
        section,
    )
    return {(direction, name): (every, median) for direction, name, every, median in rows}


def rows_in(page: str, doing: str) -> dict[str, list[str]]:
    """Of the table of sums, the text of each cell."""
    table = page.partition(f"{doing}: sum of all instances, run by run</h3>")[2].partition("</table>")[0]
    rows = re.findall(r'<tr[^>]*><th scope="row">([^<]+)</th>(.*?)</tr>', table, re.DOTALL)
    return {head: re.findall(r"<td[^>]*>(?:<strong>)?([^<]*)", cells) for head, cells in rows}


def published(name: str) -> str:
    return (REFERENCE / PUBLISHED.format(name)).read_text()


def test_sums_of_runs(nicbench: Any) -> None:
    shown, page = page_of(nicbench, "sums.csv", published("sums"))
    assert sustained_in(page) == SUSTAINED
    said = (
        "Reading, “1x100” sustained 9 editors at 24\u00a0frames/s each (by the sum of their rates, within 1\u202f%) "
        "in each of 15 imported runs; “4x25” sustained 2 editors"
    )
    assert said in page
    assert said in shown
    assert "Imported: not measured by nicbench. The numbers are those of Published frames tables (2022)." in page
    rows = rows_in(page, "Reading")
    assert list(rows) == [*map(str, range(1, 16)), "Average", "Median", "Target"]
    assert rows["1"][:3] == ["25.2", "50.4", "75.5"]
    assert rows["Median"][:4] == ["25.2", "50.4", "75.6", "100.7"]
    assert rows["Target"] == [f"{24 * count:.1f}" for count in range(1, 13)] * 2
    assert "the file names no target; this is the usual one" in page
    assert "every instance of every run" not in page, "of sums alone nobody knows"


def test_printed_statistics(nicbench: Any) -> None:
    """A figure on each row."""
    _, page = page_of(nicbench, "statistics.csv", published("published_statistics"))
    assert sustained_in(page) == {place: held for place, held in SUSTAINED.items() if place[0] == "read"}
    assert "what the source prints over its runs" in page
    assert "Std. Deviation" in page
    assert rows_in(page, "Reading")["1"][0] == "50.4", "of one instance no sum is printed: unlike a sum of nothing"


# Recordings of nmon by real command lines: alone, and beside results.

GOLDEN = Path(__file__).parents[1] / "importing/golden"
RESULTS = "frame size [bytes],frame rate [Mpps]\n64,10.5\n1518,2.0\n"


@pytest.fixture
def files(nicbench: Any) -> None:
    """In the working folder."""
    shutil.copy(GOLDEN / "linux_16n.nmon", "client.nmon")
    shutil.copy(GOLDEN / "aix_topas.nmon", "server.txt")
    Path("results.csv").write_text(RESULTS)


def imported() -> tuple[Path, str]:
    [path] = Path("runs").iterdir()
    return path, (path / "report.html").read_text()


def test_recordings_alone_make_a_run_that_shows_what_the_machines_did(files: None, nicbench: Any) -> None:
    ended = nicbench("import", "client.nmon", "--with-monitor", "server.txt=big-server", "--title", "Both")
    assert ended.status == 0, ended.stderr
    path, page = imported()
    for text in (
        "No results, but what vm and big-server did was recorded",
        "Activity of the machines",
        "vda, written",
        "en0, received",
        "Recorded every 1 s by nmon 16n",
        "Recorded every 60 s by topas_nmon TOPAS-NMON",
        "all CPUs",
        "Nothing went through ifb0, ifb1, lo.",
    ):
        assert text in page, text
    assert "nicbench-monitor" not in page
    found = monitor_samples.read(path, None)
    assert set(found.table["host"].to_pylist()) == {"vm", "big-server"}
    assert json.loads((path / "summary.json").read_text())["imported"]["format"] == "nmon"
    assert {each.name for each in (path / "raw").iterdir()} == {"client.nmon", "server.txt"}
    assert nicbench("list").status == nicbench("report", "latest").status == 0
    assert [run["verdict"] for run in json.loads(nicbench("list", "--json").stdout)["runs"]] == ["imported"]


def test_beside_results_a_recording_is_of_the_same_run(files: None, nicbench: Any) -> None:
    ended = nicbench("import", "results.csv", "client.nmon", "--method", "throughput", "--link-speed", "25GbE")
    assert ended.status == 0, ended.stderr
    path, page = imported()
    assert "10.5" in page
    assert "Recorded every 1 s by nmon 16n" in page
    more = json.loads((path / "summary.json").read_text())["imported"]["more_files"]
    assert [each["file"] for each in more] == ["raw/client.nmon"]
    assert nicbench("export", "latest", "--to", "json").status == 0


def test_a_look_beforehand_says_what_is_in_a_recording(files: None, nicbench: Any) -> None:
    ended = nicbench("import", "client.nmon", "--dry-run")
    assert ended.status == 0
    assert "client.nmon is a recording of vm by nmon 16n: 4 snapshots, one each 1 s" in ended.stderr
    assert "Not read of it: PROC, DISKXFER" in ended.stderr
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("results.csv",), "results.csv: the method is not given"),
        (("client.nmon", "--method", "throughput"), "no file with results was given for `throughput`"),
        (("client.nmon", "--with-monitor", "client.nmon"), "client.nmon: has the name of another file"),
        (("client.nmon", "--with-monitor", "server.txt=vm"), "server.txt: is a recording of vm, as is client.nmon"),
        (("client.nmon", "--with-monitor", "=vm"), "is not FILE=HOST"),
        (("client.nmon", "--with-monitor", "gone.nmon"), "gone.nmon: cannot be read"),
        (("client.nmon", "--with-monitor", "results.csv"), "results.csv:1:1: is no file of nmon"),
    ],
)
def test_what_does_not_go_together_ends_with_2(arguments: Any, says: str, files: None, nicbench: Any) -> None:
    ended = nicbench("import", *arguments)
    assert ended.status == 2
    assert says in ended.stderr
    assert not Path("runs").exists()
