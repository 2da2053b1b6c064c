"""What an import would bring: where it is from, which column became what, what cannot be so, and the results."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nicbench.cli.summary_table import print_summary
from nicbench.importing.results import ImportedResults
from nicbench.model.result import Summary


def print_import(console: Console, summary: Summary, found: ImportedResults) -> None:
    """For ``--dry-run``."""
    table = Table(header_style="bold", title="Columns", title_justify="left", title_style="bold")
    for head in ("column of the file", "becomes", "unit"):
        table.add_column(head, overflow="fold")
    for one in found.columns:
        table.add_row(escape(one.head.text), escape(one.column.name), escape(str(one.unit)) if one.unit else "-")
    for name in found.ignored:
        table.add_row(escape(name), "left out", "-")
    console.print(table)
    print_summary(console, summary)
