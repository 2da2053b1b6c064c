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
