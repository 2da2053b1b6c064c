"""The report of an import: what it links to lies in the run folder, and its first screen says nothing unknown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nicbench.cli.main import main

TABLE = "Frame size [bytes],Frame rate [Mpps]\n64,37.20\n1518,2.03\n"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results.csv").write_text(TABLE)
    assert main(["import", "results.csv", "--method", "throughput", "--title", "A card"]) == 0
    (found,) = tmp_path.glob("runs/*/report.html")
    return found


def test_every_file_that_it_links_to_is_there(page: Path) -> None:
    files = re.findall(r'href="\./([^"#]+)"', page.read_text())
    assert "raw/results.csv" in files
    assert [name for name in files if not (page.parent / name).exists()] == []


def test_no_column_is_empty_and_no_interval_is_promised(page: Path) -> None:
    first_screen = page.read_text().partition('id="findings"')[0]
    assert "Limited by" not in first_screen
    assert "its interval" not in first_screen
