"""JSON as the pages get it: in ASCII, so that foreign text cannot steer a terminal and any file name can be written."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from nicbench.export.document import harmless_cell


def json_line(content: Any) -> str:
    """Writes JSON on one line. What is not ASCII is written by number; half a character, as in a broken name, too."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def json_answer(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Answers with JSON."""
    return Response(json_line(content), status, headers, "application/json")


_AT_ONCE: Final = 2000
"""Rows that are written at one time."""
Rows = Iterable[Mapping[str, Any]]


def csv_download(name: str, columns: Sequence[str], rows: Rows) -> Response:
    """Answers with a file ``name``.csv: RFC 4180, in which no cell is taken for a formula."""
    return _download(_csv_lines(columns, rows), "text/csv; charset=utf-8", f"{name}.csv")


def json_download(name: str, columns: Sequence[str], rows: Rows) -> Response:
    """Answers with a file ``name``.json: its format, and the rows under ``name``."""
    return _download(_json_lines(name, columns, rows), "application/json", f"{name}.json")


def _download(lines: Iterable[str], media_type: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(lines, media_type=media_type, headers=headers)


def _pieces(rows: Rows) -> Iterator[list[Mapping[str, Any]]]:
    left = iter(rows)
    while piece := list(islice(left, _AT_ONCE)):
        yield piece


def _csv_lines(columns: Sequence[str], rows: Rows) -> Iterator[str]:
    yield _csv([map(harmless_cell, columns)])
    for piece in _pieces(rows):
        yield _csv([_cell(row[name]) for name in columns] for row in piece)


def _csv(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    text = ", ".join(value) if isinstance(value, list) else value
    return harmless_cell(text) if isinstance(text, str) else text


def _json_lines(name: str, columns: Sequence[str], rows: Rows) -> Iterator[str]:
    yield f'{{"format": "1.0", {json_line(name)}: ['
    before = "\n"
    for piece in _pieces(rows):
        yield before + ",\n".join(json_line({column: row[column] for column in columns}) for row in piece)
        before = ",\n"
    yield "\n]}\n"
