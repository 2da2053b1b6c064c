"""The first screen below the answer: one chart, one table of all results, where frames were lost, and the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from nicbench.core.result import Bounded, Result
from nicbench.core.units import and_list, count_of
from nicbench.report.cells import texts, value_of
from nicbench.report.document.blocks import Block, Cell, Group, Tone
from nicbench.report.document.making import (
    BREAK,
    NOTHING,
    Part,
    caption,
    cell,
    file_link,
    head,
    inlines,
    join_inlines,
    link,
    mark,
    median_and_runs,
    name,
    paragraph,
    small,
    strong,
    table,
    words,
)
from nicbench.report.drawing.figures import Figures
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN, share, whole
from nicbench.report.overview import BySize, Figure, PointRow, SizeColumn
from nicbench.report.sections.editors import study_openings
from nicbench.report.sections.opening import foreign
from nicbench.report.sections.trials import count_lost, lost_places
from nicbench.report.wording import capitalise

_MOST_ROWS: Final = 16
"""The most rows of the table; of more configurations than that, it has only the first frame size."""
_SHARE: Final = "_percent_of_line_rate"
_RATES: Final = frozenset({"span", "rate"})
"""The aspects of a rate that a search found, which the table names by its goal."""
_LEAST_SHARE: Final = 1e-5
"""The least share of the lost frames that is written as a number."""
_MOST_PLACES: Final = 3
"""The most places of loss that the line about them names."""


def overview(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields the lead chart next to the table of all results, then where frames were lost, and the files of the run."""
    lead, shown = figures.lead, report.overview
    blocks: list[Block] = []
    if lead is not None:
        blocks.append(replace(lead, caption=inlines(foreign(report), " ", lead.caption)))
    if shown.by_size is not None:
        blocks.append(size_table(shown.by_size))
    yield from study_openings(report, figures)
    if shown.by_size is None and shown.points:
        yield point_table(shown.points)
    if blocks:
        yield Group(tuple(blocks), "overview")
    if shown.by_size is not None and shown.points:
        yield point_table(shown.points)
    yield from basis_line(shown.by_size)
    yield from loss_line(report, link("Loss ledger", "#ledger"))
    yield from _files(report)


def basis_line(shown: BySize | None) -> Iterator[Block]:
    """Yields what the rates of the table are of, and how many rows it leaves out."""
    if shown is not None:
        left_out = len(shown.points) - len(_places_shown(shown))
        more = f" {left_out} more rows are below." if left_out else ""
        beneath = ["its interval"] if any(map(_has_intervals, shown.columns)) else []
        told = [column for columns in _beneath(_main_columns(shown)).values() for column in columns]
        beneath += ["its share of the line rate"] if any(each.column.aspect != "limit" for each in told) else []
        beneath += ["what limited it (by)"] if any(each.column.aspect == "limit" for each in told) else []
        within = f"; beneath a rate stands {and_list(beneath)}" if beneath else ""
        yield caption(f"Rates are {shown.basis}{within}.{more}")


def _has_intervals(shown: SizeColumn) -> bool:
    column = shown.column.replace(aspect="interval")
    return shown.column.aspect in _RATES and any(text != UNKNOWN for text in texts(column, shown.known))


def _places_shown(shown: BySize) -> list[int]:
    """Returns the rows that there is room for."""
    places = list(range(len(shown.points)))
    if len(places) <= _MOST_ROWS:
        return places
    return [at for at in places if shown.points[at].size == shown.points[0].size][:_MOST_ROWS]


def size_table(shown: BySize, *, has_minor: bool = False) -> Block:
    """Returns the table with a row for each frame size, each rate with the interval that holds it beneath it.

    The share of the line rate and the limit of each of several rates stand beneath it, too.
    """
    places = _places_shown(shown)
    main = list(shown.columns) if has_minor else _main_columns(shown)
    beneath = {} if has_minor else _beneath(main)
    told = {id(column) for columns in beneath.values() for column in columns}
    main = [column for column in main if id(column) not in told]
    columns = [_cells(column, beneath.get(column.column.value, ())) for column in main]
    groups: list[list[str]] = []
    for column in main:
        if groups and groups[-1][0] == column.title:
            groups[-1].append("")
        else:
            groups.append([column.title])
    over = [head(group[0], columns=len(group)) for group in groups]
    titles = [_head(column) for column in main]
    of_names = ((NOTHING,), (head("Configuration", words=True),)) if shown.compares else ((), ())

    def row(at: int) -> Iterator[Cell]:
        point = shown.points[at]
        worst = max(point.of.values(), key=lambda result: result.verdict is point.verdict)
        yield name(point.size, mark(worst))
        if shown.compares:
            yield words(point.configuration)
        yield from (column[at] for column in columns)

    return table(
        ((NOTHING, *of_names[0], *over), (head("Frame", "bytes"), *of_names[1], *titles)),
        (row(at) for at in places),
        "result",
    )


def _beneath(main: Sequence[SizeColumn]) -> dict[str, tuple[SizeColumn, ...]]:
    """Returns what is known of each rate, its share of the line rate and its limit, where there is more than one rate:
    a first screen has no room for the columns of both. Of limits that are alike one column stays.
    """
    rates = [column.column.value for column in main if column.column.aspect in _RATES]
    found: dict[str, tuple[SizeColumn, ...]] = {}
    limits = [column for column in main if column.column.aspect == "limit"]
    for column in main if len(rates) > 1 else ():
        is_told = column.column.value.endswith(_SHARE) or (len(limits) > 1 and column.column.aspect == "limit")
        if is_told:
            key = column.column.value.partition("_")[0]
            rate = next((rate for rate in rates if rate.partition("_")[0] == key), rates[0])
            found[rate] = (*found.get(rate, ()), column)
    return found


def _main_columns(shown: BySize) -> list[SizeColumn]:
    """Returns the columns without minor ones; of the limits of several rates that are alike only the last."""
    main: list[SizeColumn] = []
    for column in shown.columns:
        is_limit = column.column.aspect == "limit"
        before = next((each for each in main if is_limit and each.column.aspect == "limit"), None)
        if before is not None and texts(before.column, before.known) == texts(column.column, column.known):
            main.remove(before)
        is_silent = is_limit and all(text == UNKNOWN for text in texts(column.column, column.known))
        if not column.column.is_minor and not is_silent:
            main.append(column)
    return main


def _head(shown: SizeColumn) -> Cell:
    column = shown.column
    text = column.name if column.name and column.aspect in _RATES else column.head
    return head(text if text[1:2].isdigit() else capitalise(text), column.unit, words=column.form == "text")


def _cells(shown: SizeColumn, beneath: Sequence[SizeColumn]) -> list[Cell]:
    """Returns the cells of a column; a rate is written as such, with its interval and the columns ``beneath`` it."""
    column = shown.column
    is_rate = column.aspect in _RATES
    main = texts(column.replace(aspect="rate") if is_rate else column, shown.known)
    below = [[UNKNOWN] * len(main)]
    if is_rate:
        within = texts(column.replace(aspect="interval"), shown.known)
        below = [within, *(_told(each, shown.known) for each in beneath)]
    made = iter(zip(main, *below, strict=True))
    cells = []
    for result in shown.results:
        if result is None:
            cells.append(words(UNKNOWN) if column.form == "text" else cell(UNKNOWN))
            continue
        text, interval, *others = next(made)
        is_searched = isinstance(value_of(result, column.value), Bounded) and interval != UNKNOWN
        is_said = text.startswith(("≥", "line rate")) and interval.startswith("at least")
        tone: Tone = "quiet" if column.is_minor else ""
        told = [interval] if is_searched and not is_said else []
        told += [other for other in others if other != UNKNOWN]
        if column.form == "text":
            cells.append(words(text))
        else:
            small_print = [part for each in told for part in (BREAK, small(each))]
            cells.append(cell(*median_and_runs(text, is_main=column.is_main), *small_print, tone=tone))
    return cells


def _told(shown: SizeColumn, results: Sequence[Result]) -> list[str]:
    """Returns a share or a limit of a rate as it stands beneath the rate."""
    found = texts(shown.column, results)
    form = "by {}" if shown.column.aspect == "limit" else "{} % of line"
    return [text if text == UNKNOWN else form.format(text) for text in found]


def point_table(rows: tuple[PointRow, ...]) -> Block:
    """Returns the table with a row for each point of tests without frame sizes."""

    def of_row(at: int, row: PointRow) -> Iterator[Cell]:
        is_first = at == 0 or rows[at - 1].test != row.test
        doubtful = next((mark(result) for result in row.results if mark(result)), ())
        yield name(row.test if is_first else "", words=True)
        yield words(row.point, doubtful)
        told = [part for place, figure in enumerate(row.figures) for part in _figure(figure, place)]
        yield words(*(told or [UNKNOWN]))

    return table(
        ((head("Test", words=True), head("Point", words=True), head("Result", words=True)),),
        (of_row(at, row) for at, row in enumerate(rows)),
        "result",
    )


def _figure(figure: Figure, place: int) -> tuple[Part, ...]:
    return ("; " if place else "", f"{figure.name} ", strong(figure.text), small(figure.range) if figure.range else "")


def loss_line(report: Report, where: Part = None) -> Iterator[Block]:
    """Yields one line about the loss ledger: how many frames were lost, where, and how many no counter explains; then
    ``where`` the ledger is.
    """
    lost, unexplained = count_lost(report.ledger)
    if not lost:
        return
    frames = {place: sum(loss.frames for loss in losses) for place, losses in lost_places(report.ledger).items()}
    places = sorted(((place, count) for place, count in frames.items() if count), key=lambda item: -item[1])
    told = [f"{_part(count, lost)} at {place}" for place, count in places[:_MOST_PLACES]]
    if len(places) > _MOST_PLACES:
        more = len(places) - _MOST_PLACES
        told.append(count_of(more, "more place"))
    if told:
        told.append(f"{_part(unexplained, lost) if unexplained else 'none'} unexplained")
    trials = count_of(len(report.ledger), "trial")
    yield paragraph(
        strong("Where frames were lost: "),
        f"{whole(lost)} frames in {trials}: {', '.join(told) or 'no counter on the path accounts for them'}. ",
        where,
    )


def _part(frames: float, lost: float) -> str:
    ratio = frames / lost
    return share(ratio) if ratio >= _LEAST_SHARE else f"under {share(_LEAST_SHARE)}"


def _files(report: Report) -> Iterator[Block]:
    """Yields links to the files of the run folder, in which the page lies, too."""
    if report.imported:
        files = ["summary.json", "import.json", report.imported.source.file]
    elif report.rounds:
        files = ["summary.json", "rounds.parquet", "bench.yaml"]
    else:
        files = ["summary.json", "trials.parquet", "latency.hlog", "bench.yaml"]
    links = join_inlines(" · ", map(file_link, files))
    yield caption("Files in the run folder, where this page lies (a copy sent alone lacks them): ", *links, ".")


__all__ = ["basis_line", "loss_line", "overview", "point_table", "size_table"]
