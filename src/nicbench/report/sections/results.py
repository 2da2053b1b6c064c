"""The results of single runs: tables of methods, long tails, ports, and values of methods without a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from nicbench.core.reading import PassedFrames, PortFigures, PortFrames
from nicbench.core.result import Result
from nicbench.core.table import Column
from nicbench.core.units import format_bits_per_s, format_digits
from nicbench.report.document.blocks import Block, Cell, FoldedBlocks, Tone
from nicbench.report.document.blocks import Row as BodyRow
from nicbench.report.document.making import (
    BREAK,
    NOTHING,
    caption,
    cell,
    head,
    heading,
    heads,
    inlines,
    mark,
    median_and_runs,
    name,
    remarks,
    row,
    small,
    strong,
    table,
    word_heads,
    words,
)
from nicbench.report.drawing.figures import Figures
from nicbench.report.drawing.plots import MOST_SLOWEST, bins_chart, slowest_chart
from nicbench.report.facts import label_of, plain
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN, basis_words, microseconds, mpps, percent, whole
from nicbench.report.section import (
    Crossing,
    Further,
    GridTable,
    Row,
    RowNote,
    Section,
    heads_above,
    names_line_rate,
    one_above_the_other,
)
from nicbench.report.sections.opening import foreign, table_name
from nicbench.report.study import place_of_section
from nicbench.report.tails import SLOWEST_OF, PortsTable, TailTable
from nicbench.report.timing import ClockRow, Timing
from nicbench.report.wording import capitalise
from nicbench.stats.intervals import Chance


def runs(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields every test of the run, or of each run of each configuration."""
    for section in report.own_sections:
        yield from section_blocks(section, report, figures, is_drawn=figures.is_alone)
    for number, tail in enumerate(report.own_tails):
        yield from long_tail(tail, report, figures, is_first=number == 0, is_drawn=figures.is_alone)


def section_blocks(section: Section, report: Report, figures: Figures, *, is_drawn: bool = True) -> Iterator[Block]:
    """Yields the section of one method: figures, grids, the table of every row, and the notes below it."""
    kind = section.table.title
    alike = {each.test for each in report.sections if each.table.title == kind}
    title = table_name(kind, section.test, section.configuration, several=len(alike) > 1)
    yield heading(2, title, id=place_of_section(section).id)
    if section.says_caption:
        yield caption(foreign(report), " ", " ".join(_caption(section, report)))
    for figure in figures.of_section(section) if is_drawn else ():
        if figure is not figures.lead:
            yield replace(figure, caption=inlines(foreign(report), " ", figure.caption))
    for grids in one_above_the_other(section.grids):
        if len(grids) == 1 and grids[0].title:
            yield heading(3, _title_of(grids[0].title, section))
        yield _grid(grids, section)
    if section.is_abridged and section.brief:
        yield _rows(section.table.columns, section.brief)
    every = _rows(section.table.columns, section.rows)
    if section.grids or section.is_abridged:
        points = section.grids and not report.rounds and not report.imported
        about = "Every point with its frames" if points else "All rows"
        yield FoldedBlocks(inlines(f"{about}: {len(section.rows)}"), (every,), is_detail=True)
    else:
        yield every
    yield from notes(section.notes)
    yield from remarks(section.doubts, "warn", "results are disturbed or incomplete, for these reasons")
    yield from search_remarks(section.search_notes)
    for each in section.rows:
        for near in each.result.near_tester_limit or ():
            about = f" {each.cells[0]} {section.table.columns[0].unit or ''}: {near.text}."
            yield caption(strong("Near the tester’s own limit:"), about)
    if section.timing:
        yield from _timing(section.timing)
    for further in section.further:
        yield from _further(further, section.scope)


def search_remarks(notes: Sequence[str]) -> Iterator[Block]:
    """Yields what the searches note."""
    yield from remarks(notes, "", "notes on the searches")


def notes(notes: Sequence[RowNote]) -> Iterator[Block]:
    """Yields the notes; many of one kind are folded into one line, which names the kind and their number."""
    for kind, members in groupby(notes, key=lambda note: note.about):
        captions = tuple(caption(f"{note}.") for note in members)
        if len(captions) > _MOST_NOTES:
            yield FoldedBlocks(inlines(f"{kind}: {len(captions)} notes"), captions, "remarks")
        else:
            yield from captions


def _caption(section: Section, report: Report) -> Iterator[str]:
    yield section.table.caption
    if section.table.has_basis:
        yield f"{section.table.basis_of} are {basis_words(section.scope)}."
    if section.timing:
        yield from section.timing.sentences
    if report.plan and report.plan.link_is_nominal and names_line_rate(section):
        claimed = format_bits_per_s(report.plan.link_bits_per_s or 0)
        yield f"The line rate is nominal: {claimed} is what the link reports, not what it can carry."


def _further(further: Further, scope: str) -> Iterator[Block]:
    """Yields a further table of the same results with other columns."""
    yield heading(3, further.table.title)
    yield caption(f"{further.table.caption} Rates are {basis_words(scope)}.".strip())
    yield _rows(further.table.columns, further.rows)


_MOST_NOTES: Final = 4
"""The most notes of one kind that are shown without being asked for."""
_NAMED: Final = frozenset({"port", "place", "client", "host"})
"""Values that are names, which are written as the bench file writes them."""


def _title_of(text: str, section: Section) -> str:
    """Returns the title of a grid: words begin with a capital letter, names are as they were written."""
    each = section.table.grid.each if section.table.grid else None
    return text if each is not None and each.value in _NAMED else capitalise(text)


def _grid(grids: Sequence[GridTable], section: Section) -> Block:
    """Returns one table; of several grids, one above the other, each below its title."""
    grid = grids[0]
    levels = len(grid.heads)
    above = (
        (
            head(grid.corner) if level == levels - 1 else NOTHING,
            *(head(text, columns=columns) for text, columns in grid.spans(level)),
        )
        for level in range(levels)
    )

    def rows() -> Iterator[BodyRow]:
        for one in grids:
            if len(grids) > 1:
                title = inlines(_title_of(one.title or "", section))
                label = Cell(title, len(grid.heads[0]) + 1, is_head=True, words=True)
                yield replace(row(label, look="about"), begins_group=True)
            yield from (row(name(label), *map(_crossing, crossings)) for label, crossings in one.rows)

    return table(above, rows(), "result")


def _crossing(crossing: Crossing | None) -> Cell:
    return cell(median_and_runs(crossing.text), mark(crossing.result)) if crossing else cell(UNKNOWN)


def _rows(columns: Sequence[Column], rows: Iterable[Row]) -> Block:
    return result_table(columns, ((row.cells, row.result) for row in rows), has_words=False)


def result_table(
    columns: Sequence[Column], rows: Iterable[tuple[Sequence[str], Result]], *, has_words: bool = True
) -> Block:
    """Returns a table with the columns of a method, group headings above them; the first column names the row.

    With ``has_words``, columns of text are left-aligned.
    """
    of_words = [has_words and column.form == "text" and at > 0 for at, column in enumerate(columns)]

    def of_row(cells: Sequence[str], result: Result) -> Iterator[Cell]:
        for at, (text, column) in enumerate(zip(cells, columns, strict=True)):
            if at == 0:
                yield name(text, mark(result))
            elif of_words[at] and not column.is_main:
                yield words(text)
            else:
                tone: Tone = "quiet" if column.is_minor and not column.is_main else ""
                yield cell(median_and_runs(text, is_main=column.is_main), tone=tone)

    titles = tuple(head(column.head, column.unit, words=left) for column, left in zip(columns, of_words, strict=True))
    groups = [head(text, columns=span) if text else NOTHING for text, span in heads_above(columns)]
    above = (groups, titles) if any(column.group for column in columns) else (titles,)
    return table(above, (of_row(cells, result) for cells, result in rows), "result")


def _timing(timing: Timing) -> Iterator[Block]:
    """Yields the problems of the time stamps, and the clocks that made them."""
    yield from (caption(strong("Time stamps:"), f" {text}.") for text in timing.warnings)
    if not timing.clocks:
        return
    titles = (
        head("Frame", "bytes"),
        *heads("Port", "Source", "Clock"),
        head("Step", "ns"),
        head("Within", "ns"),
        *heads("Readings", "Outliers", "Set", "Stamped\nframes", "From stamp to wire,\nmin, mean, max [µs]"),
    )
    about = caption(
        "Each is read once a millisecond beside the TSC; a line through the readings of half a second gives each stamp "
        "its TSC. “Within” is the greatest distance of a reading from the line before it was part of it, and half the "
        "time that the reading took."
    )
    clocks = table((titles,), map(_clock, timing.clocks))
    yield FoldedBlocks(inlines("The clocks that stamped these frames"), (about, clocks), is_detail=True)


def _clock(clock: ClockRow) -> Iterator[Cell]:
    stamps, delay = clock.stamps, clock.stamps.transmit_delay
    yield name(clock.size)
    yield words(clock.port)
    yield words(stamps.source)
    yield cell(f"{format_digits(stamps.clock_hz / 1e6, 9)} MHz" if stamps.clock_hz else "unknown")
    yield cell("unknown" if stamps.resolution_ns is None else format_digits(stamps.resolution_ns))
    yield cell("unknown" if stamps.uncertainty_ns is None else f"± {format_digits(stamps.uncertainty_ns)}")
    yield from (cell(whole(count)) for count in (stamps.readings, stamps.outliers, stamps.steps, stamps.stamped))
    if delay is None:
        yield cell(UNKNOWN)
    elif delay.count:
        took = ", ".join(map(microseconds, (delay.minimum_ns, delay.mean_ns, delay.maximum_ns)))
        yield cell(f"{took} ({whole(delay.count)} frames)")
    else:
        yield cell("not reported")


def long_tail(
    tail: TailTable, report: Report, figures: Figures, *, is_first: bool, is_drawn: bool = True, runs: int = 1
) -> Iterator[Block]:
    """Yields the long tail of one latency test at one load, with several ``runs`` side by side."""
    messages = tail.what == "messages"
    several = len({each.test for each in report.tails}) > 1
    yield heading(2, f"Long tail at {tail.load}{f': {tail.test}' if several else ''}")
    if report.imported:
        told = f"{capitalise(tail.what)} by their latency; lost frames have no latency and are in no bin."
        yield caption(foreign(report), " ", told)
    elif messages:
        yield caption(
            "Messages by their latency: one way, the round trip, or half of it, as the table of "
            "results says. A bound is as exact as the histogram, 0.1 %."
        )
    elif is_first:
        spread = (
            " Numbers are medians of the runs, with the lowest and the highest beneath them; bars are the medians."
            if runs > 1
            else ""
        )
        yield caption(
            f"{capitalise(tail.what)} that took longer than each bound, which is exact to 0.1 %. Lost frames have no "
            f"latency.{spread}"
        )
    figure = None
    if is_drawn:
        what = f"{capitalise(tail.what)} in each latency bin"
        below = (foreign(report), f" {what}, on a logarithmic axis; a bin without a bar is empty.")
        figure = figures.figure(bins_chart, tail, f"Long tail at {tail.load}", inlines(*below))
        if figure:
            yield figure
    corner = head("Messages" if messages else "Frame")
    if any(row.counts for row in tail.rows) if report.imported else figure is None:
        yield table(
            (
                (NOTHING, NOTHING, head(f"{tail.what}, by latency [µs]", columns=len(tail.bins))),
                (corner, head(f"{'Messages' if messages else 'Frames'}\ntimed"), *map(head, tail.bins)),
            ),
            (
                (
                    name(row.name, mark(row.result)),
                    cell(median_and_runs(row.frames), tone="quiet"),
                    *(cell(median_and_runs(text)) for text in row.bins),
                )
                for row in tail.rows
            ),
            "result",
        )
    yield table(
        (
            (NOTHING, head(f"{tail.what} outside (and their share)", columns=len(tail.bounds))),
            (corner, *_microseconds(tail)),
        ),
        (
            (
                name(row.name, mark(row.result)),
                *(cell(median_and_runs(text), BREAK, small(share)) for text, share in row.outside),
            )
            for row in tail.rows
        ),
        "result",
    )
    yield from _slowest(tail, figures, is_drawn=is_drawn)


def _slowest(tail: TailTable, figures: Figures, *, is_drawn: bool) -> Iterator[Block]:
    """Yields the chance that the slowest of several frames or messages comes within each bound."""
    if not any(chance for row in tail.rows for chances in row.slowest for chance in chances):
        return
    about = caption(
        f"Computed, not observed: the chance that the slowest of 10, 100 and 1000 {tail.plain} comes within a time, "
        "which is the share of single ones to the power of their number, as if these were independent; beneath it its "
        "95 % interval (Clopper and Pearson). “>” means that none was slower; the number is the interval's lower end."
    )
    told = f" Chance that the slowest of several {tail.plain} comes within a time; between times, the least it can be."
    figure = figures.figure(slowest_chart, tail, f"The slowest of several at {tail.load}", inlines(told))
    rows = table(
        (
            (NOTHING, NOTHING, head("chance that all come within", columns=len(tail.bounds))),
            (head("Messages" if tail.what == "messages" else "Frame"), head("Of"), *_microseconds(tail)),
        ),
        (
            (name(row.name, mark(row.result)), cell(whole(number)), *map(_chance, chances))
            for row in tail.rows
            for number, chances in zip(SLOWEST_OF, row.slowest, strict=True)
        ),
        "result",
    )
    blocks = (about, figure, rows) if figure and is_drawn else (about, rows)
    few = len(tail.rows) <= MOST_SLOWEST
    summary = inlines(f"The slowest of several {tail.plain} at {tail.load}")
    yield FoldedBlocks(summary, blocks, is_open=few, is_detail=not few)


def _microseconds(tail: TailTable) -> Iterator[Cell]:
    return (head(f"{bound} µs") for bound in tail.bounds)


def _chance(chance: Chance | None) -> Cell:
    if chance is None:
        return cell(UNKNOWN)
    lower, upper = percent(100 * chance.lower), percent(100 * chance.upper)
    if chance.value == 1.0:
        return cell(f"> {lower} %")
    return cell(f"{percent(100 * chance.value)} %", BREAK, small(f"{lower} to {upper}"))


def ports(tables: Sequence[PortsTable]) -> Iterator[Block]:
    """Yields a table of every way (ordered pair of ports) with their sum, and a table of every port."""
    for shown in tables:
        yield heading(2, f"Ports{f': {shown.test}' if len(tables) > 1 else ''}")
        traffic = f"Traffic is {shown.pattern}. " if shown.pattern else ""
        yield caption(
            f"{traffic}Each way is an ordered pair of the tester’s ports; frames of all ways were sent at once. For "
            "each point, the trial at the highest load without a failed frame, or else the one that failed least. "
            "Rates here are those of the way or the port itself, and in the row of all ways their sum; elsewhere they "
            f"are {shown.scope}. Loss of a result is that of all ways together."
        )
        for number, (point, found) in enumerate(shown.rows):
            summary = f"{point}: {len(found.ways)} ways, {len(found.ports)} ports, trial {found.trial}"
            yield FoldedBlocks(inlines(summary), (_ways(found), _ports(found)), is_open=number == 0)


def _ways(found: PortFigures) -> Block:
    columns = (
        head("Way", words=True),
        head("Offered", "Mpps"),
        head("Received", "Mpps"),
        *heads("Offered\nframes", "Received", "Lost"),
        head("Failed", "%"),
        head("Latency\nmin [µs]"),
        *(head(text, "µs") for text in ("p50", "p99", "max")),
    )
    together = name(strong(f"all, sum of {len(found.ways)} ways"), words=True)
    return table(
        (columns,),
        (
            *((name(f"{way.transmit_port} → {way.receive_port}", words=True), *_flow(way)) for way in found.ways),
            (together, *_flow(found.combined)),
        ),
        "result",
    )


def _flow(flow: PassedFrames) -> Iterator[Cell]:
    yield cell(mpps(flow.offered_frames_per_s, 4))
    yield cell(mpps(flow.received_frames_per_s, 4))
    yield from (cell(whole(count)) for count in (flow.offered_frames, flow.received_frames, flow.lost_frames))
    yield cell(percent(100 * flow.loss_ratio))
    latencies = (flow.latency_minimum_ns, flow.latency_p50_ns, flow.latency_p99_ns, flow.latency_maximum_ns)
    yield from (cell(microseconds(ns)) for ns in latencies)


def _ports(found: PortFigures) -> Block:
    columns = (
        head("Port", words=True),
        head("Offered", "Mpps"),
        head("Received", "Mpps"),
        *heads("Offered\nframes", "Offered\nfor it", "Received", "Foreign"),
    )
    return table(
        (columns,),
        (
            (
                name(port.port, words=True),
                cell(mpps(port.offered_frames_per_s, 4)),
                cell(mpps(port.received_frames_per_s, 4)),
                *(cell(whole(count)) for count in (port.offered_frames, port.expected_frames, port.received_frames)),
                cell(_foreign(port)),
            )
            for port in found.ports
        ),
        "result",
    )


def _foreign(port: PortFrames) -> str:
    misdirected = f" + {whole(port.misdirected_frames)} misdirected" if port.misdirected_frames else ""
    return f"{whole(port.foreign_frames)}{misdirected}"


def other_results(results: Sequence[Result]) -> Iterator[Block]:
    """Yields the results of methods that have no table of their own, each value by its name."""
    if results:
        yield heading(2, "Further results")
    for result in results:
        yield heading(3, result.id)
        yield table(
            ((*word_heads("Value"), head("Result")),),
            ((name(label_of(key), words=True), cell(plain(key, _bare(value)))) for key, value in result.values.items()),
        )


def _bare(value: object) -> object:
    if isinstance(value, Mapping):
        return value.get("value")
    return getattr(value, "value", value)
