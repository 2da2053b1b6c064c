"""Which files a report is, where they go, and that a run folder stays as the run left it."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

from nicbench import report
from nicbench.cli.options import kinds as kinds_of
from nicbench.core.errors import HostError, UsageError
from nicbench.core.plan import Layout
from nicbench.report import Format, formats
from nicbench.report.document.blocks import Document
from nicbench.store import RunFolder
from nicbench.store import files as storage


@pytest.fixture
def run(whole_run: Path, whole_document: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a run whose report is drawn already."""
    monkeypatch.setattr(formats, "document", lambda *_: whole_document)
    return Path(shutil.copytree(whole_run, tmp_path / whole_run.name))


def test_every_format_is_written_and_the_folder_is_as_the_run_left_it(run: Path) -> None:
    paths = report.build_formats(run, tuple(Format))

    assert {kind.value: path.name for kind, path in paths.items()} == {
        "html": "report.html",
        "pdf": "report.pdf",
        "md": "report.md",
    }
    assert paths[Format.PDF].read_bytes().startswith(b"%PDF")
    assert list((run / "report-figures").glob("figure-*.svg"))
    assert RunFolder.open(run).differences() == ()


def test_another_layout_stands_beside_it_under_its_own_name(run: Path, tmp_path: Path) -> None:
    paths = report.build_formats(run, (Format.MARKDOWN,), Layout.DATASHEET, tmp_path / "new" / "folder")

    assert paths == {Format.MARKDOWN: tmp_path / "new" / "folder" / "report-datasheet.md"}
    assert "](report-datasheet-figures/figure-01.svg)" in paths[Format.MARKDOWN].read_text(encoding="utf-8")


def test_figures_of_an_earlier_report_go_and_a_link_is_not_followed(run: Path, tmp_path: Path) -> None:
    (run / "report-figures").mkdir()
    (run / "report-figures" / "figure-99.svg").write_text("old")
    report.build_formats(run, (Format.MARKDOWN,))
    assert not (run / "report-figures" / "figure-99.svg").exists()

    shutil.rmtree(run / "report-figures")
    (tmp_path / "outside").mkdir()
    (run / "report-figures").symlink_to(tmp_path / "outside")
    report.build_formats(run, (Format.MARKDOWN,))
    assert list((tmp_path / "outside").iterdir()) == []
    assert list((run / "report-figures").glob("figure-*.svg"))


def test_a_pdf_made_twice_is_the_same(run: Path, tmp_path: Path) -> None:
    one = report.build_formats(run, (Format.PDF,), out=tmp_path / "one")[Format.PDF]
    other = report.build_formats(run, (Format.PDF,), out=tmp_path / "other")[Format.PDF]

    assert one.read_bytes() == other.read_bytes()


def test_a_full_disk_is_said_with_the_way_out(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage.os, "fsync", full)

    with pytest.raises(HostError, match="disk is full") as refused:
        report.build_formats(run, (Format.HTML,))
    assert "--out" in str(refused.value.next_step)


def test_a_folder_that_cannot_be_made_is_said_with_the_way_out(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match="is no folder, but a file") as refused:
        report.build_formats(run, (Format.HTML,), out=tmp_path / "file" / "below")
    assert "--out" in str(refused.value.next_step)


def test_the_inside_of_a_run_folder_is_no_place_for_a_report(run: Path) -> None:
    with pytest.raises(UsageError, match="lies in the folder of a run"):
        report.build_formats(run, (Format.HTML,), out=run / "raw")


@pytest.mark.parametrize(
    ("texts", "kinds"),
    [
        (["pdf"], (Format.PDF,)),
        (["md,pdf", "md"], (Format.MARKDOWN, Format.PDF)),
        (["all"], tuple(Format)),
        (["html, all"], tuple(Format)),
    ],
)
def test_formats_are_named_by_commas_or_again(texts: list[str], kinds: Any) -> None:
    assert kinds_of(texts) == kinds


def test_a_format_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="odt") as refused:
        kinds_of(["pdf,odt"])
    assert "pdf" in str(refused.value.next_step)
