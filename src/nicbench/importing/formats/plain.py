"""A table whose headings name its columns: written by hand, or exported from a spreadsheet."""

from __future__ import annotations

from typing import ClassVar

from nicbench.importing.cells import Sheet
from nicbench.importing.columns import ImportOptions
from nicbench.importing.formats.base import Format


class Plain(Format):
    """Takes the table as it is."""

    kind: ClassVar[str] = "plain"
    about: ClassVar[str] = "headings name the columns and their units"

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        return sheet
