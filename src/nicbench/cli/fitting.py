"""Tables that fit the terminal: no number is cut short. Few rows stand beside each other, else columns are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape, render
from rich.table import Table

_FRAME: Final = 3  # a border and a space on each side of a cell
_FEW_ROWS: Final = 3
"""So many rows stand beside each other where their columns do not fit: a line for each column, nothing left out."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A column. ``head`` is its lines, as markup like the cells; the lower ``rank``, the longer it stays."""

    head: tuple[str, ...]
    cells: tuple[str, ...]
    rank: int = 2
    right: bool = True

    @property
    def name(self) -> str:
        """Its heading on one line."""
        return " ".join(line for line in self.head if line)

    @property
    def width(self) -> int:
        """Of its longest line."""
        return max(cell_len(render(text).plain) for text in (*self.head, *self.cells, ""))


def print_fitted(console: Console, columns: Sequence[Shown], title: str | None = None, caption: str = "") -> None:
    """Prints the columns as a table no wider than the console; ``title`` and ``caption`` are markup."""
    rows = max((len(column.cells) for column in columns), default=0)
    kept = _that_fit(columns, console.width)
    if len(kept) < len(columns) and rows <= _FEW_ROWS and _laid_down_width(columns) <= console.width:
        table = _table(title)
        table.show_header = False
        for number in range(rows + 1):
            table.add_column(justify="right" if number else "left", overflow="fold")
        for column in columns:
            table.add_row(f"[bold]{column.name}[/]", *column.cells)
        left_out: list[str] = []
    else:
        table = _table(title)
        for column in kept:
            table.add_column("\n".join(column.head), justify="right" if column.right else "left", overflow="fold")
        for cells in zip(*(column.cells for column in kept), strict=True):
            table.add_row(*cells)
        left_out = [column.name for column in columns if column not in kept]
    console.print(table)
    for line in (caption, f"The report also has: {', '.join(left_out)}" if left_out else ""):
        if line:
            console.print(f"[dim italic]{line}[/]")


def escaped(*texts: str) -> tuple[str, ...]:
    """Texts as markup that shows them as they are."""
    return tuple(escape(text) for text in texts)


def _table(title: str | None) -> Table:
    return Table(header_style="bold", title=title, title_justify="left", title_style="bold")


def _that_fit(columns: Sequence[Shown], width: int) -> list[Shown]:
    """In their order; those of rank 0 whatever the room."""
    kept: set[int] = set()
    free = width - 1
    for number in sorted(range(len(columns)), key=lambda number: columns[number].rank):
        needed = columns[number].width + _FRAME
        if needed <= free or columns[number].rank == 0:
            kept.add(number)
            free -= needed
    return [columns[number] for number in sorted(kept)]


def _laid_down_width(columns: Sequence[Shown]) -> int:
    rows = zip(*(column.cells for column in columns), strict=True)
    widths = [max(cell_len(render(cell).plain) for cell in row) for row in rows]
    heads = max(cell_len(render(column.name).plain) for column in columns)
    return 1 + heads + _FRAME + sum(width + _FRAME for width in widths)
