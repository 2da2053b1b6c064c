"""The sections of a study of film frames: overview chart, streams sustained, sums by run, and every instance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from nicbench.report.document.blocks import Block, Cell, Figure, FoldedBlocks, Group, Panel, Row, TableLook
from nicbench.report.document.inlines import (
    BREAK,
    Part,
    breakable,
    capitalise,
    inlines,
    mark,
    set_tone,
    small,
    strong,
    superscript,
)
from nicbench.report.document.paper import drawing
from nicbench.report.document.tables import (
    NOTHING,
    caption,
    cell,
    head,
    heading,
    heads,
    name,
    remarks,
    row,
    table,
    word_heads,
    words,
)
from nicbench.report.drawing.figures import Figures
from nicbench.report.editors import tables
from nicbench.report.editors.dots import dot_figures
from nicbench.report.editors.overview import overview_caption, overview_chart, sharing_rows
from nicbench.report.editors.study import OneWay, Study, directory_rows
from nicbench.report.editors.words import target_words
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN, share, whole
from nicbench.report.sections.opening import foreign
from nicbench.report.study.findings import place_of_study

_PRINTED_INSTANCES = 100
_BROAD = 14
"""A table with more columns than this has smaller type."""


def studies(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields the sections of each study in the report."""
    yield from study_openings(report, figures)
    yield from study_details(report, figures)


def study_openings(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields the answer of each study: a chart for each direction, and how many instances were sustained."""
    for study in report.studies:
        of_test = f": {study.test}" if len(report.studies) > 1 else ""
        whose = f"{study.test}: " if of_test else ""
        draw = partial(overview_chart, compares=study.compares)
        drawn = [
            figures.figure(
                draw,
                way,
                "Sum of all instances by their number",
                inlines(foreign(report), f" {whose}{overview_caption(way)}"),
            )
            for way in study.ways
        ]
        if shown := tuple(figure for figure in drawn if figure):
            yield Group(shown, "overview")
        yield from _sustained(study, report, of_test)


def study_details(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields where the frames of each study were, and its runs and instances."""
    several = len(report.studies) > 1
    for study in report.studies:
        yield from _directories(study, f": {study.test}" if several else "")
        for way in study.ways:
            yield from _way(study, way, report, figures, f" ({study.test})" if several else "")


def _sustained(study: Study, report: Report, of_test: str) -> Iterator[Block]:
    rows = tables.sustained_rows(study)
    if not rows:
        return
    targets = "; ".join(
        f"{target_words(target)} each, met from {share(1 - target.tolerance_ratio)} of it" for target in study.targets
    )
    assumed = " (the file names no target; this is the usual one)" if study.assumes_target else ""
    directed = bool(rows[0].direction)
    yield heading(2, f"Streams sustained{of_test}", id=place_of_study(study).id)
    yield caption(
        foreign(report),
        " An instance stands for one editor or recorder. The number is the largest number of instances that met the "
        f"target: {targets}{assumed}. “In every run” and “in the median run” go by the sum of the instances, “by every "
        "instance” by each of them in every run. “≥”: no more were tried.",
    )
    yield table(
        (
            heads(
                *(["Direction"] if directed else []),
                *(["Configuration"] if study.compares else []),
                *("In every run", "In the median run", "By every instance", "Instances tried", "Runs of each"),
            ),
        ),
        (
            (
                *((name(each.direction),) if each.direction else ()),
                *((name(each.configuration),) if study.compares else ()),
                cell(strong(each.in_every_run)),
                cell(each.in_median_run),
                cell(each.by_every_instance),
                cell(each.tried, tone="quiet"),
                cell(each.runs, tone="quiet"),
            )
            for each in rows
        ),
        "result",
    )
    if any(each.by_every_instance == UNKNOWN for each in rows):
        yield caption("–: not known, because of some runs only the sum of the instances is.")


def _directories(study: Study, of_test: str) -> Iterator[Block]:
    rows = directory_rows(study)
    if not rows:
        return
    yield heading(2, f"Directories{of_test}")
    yield caption(
        "Where the frames of each instance were, as its client had it mounted in the rounds: type of the file system "
        "and its source. What is local by its type goes over no network, unless its block device does."
    )
    yield table(
        (
            (
                *heads(*(["Configuration"] if study.compares else []), "Instance"),
                *word_heads("Client", "Directory", "File system", "Kind"),
            ),
        ),
        (
            (
                *(
                    (name(each.configuration), cell(str(each.instance)))
                    if study.compares
                    else (name(str(each.instance)),)
                ),
                words(each.client),
                words(breakable(each.directory)),
                words(breakable(each.file_system)),
                words(each.kind),
            )
            for each in rows
        ),
    )


def _way(study: Study, way: OneWay, report: Report, figures: Figures, of_test: str) -> Iterator[Block]:
    """Yields the tables of one direction: reading, writing, or the only one there is."""

    def doing(text: str) -> str:
        return f"{way.doing}: {text[:1].lower()}{text[1:]}" if way.doing else text

    yield heading(2, f"{doing('Sum')} of all instances, run by run{of_test}")
    yield caption(foreign(report), *_about_sums(study, way))
    yield Group(tuple(_sums(study, each) for each in tables.sum_tables(way)), "besides")
    if found := tables.measures(way):
        yield heading(3, f"{doing('What')} the runs come to")
        yield caption(foreign(report), " By the number of instances at once, over all runs.", *_about_measures(found))
        yield _measures(study, way, found)
    yield from _instances(study, way, report, figures, doing)


def _about_sums(study: Study, way: OneWay) -> Iterator[Part]:
    yield " Frames/s (fps), by the number of instances at once. "
    if way.targets:
        yield strong("Bold")
        yield ": the target was met; "
        yield set_tone("dotted", "missed")
        yield ": it was missed. Target is that of all instances together. "
    if way.has_several_runs:
        yield "Average and median are over the runs."
    if study.is_imported:
        sums = ", and so are the sums of the instances" if way.has_instances else ""
        yield f" What stands below the runs is computed by nicbench from the figures of the source{sums}."


def _about_measures(found: Sequence[tables.Measure]) -> Iterator[Part]:
    if any(each.head.startswith("Fairness") for each in found):
        yield " Fairness is Jain’s index: 1 where all instances had the same."
    if any("MB/s" in each.head for each in found):
        yield from (" MB/s are 10", superscript("6"), " bytes.")


def _sums(study: Study, shown: tables.SumTable) -> Block:
    over = ((NOTHING, *(head(each, columns=columns) for each, columns in shown.heads)),) if study.compares else ()
    titles = (
        head("Run"),
        *(
            replace(head(str(count)), look="first" if first else "")
            for (_, count), first in zip(shown.columns, shown.firsts, strict=True)
        ),
    )
    look: TableLook = "broad" if len(shown.columns) > _BROAD else "sums"
    return table((*over, titles), (_row(each, shown.firsts) for each in shown.rows), look)


def _row(each: tables.Row, firsts: Sequence[bool] | None = None, title: str | None = None) -> Row:
    begins = firsts or (False,) * len(each.cells)
    cells = (_cell(one, is_first=first) for one, first in zip(each.cells, begins, strict=True))
    return row(name(each.head if title is None else title), *cells, look="made" if each.is_sum else "")


def _cell(one: tables.Cell, *, is_first: bool = False) -> Cell:
    beneath = (BREAK, small(one.beneath)) if one.beneath else ()
    text = strong(one.text) if one.met else one.text
    told = inlines(text, mark(one.result) if one.result else None, *beneath)
    return Cell(told, tone="missed" if one.met is False else "", look="first" if is_first else "")


def _measures(study: Study, way: OneWay, found: Sequence[tables.Measure]) -> Block:
    def rows() -> Iterator[Row]:
        for each in found:
            if study.compares:
                label = Cell(inlines(each.head), len(way.counts) + 1, is_head=True, words=True)
                yield replace(row(label, look="about"), begins_group=True)
            for number, one in enumerate(each.rows):
                made = _row(one, title=None if study.compares else each.head)
                yield replace(made, begins_group=not study.compares and number == 0)

    return table((heads("Instances", *map(str, way.counts)),), rows(), "measures")


def _instances(
    study: Study, way: OneWay, report: Report, figures: Figures, doing: Callable[[str], str]
) -> Iterator[Block]:
    dots = dot_figures(study, way, figures.numbered)
    if not dots:
        return
    dashed = " Dashed: the target. Hollow: an instance that missed it." if way.targets else ""
    yield heading(3, f"{doing('Every')} instance of every run")
    yield caption(
        foreign(report),
        " Each dot is one instance in one run; all charts have one scale. Higher and more consistent is better."
        f"{dashed}",
    )
    panels = (
        Panel(
            drawing(str(figure.drawing)),
            inlines(strong(_counted(figure.instances))),
            inlines(capitalise(figure.met)),
        )
        for figure in dots
    )
    yield Figure(tuple(panels), look="multiples")
    yield from _sharing(study, way, doing)
    shown = tables.instance_tables(way)
    parts: list[Block] = [
        caption(
            "Frames/s (fps). Std. Deviation is that of the population: the instances of the run are all there were."
        )
    ]
    for each in shown:
        parts += _instance_table(study, way, each)
    summary = inlines(f"The rates behind these charts: {len(shown)} tables")
    many = sum(each.instances for each in shown) > _PRINTED_INSTANCES
    yield FoldedBlocks(summary, tuple(parts), is_for_screens=many)


def _instance_table(study: Study, way: OneWay, shown: tables.InstanceTable) -> Iterator[Block]:
    before = f"{way.doing}, " if way.doing else ""
    whose = f", {shown.configuration}" if study.compares else ""
    yield heading(4, f"{before}{_counted(shown.instances)}{whose}")
    corner = head("Run") if len(shown.runs) > 1 else NOTHING
    yield table(
        ((corner, *heads(*map(str, shown.runs))),),
        (_row(each, title=each.head if each.is_sum else f"Instance {each.head}") for each in shown.rows),
        "sums",
    )
    yield from remarks(shown.limits, "", "things to say of these runs")


def _counted(instances: int) -> str:
    return f"{instances} {'instance' if instances == 1 else 'instances'}"


def _sharing(study: Study, way: OneWay, doing: Callable[[str], str]) -> Iterator[Block]:
    rows = sharing_rows(way)
    if not rows:
        return
    yield heading(3, f"{doing('Instances')} that shared a port of the bond")
    yield caption(
        "A connection uses one port of a bond: instances that meet on a port share its rate. Of all runs in which the "
        "port of every instance is known."
    )
    yield table(
        (
            heads(
                "Instances\non the port",
                *(["Configuration"] if study.compares else []),
                *("Median\n[fps]", "Least\n[fps]", "Greatest\n[fps]"),
                *(["Met the target\n[%]"] if way.targets else []),
                "So many\nin all runs",
            ),
        ),
        (
            (
                name(str(each.together)),
                *((cell(each.configuration),) if study.compares else ()),
                cell(strong(each.median)),
                cell(each.least),
                cell(each.greatest),
                *((cell(each.met),) if way.targets else ()),
                cell(whole(each.instances), tone="quiet"),
            )
            for each in rows
        ),
        "result",
    )
