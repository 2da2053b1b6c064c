"""A format: from what a tester exports to a sheet with the headings of the method. Pure; it reads no file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from nicbench.importing.cells import Sheet
from nicbench.importing.options import ImportOptions


class Format(ABC):
    """Subclasses define ``kind``, a sentence ``about`` for the help, and ``sheet``."""

    kind: ClassVar[str]
    about: ClassVar[str]

    @classmethod
    @abstractmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        """The rows and columns of ``method`` in a file that was read as it is; cells keep their places.

        WrongFileError with a place where the file is not of this format.
        """
