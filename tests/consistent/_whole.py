"""All that is written of one run: its report in two formats, the terminal's summary, and its exports."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rich.console import Console

from nicbench import report as reports
from nicbench.cli.summary_table import print_summary
from nicbench.core.registry import find
from nicbench.core.result import Result, Summary
from nicbench.core.round import Round
from nicbench.core.trial import Trial
from nicbench.export.formats.base import ExportFormat
from nicbench.export.source import ExportSource
from nicbench.report import Format
from nicbench.report.gather import gather
from nicbench.report.model import Report
from nicbench.store.folder import RunFolder

from ._reading import Page, Part, plain, read_markdown, read_page


@dataclass(frozen=True)
class Whole:
    """Everything that a reader of the run may lay side by side."""

    folder: RunFolder

    @cached_property
    def summary(self) -> Summary:
        found = self.folder.summary()
        assert found is not None
        return found

    @cached_property
    def view(self) -> Report:
        """Which table is of which results; what is in them is read from the files."""
        return gather(self.folder)

    @cached_property
    def _files(self) -> dict[Format, str]:
        paths = reports.build_formats(self.folder.path, (Format.HTML, Format.MARKDOWN))
        return {kind: path.read_text(encoding="utf-8") for kind, path in paths.items()}

    @cached_property
    def parts(self) -> list[Part]:
        return read_markdown(self._files[Format.MARKDOWN])

    @cached_property
    def page(self) -> Page:
        return read_page(self._files[Format.HTML])

    @cached_property
    def terminal(self) -> list[str]:
        printed = io.StringIO()
        print_summary(Console(file=printed, width=2000, color_system=None), self.summary)
        return [line.rstrip() for line in printed.getvalue().splitlines()]

    def exported(self, kind: str, table: str = "results") -> str:
        written = io.BytesIO()
        find("nicbench.export.formats", ExportFormat)[kind]().write(ExportSource(self.folder), table, written)
        return written.getvalue().decode()

    @cached_property
    def json(self) -> dict[str, Any]:
        return json.loads(self.exported("json"))

    @cached_property
    def long_rows(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.exported("csv", "values"))))

    @cached_property
    def junit(self) -> ElementTree.Element:
        return ElementTree.fromstring(self.exported("junit"))

    @cached_property
    def samples(self) -> dict[str, Trial | Round]:
        journal = self.folder.journal
        every = (*journal.trials().values(), *journal.rounds().values())
        return {sample.id: sample for sample in every}

    @cached_property
    def results(self) -> dict[tuple[str, int | None], Result]:
        """Every result as it was summed up, of each run and over them."""
        return {(one.id, one.run): one for one in (*self.summary.results, *self.summary.over_runs)}

    def said(self, *titles: str) -> list[str]:
        """The sentences below these headings."""
        return [text for part in self.parts if part.title in titles for text in part.texts]

    @cached_property
    def text(self) -> str:
        """The visible text of the page."""
        return plain(" ".join(self.page.texts))
