"""Tables on the terminal: any that fit, those of imported results, and those of a study of editors.

No number is cut short: few rows stand beside each other, else columns are left out. Imported results are printed as
their source prints them: the columns that are known, in its units. A study has its answer, and for each direction the
sums over the number of instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape, render
from rich.table import Table

from nicbench.core.result import Result
from nicbench.report.answer.of_run import answers
from nicbench.report.editors import OneWay, Study, rate_decimals, rate_text
from nicbench.report.imported import value_name
from nicbench.stats.frames import FiguresOverRuns

_FRAME: Final = 3  # a border and a space on each side of a cell
_FEW_ROWS: Final = 3
"""So many rows stand beside each other where their columns do not fit: a line for each column, nothing left out."""


@dataclass(frozen=True, slots=True)
class ShownColumn:
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


def print_fitted(console: Console, columns: Sequence[ShownColumn], title: str | None = None, caption: str = "") -> None:
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


def escape_texts(*texts: str) -> tuple[str, ...]:
    """Texts as markup that shows them as they are."""
    return tuple(escape(text) for text in texts)


def _table(title: str | None) -> Table:
    return Table(header_style="bold", title=title, title_justify="left", title_style="bold")


def _that_fit(columns: Sequence[ShownColumn], width: int) -> list[ShownColumn]:
    """In their order; those of rank 0 whatever the room."""
    kept: set[int] = set()
    free = width - 1
    for number in sorted(range(len(columns)), key=lambda number: columns[number].rank):
        needed = columns[number].width + _FRAME
        if needed <= free or columns[number].rank == 0:
            kept.add(number)
            free -= needed
    return [columns[number] for number in sorted(kept)]


def _laid_down_width(columns: Sequence[ShownColumn]) -> int:
    rows = zip(*(column.cells for column in columns), strict=True)
    widths = [max(cell_len(render(cell).plain) for cell in row) for row in rows]
    heads = max(cell_len(render(column.name).plain) for column in columns)
    return 1 + heads + _FRAME + sum(width + _FRAME for width in widths)


def print_imported_table(console: Console, results: Sequence[Result]) -> None:
    """One row for each result of a section none of whose columns its source has."""
    columns = [
        ShownColumn(
            escape_texts("frame", "[bytes]"),
            escape_texts(*(str(result.parameters.get("size", "-")) for result in results)),
            0,
        )
    ]
    if len({result.configuration for result in results}) > 1:
        names = escape_texts(*(result.configuration for result in results))
        columns.insert(0, ShownColumn(escape_texts("configuration"), names, 0, right=False))
    values = list(dict.fromkeys(value for result in results if result.imported for value in result.imported.printed))
    for value in values:
        printed = [result.imported.printed.get(value) if result.imported else None for result in results]
        columns.append(
            ShownColumn(_head(value, results), escape_texts(*(one.text if one else "-" for one in printed)), 1)
        )
    bases = ", ".join(dict.fromkeys(result.scope for result in results))
    print_fitted(console, columns, caption=escape(f"Rates are {bases}"))


def _head(value: str, results: Sequence[Result]) -> tuple[str, ...]:
    """With the unit that all of them are printed in."""
    name = value_name(results[0].method, value)
    units = {
        result.imported.printed[value].unit
        for result in results
        if result.imported and value in result.imported.printed
    }
    unit = next(iter(units)) if len(units) == 1 else None
    return escape_texts(name) if unit is None or unit in name.split() else escape_texts(name, f"[{unit}]")


def print_studies(console: Console, studies: Sequence[Study]) -> None:
    """Of several, everything says which test it is about. The report has every run and every instance."""
    for text in answers(studies):
        console.print(text, markup=False, soft_wrap=True)
    for study in studies:
        of = study.test if len(studies) > 1 else ""
        for way in study.ways:
            console.print(_sums_table(study, way, of))


def _sums_table(study: Study, way: OneWay, of: str) -> Table:
    """Of each configuration the median run, between the lowest and the highest, and how many runs met the target."""
    about = ", ".join(filter(None, (of, way.doing and (way.doing.lower() if of else way.doing))))
    doing = f"{about}: sum" if about else "Sum"
    table = Table(
        header_style="bold", title=escape(f"{doing} of all instances [fps]"), title_justify="left", title_style="bold"
    )
    over = {name: way.figures_over_runs(name) for name in way.configurations}
    decimals = rate_decimals(one.minimum_frames_per_s for of in over.values() for one in of.values())
    table.add_column("instances", justify="right")
    if way.targets:
        table.add_column("target", justify="right")
    for name in way.configurations:
        table.add_column(escape(name) if study.quoted_name(name) else "median run", justify="right")
        if way.targets:
            table.add_column("met", justify="right")
    for count in way.counts:
        cells = [str(count)]
        if way.targets:
            each = dict.fromkeys(way.at[column].target for column in way.columns if column[1] == count)
            cells.append(
                ", ".join("-" if one is None else rate_text(one.for_instances(count), decimals) for one in each)
            )
        for name in way.configurations:
            found = over[name].get(count)
            cells.append("-" if found is None else _sums(found, decimals))
            if way.targets:
                limited = found is not None and way.at[name, count].target is not None
                cells.append(_met(found) if found is not None and limited else "-")
        table.add_row(*cells)
    several = any(one.runs > 1 for of in over.values() for one in of.values())
    table.caption = "Median of the runs, between the lowest and the highest" if several else None
    table.caption_justify = "left"
    return table


def _sums(over: FiguresOverRuns, decimals: int) -> str:
    median, least, most = (
        rate_text(rate, decimals)
        for rate in (over.median_frames_per_s, over.minimum_frames_per_s, over.maximum_frames_per_s)
    )
    return median if over.runs == 1 or least == most else f"{least} .. {median} .. {most}"


def _met(over: FiguresOverRuns) -> str:
    text = f"{over.runs_met} of {over.runs}"
    return f"[green]{text}[/]" if over.runs_met == over.runs else f"[yellow]{text}[/]"
