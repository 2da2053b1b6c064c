"""What a kind of export implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import BinaryIO, ClassVar

from nicbench.export.source import ExportSource


class ExportFormat(ABC):
    """Writes a run as one file. Numbers are written as they are; text is made harmless for whoever reads the file."""

    kind: ClassVar[str]
    suffix: ClassVar[str]
    """Of the file's name, with its dot."""
    is_text: ClassVar[bool] = True
    """Whether a terminal can show it."""
    one_table: ClassVar[bool] = False
    """Whether the file holds one of the tables (``source.TABLES``)."""

    @abstractmethod
    def write(self, source: ExportSource, table: str, stream: BinaryIO) -> None:
        """Writes the file; ``table`` is for a kind that holds one. UsageError where the run does not fit into it."""
