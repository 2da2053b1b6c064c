"""Writes all that nicbench says of drawn runs, to be laid beside what it said before a change (`diff -r`).

``python -m tests.consistent.rendered FOLDER [RUNS]`` writes, for each of the runs 0 to RUNS - 1 (200), the page, the
Markdown, the text of the PDF, the JSON and CSV exports and the terminal's summary. Runs have fixed identifiers (the
seeds of intervals follow from them), samples take no time, and times of day are replaced by words, so that two writings
of one revision are equal.
"""

from __future__ import annotations

import concurrent.futures
import re
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pypdf
import pytest

from nicbench import report as reports
from nicbench import run
from nicbench.measure import learning, samples
from nicbench.report import Format
from nicbench.store import folder as folders

from .test_consistent import RUNS, written

_CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d(?:T| )\d\d:?\d\d(?::?\d\d(?:\.\d+)?)?(?:Z|\+00:00| UTC)?"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "DAY"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "SHA256"),
    (re.compile(r"/tmp/[\w./-]+"), "PATH"),
)


def write(folder: Path, number: int) -> None:
    """Draws the run with this number, and writes its texts to a folder of that name."""
    with tempfile.TemporaryDirectory() as runs, pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "new_run_id", lambda title: f"2026-01-31T120000Z-drawn-{number:010}")
        for module in (run, samples, learning):
            patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 0.0))
        whole = written(Path(runs), number)
        files = reports.build_formats(whole.folder.path, tuple(Format))
        texts = {f"report.{kind.value}": path for kind, path in files.items()}
        found = {name: path.read_text() for name, path in texts.items() if path.suffix != ".pdf"}
        for path in (one for one in files.values() if one.suffix == ".pdf"):
            found["pdf.txt"] = "\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages)
        found["results.json"] = whole.exported("json")
        found["values.csv"] = whole.exported("csv", "values")
        found["terminal.txt"] = "\n".join(whole.terminal)
        target = folder / str(number)
        target.mkdir(parents=True, exist_ok=True)
        for name, text in found.items():
            for pattern, word in _CHANGING:
                text = pattern.sub(word, text)
            (target / name).write_text(text)


def main(folder: str, runs: str = str(RUNS)) -> None:
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for _ in pool.map(write, [Path(folder)] * int(runs), range(int(runs))):
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
