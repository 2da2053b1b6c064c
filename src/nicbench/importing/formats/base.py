"""The interface of formats: from what a tester exports to a sheet with the headings of the method.

To add one:

1. Write ``src/nicbench/importing/formats/NAME.py`` with one subclass of ``Format``: it gives a sheet in the words of
   the method (``frame rate [fps]``) and keeps the places of cells. Its docstring says where the layout is known from;
   what no public source shows is left out.
2. Put a file of it in ``tests/importing/golden``, and its results in ``tests/importing/test_formats.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from nicbench.importing.cells import Sheet, read_sheet
from nicbench.importing.columns import ImportOptions


class Format(ABC):
    """Subclasses define ``kind``, a sentence ``about`` for the help, and ``sheet``."""

    kind: ClassVar[str]
    about: ClassVar[str]

    @classmethod
    def cells(cls, text: str, path: str, delimiter: str | None, heading_line: int) -> Sheet:
        """Parses the file before rows are chosen: a CSV, unless the tester writes something else.

        WrongFileError with a position where it is none.
        """
        return read_sheet(text, path, delimiter, heading_line)

    @classmethod
    @abstractmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        """Returns the rows and columns of ``method`` in a parsed file; cells keep their positions.

        WrongFileError with a position where the file is not of this format.
        """
