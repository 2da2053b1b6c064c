"""``nicbench study``: an archive to cite and repeat, what a rerun says of each claim, and archives that are wrong."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.cli.conftest import make_run
from tests.cli.conftest import result_json as result

from nicbench.store.folder import RunFolder

LICENSED = ("--author", "Doe, Jane", "--author", "Example Ltd", "--licence", "CC-BY-4.0")
BENCH = """\
nicbench: 1
title: Two simulated devices
description: Which forwards more?
lab: {kind: simulated, queue_frames: 256}
dut: {kind: simulated}
report: {author: Example Ltd, licence: CC-BY-4.0}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {precision: 1 %, maximum_trials: 30}
    trial: {duration: 100 ms, drain: 50 ms, settle: 0 s}
configurations:
  slow: {lab: {capacity: 500 kpps}}
  fast: {lab: {capacity: 600 kpps}}
"""
Make = Callable[..., RunFolder]


@pytest.fixture
def make(nicbench: Any) -> Make:
    """Makes a run folder of two configurations, with a report, in which each has four runs at its rates."""

    def made(name: str, *, duration: float = 1.0, finished: bool = True, **rates: float) -> RunFolder:
        rows = [
            {**result(64, rate * (1 + run / 1000)), "id": f"{of}/{run}", "configuration": of, "run": run}
            for of, rate in rates.items()
            for run in range(1, 5)
        ]
        plan = {"lab": {"kind": "veth"}, "dut": {"kind": "bridge"}, "compared": list(rates), "link_is_nominal": True}
        folder = make_run(
            name, rows, plan, {"trial": {"duration": duration}}, finished=finished, configurations=list(rates)
        )
        (folder.path / "report.html").write_text("<html></html>")
        return folder

    return made


@pytest.fixture
def study(make: Make, nicbench: Any) -> Path:
    """The archive of a run in which ``b`` is twice as fast as ``a``."""
    make("01", a=1e6, b=2e6)
    assert nicbench("study", "pack", "2026-01-01", "--out", "study.zip", *LICENSED).status == 0
    return Path("study.zip")


def claims(ended: Any) -> dict[str, str]:
    """What became of each claim."""
    [run] = json.loads(ended.stdout)["runs"]
    return {each["claim"]: each["repetition"] for each in run["claims"]}


def test_an_archive_holds_the_run_as_it_is_with_licence_citation_and_metadata(study: Path) -> None:
    with zipfile.ZipFile(study) as archive:
        names = set(archive.namelist())
        cited = YAML(typ="safe").load(archive.read("CITATION.cff"))
        crate = json.loads(archive.read("ro-crate-metadata.json"))
        for each in ("bench.yaml", "plan.json", "summary.json", "MANIFEST.json", "report.html"):
            run = Path("runs/2026-01-01") / each
            assert archive.read(str(run)) == run.read_bytes()
        assert b"CC-BY-4.0" in archive.read("LICENSE")
    assert {"README.md", "study.json"} < names
    assert cited["authors"] == [{"family-names": "Doe", "given-names": "Jane"}, {"name": "Example Ltd"}]
    assert (cited["license"], cited["title"], cited["type"]) == ("CC-BY-4.0", "t", "dataset")
    graph = {each["@id"]: each for each in crate["@graph"]}
    assert graph["./"]["license"] == {"@id": "https://spdx.org/licenses/CC-BY-4.0"}
    assert {each["@id"] for each in graph["./"]["hasPart"]} == names - {"study.json", "ro-crate-metadata.json"}
    assert graph["#2026-01-01"]["object"] == [{"@id": "runs/2026-01-01/bench.yaml"}]


def test_equal_runs_give_equal_bytes(study: Path, nicbench: Any) -> None:
    assert nicbench("study", "pack", "2026-01-01", "--out", "again.zip", *LICENSED).status == 0
    with zipfile.ZipFile(study) as one, zipfile.ZipFile("again.zip") as other:
        for name in set(one.namelist()) - {"README.md", "study.json", "ro-crate-metadata.json"}:
            assert one.read(name) == other.read(name)


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        pytest.param(("--licence",), "without a licence", id="licence"),
        pytest.param(("--author",), "author", id="author"),
    ],
)
def test_a_study_names_its_author_and_licence(make: Make, nicbench: Any, missing: tuple[str], words: str) -> None:
    make("01", a=1e6, b=2e6)
    given = {"--author": "Doe, Jane", "--licence": "CC-BY-4.0"}
    options = [word for pair in given.items() if pair[0] not in missing for word in pair]
    ended = nicbench("study", "pack", "2026-01-01", *options)
    assert (ended.status, words in ended.stderr, "next:" in ended.stderr) == (2, True, True)
    assert not list(Path().glob("*.zip"))


def test_only_whole_runs_are_packed(make: Make, nicbench: Any) -> None:
    make("01", a=1e6, b=2e6, finished=False)
    ended = nicbench("study", "pack", "2026-01-01", *LICENSED)
    assert ended.status == 2
    assert "nicbench resume" in ended.stderr
    folder = make("02", a=1e6, b=2e6)
    (folder.path / "inventory.json").write_text("{}")
    assert nicbench("study", "pack", "2026-01-02", *LICENSED).status == 4
    assert not list(Path().glob("*.zip"))


def test_what_is_found_again_is_repeated_value_by_value_and_difference_by_difference(
    study: Path, make: Make, nicbench: Any
) -> None:
    make("02", a=1.0005e6, b=2e6)
    ended = nicbench("study", "rerun", str(study), "--against", "2026-01-02", "--json")
    assert ended.status == 0
    assert set(claims(ended).values()) == {"repeated"}
    assert {name.partition(":")[0] for name in claims(ended)} == {"a", "b", "throughput"}


def test_what_differs_is_not_repeated_and_a_difference_holds_by_its_direction(
    study: Path, make: Make, nicbench: Any
) -> None:
    make("02", a=1.5e6, b=2e6)
    ended = nicbench("study", "rerun", str(study), "--against", "2026-01-02", "--json")
    found = claims(ended)
    assert ended.status == 6
    assert [name for name, became in found.items() if became == "not repeated"] == [
        name for name in found if name.startswith("a: ")
    ]
    make("03", a=2e6, b=1e6)
    ended = nicbench("study", "rerun", "study", "--against", "2026-01-03")
    assert ended.status == 6
    assert "3 not repeated" in ended.stdout


def test_what_was_not_measured_alike_is_not_comparable_and_says_why(study: Path, make: Make, nicbench: Any) -> None:
    make("02", a=1e6, b=2e6, duration=60.0)
    ended = nicbench("study", "rerun", str(study), "--against", "2026-01-02")
    assert ended.status == 5
    assert "do not last equally long" in ended.stdout
    make("03", a=1e6, c=2e6)
    ended = nicbench("study", "rerun", "study", "--against", "2026-01-03", "--json")
    assert "not comparable" in claims(ended).values()


def _rewrite(path: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    change(content)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in content.items():
            archive.writestr(name, text)


def _of_contents(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, bytes]], None]:
    def changed(content: dict[str, bytes]) -> None:
        told = json.loads(content["study.json"])
        change(told)
        content["study.json"] = json.dumps(told).encode()

    return changed


REPORT = "runs/2026-01-01/report.html"


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        pytest.param(lambda content: content.pop("study.json"), 2, "not the archive of a study", id="foreign"),
        pytest.param(lambda content: content.update({REPORT: b"x"}), 4, "its checksum", id="changed file"),
        pytest.param(lambda content: content.pop(REPORT), 4, "is missing", id="missing file"),
        pytest.param(
            _of_contents(lambda told: told["sha256"].update({"../../evil": "0" * 64})), 2, "outside", id="upwards"
        ),
        pytest.param(_of_contents(lambda told: told["sha256"].update({"/evil": "0" * 64})), 2, "outside", id="root"),
        pytest.param(_of_contents(lambda told: told.update(runs=["../../etc"])), 2, "outside", id="run"),
        pytest.param(_of_contents(lambda told: told.update(format="2.0")), 2, "newer nicbench", id="newer"),
        pytest.param(_of_contents(lambda told: told.pop("runs")), 4, "runs", id="no runs"),
    ],
)
def test_a_wrong_archive_is_refused_with_the_reason_and_leaves_nothing(
    study: Path, nicbench: Any, change: Callable[[dict[str, bytes]], None], status: int, words: str
) -> None:
    _rewrite(study, change)
    ended = nicbench("study", "rerun", str(study))
    assert (ended.status, words in ended.stderr, "study.zip" in ended.stderr) == (status, True, True), ended.stderr
    assert not Path("study").exists()
    assert not Path("../evil").exists()


def test_a_file_that_is_no_archive_is_refused(study: Path, nicbench: Any) -> None:
    content = bytearray(study.read_bytes())
    content[len(content) // 3] ^= 0xFF
    study.write_bytes(content)
    assert nicbench("study", "rerun", str(study)).status in (2, 4)
    Path("text.zip").write_text("no archive")
    ended = nicbench("study", "rerun", "text.zip")
    assert (ended.status, "ZIP" in ended.stderr) == (2, True)
    assert nicbench("study", "rerun", "nowhere.zip").status == 2


def test_an_unpacked_study_that_was_changed_is_refused(study: Path, make: Make, nicbench: Any) -> None:
    make("02", a=1e6, b=2e6)
    again = ("--against", "2026-01-02")
    assert nicbench("study", "rerun", str(study), *again).status == 0
    ended = nicbench("study", "rerun", str(study), *again)
    assert (ended.status, "is there already" in ended.stderr) == (2, True)
    Path("study/runs/2026-01-01/bench.yaml").write_text("nicbench: 1 # changed\n")
    ended = nicbench("study", "rerun", "study", *again)
    assert (ended.status, "bench.yaml was changed" in ended.stderr) == (4, True)
    assert nicbench("study", "rerun", "runs", *again).status == 2


def test_a_simulated_study_is_repeated_in_an_empty_folder(
    nicbench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("bench.yaml").write_text(BENCH)
    assert nicbench("run", "bench.yaml", "--no-progress", "--no-report").status == 0
    [run] = Path("runs").glob("2*")
    (run / "report.html").write_text("<html></html>")
    assert nicbench("study", "pack", "latest", "--out", "study.zip").status == 0
    empty = tmp_path / "empty"
    empty.mkdir()
    os.replace("study.zip", empty / "study.zip")
    monkeypatch.chdir(empty)
    ended = nicbench("study", "rerun", "study.zip", "--no-progress", "--no-report")
    assert ended.status == 0, ended.stderr
    assert "6 repeated, 0 not repeated, 0 not comparable" in ended.stdout
    assert len(list(Path("runs").glob("2*"))) == 1
