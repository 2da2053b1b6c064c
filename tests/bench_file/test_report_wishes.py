"""The key `report` of a bench file."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from nicbench.bench_file import load
from nicbench.bench_file.reader import WrongBenchFileError
from nicbench.core.plan import Layout

_FILE = """nicbench: 1
title: a run
lab: simulated
dut: simulated
{}tests:
  - {{name: throughput, method: throughput}}
"""


def _written(tmp_path: Path, report: str) -> Path:
    path = tmp_path / "bench.yaml"
    path.write_text(_FILE.format(report))
    return path


def test_without_a_word_it_is_a_study_without_author(tmp_path: Path) -> None:
    report = load(_written(tmp_path, "")).report

    assert (report.layout, report.title, report.question, report.author, report.revisions) == (
        Layout.STUDY,
        None,
        None,
        None,
        (),
    )


def test_every_key_is_read(tmp_path: Path) -> None:
    text = (
        "report:\n  layout: datasheet\n  title: T\n  question: Q?\n  author: A\n"
        "  about: |\n    One.\n\n    Two.\n  audience: Everybody\n"
        "  revisions: [{number: 1, date: 2026-11-22, text: first edition}]\n"
    )
    report = load(_written(tmp_path, text)).report

    assert (report.layout, report.title, report.question, report.author) == (Layout.DATASHEET, "T", "Q?", "A")
    assert (report.about, report.audience) == ("One.\n\nTwo.", "Everybody")
    assert report.revision is not None
    assert (report.revision.number, report.revision.date) == ("1", date(2026, 11, 22))
    assert [each.text for each in report.revisions] == ["first edition"]


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ("{layout: poster}", "`report.layout` cannot be `poster`"),
        ("{lay_out: study}", "unknown key `report.lay_out`"),
        ("{title: ''}", "`report.title` is empty"),
        ("{revisions: [{date: yesterday, text: x}]}", "`report.revisions[0].date`"),
        ("{about: ''}", "`report.about` is empty"),
        ("{revisions: [{number: 1.10, date: 2026-11-22, text: x}]}", "write the number in quotes"),
        (
            "{revisions: [{number: 1, date: 2026-11-22, text: x}, {date: 2026-11-23, text: y}]}",
            "give one to each, or to none",
        ),
        ("{revisions: [{date: 2026-11-23, text: x}, {date: 2026-11-22, text: y}]}", "write the oldest revision first"),
        ("{revisions: [{date: 2026-11-22}]}", "`report.revisions[0].text` is missing"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, report: str, said: str) -> None:
    with pytest.raises(WrongBenchFileError) as refused:
        load(_written(tmp_path, f"report: {report}\n"))

    assert said in str(refused.value)
    assert ":5:" in str(refused.value)
