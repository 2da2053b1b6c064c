"""The report as files: HTML, PDF and Markdown are written from one document, so that all of them say the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from nicbench.core.errors import HostError, UsageError
from nicbench.core.events import RunStarted
from nicbench.core.plan import Layout
from nicbench.report import Format, html, markdown, pdf
from nicbench.report.document.blocks import Document
from nicbench.report.gather import gather
from nicbench.report.layouts import document
from nicbench.store import RunFolder
from nicbench.store.files import JOURNAL, hands, make_folder, storage_error, write_atomically
from nicbench.store.folder import is_run_folder

_ELSEWHERE = "name a folder for the report that can be written with --out PATH"
_UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)


def build(
    folder: Path, formats: Sequence[Format], layout: Layout | None = None, out: Path | None = None, logo: bytes = b""
) -> Mapping[Format, Path]:
    """Writes the report of the run in ``folder``; see ``nicbench.report.build_formats``."""
    run = RunFolder.open(folder)
    target = _target(run, out)
    report = gather(run)
    layout = layout or report.wishes.layout
    stem = "report" if layout is report.wishes.layout else f"report-{layout.value}"
    whole = replace(document(report, layout), logo=logo)
    return write(whole, formats, target / stem, f"run {run.run_id}", _start_time(run))


def write(
    document: Document, formats: Sequence[Format], stem: Path, about: str, made: datetime = _UNKNOWN
) -> Mapping[Format, Path]:
    """Writes a document in each of ``formats``, named ``stem`` with the ending of the format, and returns the paths.
    ``about`` and ``made`` are the metadata of a PDF. Raises NotReadyError and HostError as ``build`` does.
    """
    paths = {}
    for kind in formats:
        files = dict(_files(kind, document, stem.name, about, made))
        paths[kind] = stem.parent / next(iter(files))
        if kind is Format.MARKDOWN:
            _clear(stem.parent / f"{stem.name}-figures")
        for file, content in files.items():
            _write(stem.parent / file, content)
    return paths


def _clear(folder: Path) -> None:
    """Removes the figures of an earlier report; a link is removed itself, so that nothing outside the run folder
    changes.
    """
    try:
        if folder.is_symlink():
            hands().remove(folder)
        for old in folder.glob("figure-*.svg"):
            hands().remove(old)
    except OSError as error:
        raise storage_error(error, folder, _ELSEWHERE) from error


def _files(kind: Format, document: Document, stem: str, about: str, made: datetime) -> Iterator[tuple[str, bytes]]:
    """Yields the name and the content of each file; the first one is the report."""
    if kind is Format.HTML:
        yield f"{stem}.html", html.write_html(document).encode()
    elif kind is Format.PDF:
        yield f"{stem}.pdf", pdf.make_pdf(document, about, made)
    else:
        written = markdown.write_markdown(document, f"{stem}-figures")
        yield f"{stem}.md", written.text.encode()
        for picture, svg in written.pictures.items():
            yield f"{stem}-figures/{picture}", svg.encode()


def _start_time(run: RunFolder) -> datetime:
    """Returns when the run began, so that a report made twice is the same file, byte for byte."""
    events = itertools.islice(run.journal.events(), 1)
    for event in events:
        if isinstance(event, RunStarted):
            try:
                told = datetime.fromisoformat(event.wall_time)
            except ValueError:
                break
            return told if told.tzinfo else told.replace(tzinfo=UTC)
    return _UNKNOWN


def _target(run: RunFolder, out: Path | None) -> Path:
    if out is None:
        return run.path
    whole = out.absolute()
    if any(is_run_folder(each) and (each / JOURNAL).exists() for each in whole.parents):
        raise UsageError(
            "lies in the folder of a run, whose files are checked against what was measured",
            place=str(out),
            next_step="name a folder outside of it with --out",
        )
    return whole


def _write(path: Path, content: bytes) -> None:
    make_folder(path.parent, _ELSEWHERE)
    try:
        write_atomically(path, content)
    except HostError as error:
        cause = error.__cause__
        if isinstance(cause, OSError):
            raise storage_error(cause, path, _ELSEWHERE) from error
        raise
