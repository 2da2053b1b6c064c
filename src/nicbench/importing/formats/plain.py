"""A table whose headings name what is in it: as anybody writes one by hand, or exports it from a spreadsheet."""

from __future__ import annotations

from typing import ClassVar

from nicbench.importing.cells import Sheet
from nicbench.importing.formats.base import Format
from nicbench.importing.options import ImportOptions


class Plain(Format):
    """Taken as it is."""

    kind: ClassVar[str] = "plain"
    about: ClassVar[str] = "headings name the columns and their units"

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        return sheet
