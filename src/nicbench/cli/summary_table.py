"""What is printed at the end of a run: a table with a row for each frame size, and a table for each test.

The first has throughput, latency and verdict: columns of several tests, as their methods choose them. Units stand in
the headers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape, render
from rich.table import Table

from nicbench.cli.output import print_line
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.core.reading import PortFigures
from nicbench.core.result import NOT_MEASURED, Result, ResultVerdict, Summary
from nicbench.core.table import Column
from nicbench.core.units import format_rate, format_ratio, uncapitalise
from nicbench.report.answer.of_run import answers
from nicbench.report.cells import texts
from nicbench.report.comparison import runs_lines
from nicbench.report.editors import OneWay, Study, rate_decimals, rate_text, studies
from nicbench.report.imported import errata_words, value_name
from nicbench.report.numbers import UNKNOWN, basis_words
from nicbench.report.overview import BySize, SizeColumn, join_by_size
from nicbench.report.section import Crossing, GridTable, Section, one_above_the_other
from nicbench.report.tables import side_by_side
from nicbench.stats.frames import FiguresOverRuns

# Tables on the terminal: any that fit, those of imported results, and those of a study of editors.  No number is cut
# short: few rows stand beside each other, else columns are left out. Imported results are printed as their source
# prints them: the columns that are known, in its units. A study has its answer, and for each direction the sums over
# the number of instances.

_FRAME: Final = 3  # a border and a space on each side of a cell
_FEW_ROWS: Final = 3
"""The number of rows that are shown side by side, with a line for each column, if the columns do not fit."""


@frozen
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
        left_out = []
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
    kept = set()
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
        print_line(text, console)
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


MEDIANS = "; each number is the median of several runs, between the lowest and the highest"
_MOST_LINES: Final = 6
"""The number of disturbances and of ways between ports that are listed: the report has the others."""
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?(?: [kMG]?pps)?")
_STYLES = {
    ResultVerdict.VALID: "green",
    ResultVerdict.DISTURBED: "yellow",
    ResultVerdict.INCOMPLETE: "red",
    ResultVerdict.IMPORTED: "cyan",
}


def print_summary(console: Console, summary: Summary) -> None:
    """Prints a table with a row for each frame size, then those of which the sizes alone do not tell the rows apart."""
    compared = summary.beside_each_other
    console.print(f"\n[bold]{escape(summary.title)}[/bold]: {_verdict(summary.verdict)}")
    if summary.imported is not None:
        said = f"{NOT_MEASURED}; the numbers are those of {summary.imported.named}"
        print_line(said, console)
    every = side_by_side(compared, {})
    joined = [section for section in every if section.table.overview and not section.is_imported]
    if joined:
        by_size = join_by_size(joined)
        caption = escape(_rates_are(by_size.basis) + (MEDIANS if summary.over_runs else ""))
        print_fitted(console, overview_columns(by_size, _verdict), caption=caption)
    print_studies(console, studies(summary.counted, {}, summary.configurations))
    in_grids = set()
    for section in every:
        if section not in joined:
            in_grids |= _print_one(console, section, _title(section, every))
    for line in runs_lines(summary):
        print_line(line, console)
    _print_few(
        console, [f"{result.id}: {_ways(result.by_port)}" for result in summary.counted if result.by_port is not None]
    )
    checked = [result for result in summary.counted if "self_check" in result.values]
    _print_few(console, [f"{result.id}: self-check: {result.values['self_check']}" for result in checked])
    _print_few(console, _disturbances([result for result in summary.counted if result.id not in in_grids]))
    _print_few(
        console, [f"{result.id}: erratum: {text}" for result in summary.results for text in errata_words(result)]
    )
    _print_few(
        console,
        [
            f"{result.id}: near the tester's own limit: {near.text}"
            for result in summary.counted
            for near in result.near_tester_limit or ()
        ],
    )


def _print_one(console: Console, section: Section, title: str) -> set[str]:
    """One section; the ids of the results in its grid that may not be relied on: the report says why."""
    if section.is_bare or (section.table.overview and _has_more(section)):
        print_imported_table(console, [row.result for row in section.rows])
    elif section.grids and section.brief:
        for grids in one_above_the_other(section.grids):
            console.print(_grid_table(section, title, grids))
    else:
        _print_section(console, section, title)
    doubtful = [row for row in section.rows if section.grids and not row.result.verdict.is_reliable]
    if doubtful:
        console.print(f"* {len(doubtful)} of {len(section.rows)} are disturbed or incomplete; the report says why")
    return {row.result.id for row in doubtful}


def _has_more(section: Section) -> bool:
    """Whether the source of imported results has values that no column of the section shows, as bins of a tail."""
    shown = {column.value for column in section.table.columns}
    found = (name for row in section.rows if row.result.imported for name in row.result.imported.printed)
    return any(name in section.rows[0].result.values and name not in shown for name in found)


def _disturbances(results: Sequence[Result]) -> list[str]:
    """Lists once what disturbed a round, though every result of that round has it; equal notes of goals likewise."""
    about: dict[str, list[str]] = {}
    for result in results:
        for disturbance in _group_goals(result):
            of_round = result.measured_by == "round"
            about.setdefault(disturbance if of_round else f"{result.id}: {disturbance}", []).append(result.id)
    lines = [
        text if text.startswith(f"{ids[0]}: ") else f"{ids[0] if len(ids) == 1 else f'{len(ids)} results'}: {text}"
        for text, ids in about.items()
    ]
    of_goals = {f"{result.id}: {text}" for result in results for text in _group_goals(result) if _goal_of(text, result)}
    return lines if len(lines) <= _MOST_LINES else _join_alike(lines, of_goals)


def _goal_of(text: str, result: Result) -> str | None:
    """The goal that a note is about, of several the first; None where it is about none."""
    goal = text.partition(": ")[0].partition(", ")[0]
    return goal if f"{goal.lower()}_frames_per_s" in result.values else None


def _group_goals(result: Result) -> list[str]:
    """The disturbances of a result; what several of its goals say in the same words is one: "NDR, PDR: ..."."""
    goals: dict[str, list[str]] = {}
    for text in result.disturbances:
        goal = _goal_of(text, result)
        note = text if goal is None else text.removeprefix(f"{goal}: ")
        goals.setdefault(note, []).extend([] if goal is None else [goal])
    return [f"{', '.join(named)}: {note}" if named else note for note, named in goals.items()]


def _join_alike(lines: Sequence[str], of_goals: Collection[str]) -> list[str]:
    """The lines; of the notes of goals that differ in their numbers only, as of other frame sizes, one."""
    alike = grouped((_NUMBER.sub("0", line) if line in of_goals else line, line) for line in lines)
    return [
        first if not others else f"{first} (and {len(others)} more that differ in their numbers only)"
        for first, *others in alike.values()
    ]


def _print_few(console: Console, lines: Sequence[str]) -> None:
    """The first of many lines."""
    for line in lines[:_MOST_LINES]:
        print_line(f"  {line}", console)
    if len(lines) > _MOST_LINES:
        console.print(f"  ... and {len(lines) - _MOST_LINES} more like these; the report has them all")


def _title(section: Section, every: Sequence[Section]) -> str:
    """With the name of the test where another test has such a table as well."""
    title = section.table.title
    several = len({each.test for each in every if each.table.title == title}) > 1
    return f"{section.test}: {title}" if several else title


def _print_section(console: Console, section: Section, title: str) -> None:
    """The table of a method that brings its own, as in the report; rows that sum others up stand for them."""
    rows = section.brief
    if not rows:
        count = len(section.rows)
        said = f"{count} rows are" if count > 1 else "1 row is"
        console.print(f"[dim italic]{escape(title)}: {said} in the report[/]", soft_wrap=True)
        return
    columns = [
        ShownColumn(
            escape_texts(
                *_head_lines(_full_head(column)),
                *([f"[{column.unit}]"] if column.unit else []),
            ),
            escape_texts(*(row.cells[number] for row in rows)),
            rank=0 if number == 0 or column.is_main else 2,
        )
        for number, column in enumerate(section.table.columns)
    ]
    verdicts = tuple(_verdict(row.result.verdict) for row in rows)
    columns.append(ShownColumn(("verdict",), verdicts, rank=0, right=False))
    basis = _basis_of(section)
    print_fitted(console, columns, title=escape(title), caption=escape(basis))
    if len(rows) < len(section.rows):
        console.print(f"  the report has all {len(section.rows)} results of which these are the main ones")
    _print_few(console, list(map(str, section.notes)))


def _full_head(column: Column) -> str:
    """With the heading that stands above it in the report."""
    return f"{column.group}: {column.head[:1].lower()}{column.head[1:]}" if column.group else column.head


def _head_lines(head: str) -> list[str]:
    """A heading of many words on two lines."""
    words = head.split(" ")
    half = len(words) // 2
    return [head] if len(words) < 3 else [" ".join(words[:half]), " ".join(words[half:])]


def _grid_table(section: Section, title: str, grids: Sequence[GridTable]) -> Table:
    """Loads down, what they were measured with across; a star where a cell rests on a disturbed trial.

    Several grids with the same headings are one table, with the title of each in front of its rows.
    """
    grid, several = grids[0], len(grids) > 1
    title = f"{title}, {grid.title}" if grid.title and not several else title
    cell = section.table.grid.cell if section.table.grid else None
    what = "" if cell is None or (cell.head == section.table.title and not grid.title) else f": {cell.head.lower()}"
    unit = what + (f" [{cell.unit}]" if cell and cell.unit else "")
    table = Table(header_style="bold", title=escape(f"{title}{unit}"), title_justify="left", title_style="bold")
    table.caption, table.caption_justify = escape(_basis_of(section)), "left"
    if several:
        table.add_column("", overflow="fold")
    table.add_column(escape(grid.corner), justify="right")
    for heads in zip(*grid.heads, strict=True):
        table.add_column(escape("\n".join(heads)), justify="right")
    for one in grids:
        for number, (head, crossings) in enumerate(one.rows):
            before = (escape(one.title or "") if number == 0 else "",) if several else ()
            is_last = several and number == len(one.rows) - 1
            table.add_row(*before, escape(head), *(_crossing(each) for each in crossings), end_section=is_last)
    return table


def _ways(figures: PortFigures) -> str:
    """All ways together, and the best and the worst of them."""
    both = figures.combined
    shares = [way.loss_ratio for way in figures.ways]
    least, most = (format_ratio(loss) for loss in (min(shares), max(shares)))
    each = least if least == most else f"{least.removesuffix(' %')} to {most}"
    return (
        f"{len(figures.ways)} ways, sum of ports {format_rate(both.received_frames_per_s)} of "
        f"{format_rate(both.offered_frames_per_s)}, loss {format_ratio(both.loss_ratio)}, on each way {each} "
        f"(trial {figures.trial})"
    )


def _basis_of(section: Section) -> str:
    return _rates_are(basis_words(section.scope)) if section.table.has_basis else ""


def _rates_are(basis: str) -> str:
    """Below a table: what its rates are of."""
    return f"Rates are {basis}"


def _crossing(crossing: Crossing | None) -> str:
    if crossing is None:
        return "-"
    verdict = crossing.result.verdict
    star = "" if verdict.is_reliable else f" [{_STYLES[verdict]}]*[/]"
    return f"{escape(crossing.text)}{star}"


def _verdict(verdict: ResultVerdict) -> str:
    return f"[{_STYLES[verdict]}]{verdict.value}[/]"


_RANKS: Final = {True: 0, False: 2}


def overview_columns(joined: BySize, verdict_words: Callable[[ResultVerdict], str]) -> list[ShownColumn]:
    """The columns of the joined table; main ones have room first."""
    points = joined.points
    shown = [ShownColumn(escape_texts("frame", "[bytes]"), escape_texts(*(point.size for point in points)), rank=0)]
    if joined.compares:
        names = escape_texts(*(point.configuration for point in points))
        shown.insert(0, ShownColumn(escape_texts("", "configuration"), names, rank=0, right=False))
    shown += map(_column, joined.columns)
    verdicts = tuple(verdict_words(point.verdict) for point in points)
    return [*shown, ShownColumn(escape_texts("", "verdict"), verdicts, rank=0, right=False)]


def _column(shown: SizeColumn) -> ShownColumn:
    column = shown.column
    cells = iter(texts(column, shown.known))
    unit = f"[{column.unit}]" if column.unit else ""
    name = column.name or column.head
    words = uncapitalise(name).split(" ")
    head = (" ".join(words[: len(words) // 2]), " ".join((*words[len(words) // 2 :], unit)).strip())
    rank = 4 if column.is_minor else _RANKS[column.is_main]
    return ShownColumn(
        escape_texts(*head),
        escape_texts(*(UNKNOWN if result is None else next(cells) for result in shown.results)),
        rank,
        right=column.form != "text",
    )
