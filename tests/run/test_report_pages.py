"""The reports of a simulated run are as short as a reader expects: pages on paper, and what a page shows unfolded."""

from __future__ import annotations

import re
from pathlib import Path

import pypdf
import pytest

from nicbench import report
from nicbench.core.plan import Layout
from nicbench.store.folder import RunFolder

from .simulated_bench import BENCH, COMPARED, run_whole


@pytest.mark.parametrize(("bench", "pages"), [(BENCH, 2), (COMPARED, 4)], ids=["two sizes", "configurations"])
def test_a_datasheet_has_few_pages_and_a_study_twelve_at_most(tmp_path: Path, bench: str, pages: int) -> None:
    run = RunFolder.create(tmp_path, bench, "Pages")
    run_whole(run)
    made = {
        layout: report.build_formats(run.path, (report.Format.PDF,), layout)[report.Format.PDF] for layout in Layout
    }

    assert len(pypdf.PdfReader(made[Layout.DATASHEET]).pages) <= pages
    assert len(pypdf.PdfReader(made[Layout.STUDY]).pages) <= 12


def test_all_but_the_first_screen_is_folded(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, BENCH.partition("  - name: sweep")[0], "Folded")
    run_whole(run)
    page = report.build(run.path).read_text(encoding="utf-8")
    unfolded = re.sub(r"<details\b(?:(?!<details\b).)*?</details>", "", page, flags=re.DOTALL)
    while unfolded != page:
        page, unfolded = unfolded, re.sub(r"<details\b(?:(?!<details\b).)*?</details>", "", unfolded, flags=re.DOTALL)

    assert unfolded.count("<table") == 1
    assert unfolded.count("<figure") == 1


def test_a_simulated_run_tells_of_no_counters_that_were_not_read(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, BENCH, "Lost")
    run_whole(run)
    assert any(trial.reading.counts.lost for trial in run.journal.trials().values())
    assert "Where frames were lost" not in report.build(run.path).read_text(encoding="utf-8")
