"""Run folders that earlier nicbench wrote, kept as they were: each opens as one of today, and a newer one says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import nicbench
from nicbench.core.errors import UsageError
from nicbench.core.result import Summary
from nicbench.report.gather import gather
from nicbench.store import manifest
from nicbench.store.listing import headline, open_run

GOLDEN = Path(__file__).with_name("golden")
EARLIER = [f"1.{minor}" for minor in range(int(str(Summary.model_fields["format"].default).split(".")[1]))]


def test_there_is_a_golden_folder_of_each_earlier_format() -> None:
    assert sorted(path.name for path in GOLDEN.iterdir()) == EARLIER


@pytest.mark.parametrize("form", EARLIER)
def test_a_folder_of_an_earlier_format_is_whole_and_read_to_the_end(form: str) -> None:
    row = headline(GOLDEN / form)
    assert (row.trouble, row.format, row.verdict, row.finished) == (None, form, "valid", True)
    folder = open_run(form, GOLDEN)
    assert folder.differences() == ()
    assert len(folder.journal.trials()) == row.trials > 0
    report = gather(folder)
    assert report.sections[0].rows
    assert report.changed_files == ()
    loaded = nicbench.load(folder.path)
    assert len(loaded.results) == row.results
    assert loaded.trials_frame().num_rows == row.trials


def test_a_rate_of_an_earlier_format_that_was_estimated_is_an_interval_and_its_notes_are_not_written(
    tmp_path: Path,
) -> None:
    shutil.copytree(GOLDEN / "1.6", tmp_path / "run")
    path = tmp_path / "run" / "summary.json"
    content = json.loads(path.read_text())
    (result,) = content["results"]
    content["verdict"] = result["verdict"] = "adjusted"
    result["extrapolated"] = ["ndr_frames_per_s"]
    result["values"] |= {"ndr_borne_by_half_frames_per_s": 15e3, "ndr_at_clock_hz": 4e9, "ndr_clock_seen": "on a day"}
    path.write_text(json.dumps(content))
    manifest.write(tmp_path / "run")

    folder = open_run("run", tmp_path)
    report = gather(folder)
    headed = report.headline.replace("\u00a0", " ")
    assert "passes 20.0 kpps of 64-byte frames without loss, interval 19.6 to 20.7 kpps (NDR)" in headed
    assert [goal.name for goal in report.sections[0].table.rates.goals] == ["NDR", "PDR"]
    assert report.verdict.is_reliable
    summary = folder.summary()
    assert summary is not None
    assert "extrapolated" not in summary.model_dump_json()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("MANIFEST.json", {"format": "2.0"}),
        ("summary.json", {"format": "1.99", "from_the_future": 1}),
    ],
)
def test_a_folder_of_a_newer_format_says_so(name: str, change: dict[str, object], tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / EARLIER[-1], tmp_path / "run")
    path = tmp_path / "run" / name
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    if name != manifest.NAME:
        manifest.write(tmp_path / "run")

    assert "newer nicbench" in (headline(tmp_path / "run").trouble or "")
    with pytest.raises(UsageError, match="newer nicbench"):
        nicbench.load(tmp_path / "run")
