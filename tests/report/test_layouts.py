"""Each layout is a page of its own, made of the same run."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from nicbench import report
from nicbench.model.report_wishes import Layout


def test_every_layout_has_its_template() -> None:
    folder = files("nicbench.report") / "templates" / "layouts"

    assert {each.name for each in folder.iterdir()} == {f"{layout.value}.html.j2" for layout in Layout}


def test_the_layout_of_the_bench_file_is_the_report_and_the_other_stands_beside_it(whole_run: Path) -> None:
    assert report.build(whole_run, Layout.STUDY).name == "report.html"
    assert report.build(whole_run, Layout.DATASHEET).name == "report-datasheet.html"
