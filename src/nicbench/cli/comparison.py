"""A comparison on the terminal, and for programs as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nicbench.cli.output import FORMAT
from nicbench.compare.entry import Entry
from nicbench.compare.importance import NOT_RECORDED
from nicbench.compare.matching import MatchedEntries
from nicbench.compare.objections import Objection
from nicbench.compare.settings import Setting, Settings
from nicbench.core.result import Value
from nicbench.report.answer.of_entries import FEW
from nicbench.report.beside.page import Page
from nicbench.report.beside.values import ValueCell, ValueTable
from nicbench.store.listing import clean

# A comparison for programs: entries, what speaks against comparing them, what differs, every main value.


def document(
    found: MatchedEntries, against: Sequence[Objection], known: Settings, page: Page, pages: Sequence[str]
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


# A comparison on the terminal: what is compared, what speaks against it, and the main values side by side.


_MOST_SETTINGS = 8
_ACROSS = 7
"""Points of one table where entries are rows; more are further tables."""


def print_comparison(console: Console, page: Page) -> None:
    """In the order of the page."""
    for text in page.forced:
        console.print(f"[bold red]not comparable, forced:[/] {escape(clean(text))}", soft_wrap=True)
    console.print(escape(page.report.headline), soft_wrap=True)
    for text in page.report.details:
        console.print(escape(text), soft_wrap=True)
    console.print()
    for text in page.told:
        console.print(escape(f"note: {clean(text)}"), soft_wrap=True)
    _settings(console, page)
    for table in page.tables:
        console.print(f"\n[bold]{escape(clean(f'{table.test}: {table.heading}, {table.scope}'))}[/]", soft_wrap=True)
        (_few if len(page.entries) <= FEW else _many)(console, table)
    for row in page.lonely:
        console.print(escape(f"only in {clean(', '.join(row.names[:6]))}: {clean(row.words)}"), soft_wrap=True)


def _settings(console: Console, page: Page) -> None:
    count = len(page.known.main)
    if not count:
        return
    console.print(f"\n{count} setting{'s differ' if count > 1 else ' differs'}, most influential first:")
    for row in page.settings[:_MOST_SETTINGS]:
        values = "; ".join(
            f"{clean(text)} ({clean(', '.join(names[:3]))}{'…' if len(names) > 3 else ''})"
            for text, names in row.groups[:4]
        )
        console.print(escape(f"  {row.setting}: {values}"), soft_wrap=True)
    if count > _MOST_SETTINGS:
        console.print(f"  and {count - _MOST_SETTINGS} more, on the page")


def _few(console: Console, table: ValueTable) -> None:
    """A column for each entry."""
    shown = _empty()
    shown.add_column("")
    for name in table.rows:
        shown.add_column(escape(clean(name)), justify="right", overflow="fold")
    for place, point in enumerate(table.points):
        shown.add_row(escape(clean(point)), *(_cell(cells[place]) for cells in table.rows.values()))
    console.print(shown)


def _many(console: Console, table: ValueTable) -> None:
    """A row for each entry."""
    for first in range(0, len(table.points), _ACROSS):
        shown = _empty()
        shown.add_column("", overflow="fold")
        for point in table.points[first : first + _ACROSS]:
            shown.add_column(escape(clean(point)), justify="right", overflow="fold")
        for name, cells in table.rows.items():
            shown.add_row(escape(clean(name)), *(_cell(cell) for cell in cells[first : first + _ACROSS]))
        console.print(shown)


def _empty() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))


def _cell(cell: ValueCell) -> str:
    return escape(cell.text) + ("*" if cell.result is not None and cell.result.verdict.value == "disturbed" else "")
