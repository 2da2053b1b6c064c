"""Every query of docs/many-runs.md answers, over a lake of an invented laboratory."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from tests.lake.conftest import add_trials
from tests.web._history import make_history

from nicbench.lake.gathering import gather

from ._pages import ROOT, blocks_of


def test_every_query_of_the_page_finds_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_history(Path("runs"), 88, first=76)
    for path in Path("runs").iterdir():
        add_trials(path, 2)
    gather([Path("runs")], "runs/lake")
    views, *questions = [block.text for block in blocks_of(ROOT / "docs/many-runs.md") if block.language == "sql"]
    with duckdb.connect() as connection:
        connection.execute(views)
        answers = [connection.execute(question).fetchall() for question in questions]
    by_month, worse, latency, rings = answers
    assert all(row[3] > 0 and row[4] > 10 for row in by_month)
    assert worse[0][-1] == pytest.approx(0.0, abs=0.2)
    assert sum(row[1] for row in latency) == 24 * 2
    assert {row[1] for row in rings} == {"4096"}
