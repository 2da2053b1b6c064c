"""Each layout is a page of its own, made of the same run."""

from __future__ import annotations

import pkgutil
from pathlib import Path

from nicbench import report
from nicbench.core.plan import Layout
from nicbench.report import layouts


def test_every_layout_has_its_file() -> None:
    known = {each.name for each in pkgutil.iter_modules(layouts.__path__)}

    assert known == {layout.value for layout in Layout}


def test_the_layout_of_the_bench_file_is_the_report_and_the_other_stands_beside_it(whole_run: Path) -> None:
    assert report.build(whole_run, Layout.STUDY).name == "report.html"
    assert report.build(whole_run, Layout.DATASHEET).name == "report-datasheet.html"
