"""Recordings of nmon by real command lines: alone, and beside results."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from nicbench.store import monitor_samples

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
    assert found is not None
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
