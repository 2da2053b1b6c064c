"""A comparison for programs: entries, what speaks against comparing them, what differs, every main value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from nicbench.beside.entry import Entry
from nicbench.beside.matching import Matched
from nicbench.beside.objections import Objection
from nicbench.beside.settings import Setting, Settings
from nicbench.cli.output import FORMAT
from nicbench.diff.words import NOT_RECORDED
from nicbench.model.result import Value
from nicbench.report.beside.page import Page


def document(
    found: Matched, against: Sequence[Objection], known: Settings, page: Page, pages: Sequence[str]
) -> dict[str, Any]:
    """Numbers are those of the results, in the units that their names carry."""
    return {
        "format": FORMAT,
        "page": pages[0],
        "pages": list(pages),
        "title": page.report.title,
        "answer": [page.report.headline, *page.report.details],
        "comparable": not page.forced,
        "not_comparable": list(page.forced),
        "notes": list(page.told),
        "entries": [_entry(entry) for entry in found.entries],
        "differences": [_setting(row, known) for row in (*known.main, *known.others)],
        "values": [
            {
                "test": table.test,
                "method": table.method,
                "scope": table.scope,
                "value": table.value,
                "parameters": dict(parameters),
                "entries": {
                    name: _plain(cells[place].value) for name, cells in table.rows.items() if cells[place].result
                },
            }
            for table in page.tables
            for place, parameters in enumerate(table.parameters)
        ],
        "only": [
            {"test": point.test, "method": point.method, "parameters": dict(point.parameters), "entries": list(names)}
            for point, names in found.lonely.items()
        ],
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "run": entry.run_id,
        "configuration": entry.configuration,
        "title": entry.title,
        "origin": entry.origin.value,
        "verdict": entry.verdict.value,
        "finished": entry.finished,
        "runs": entry.runs,
        "source": entry.imported.model_dump(mode="json", include={"source", "year", "device"})
        if entry.imported
        else None,
    }


def _setting(row: Setting, known: Settings) -> dict[str, Any]:
    return {
        "path": row.path,
        "places": list(row.places),
        "values": {name: value for name, value in zip(known.of, row.values, strict=True) if value is not NOT_RECORDED},
        "importance": row.rank,
        "why": row.why,
    }


def _plain(value: Value) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value
