"""JSON: the whole document, by a published schema (docs/export.schema.json)."""

from __future__ import annotations

from typing import BinaryIO

from nicbench.export.formats.base import ExportFormat
from nicbench.export.source import ExportSource
from nicbench.store.files import json_text


class JsonFormat(ExportFormat):
    """Numbers are those of summary.json, digit by digit; unknown is null."""

    kind = "json"
    suffix = ".json"

    def write(self, source: ExportSource, table: str, stream: BinaryIO) -> None:
        stream.write((json_text(source.document, indent=2) + "\n").encode())
