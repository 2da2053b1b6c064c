"""The tables of a study: sums by run and what they amount to, streams sustained, and each instance of each run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import Final

from nicbench.core.result import Result
from nicbench.core.table import Column
from nicbench.report.cells import fill_digits, printed_digits
from nicbench.report.document.blocks import Block, Cell, Figure, FoldedBlocks, Group, Row, TableLook
from nicbench.report.document.making import (
    BREAK,
    NOTHING,
    Part,
    breakable,
    caption,
    cell,
    head,
    heading,
    heads,
    inlines,
    mark,
    name,
    remarks,
    row,
    set_tone,
    small,
    strong,
    superscript,
    table,
    word_heads,
    words,
)
from nicbench.report.drawing.figures import Figures
from nicbench.report.drawing.runs import dot_figures, overview_caption, overview_chart, sharing_rows
from nicbench.report.editors import (
    OneWay,
    Study,
    directory_rows,
    held_text,
    rate_decimals,
    rate_text,
    share_text,
    target_words,
)
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN, mebibytes, megabytes, share, whole
from nicbench.report.sections.opening import foreign
from nicbench.report.study import place_of_study
from nicbench.stats.frames import RATE, SUM, FilmRun, RunFigures, TriedPoint, trusted_number

MOST_COLUMNS: Final = 26
"""Maximum number of columns in one table of numbers; with more, each configuration has a table of its own."""


@dataclass(frozen=True, slots=True)
class RateCell:
    """A cell: ``met`` stays None without a target, ``result`` is its origin, ``beneath`` is text printed below."""

    text: str
    met: bool | None = None
    result: Result | None = None
    beneath: str | None = None


@dataclass(frozen=True, slots=True)
class RateRow:
    """A row of a table; with ``is_sum`` it is computed from the rows above it."""

    head: str
    cells: tuple[RateCell, ...]
    is_sum: bool = False


@dataclass(frozen=True, slots=True)
class SumTable:
    """The sum of each run by configuration (``heads``) and number of instances, then averages, medians and targets."""

    columns: tuple[tuple[str, int], ...]
    rows: tuple[RateRow, ...]

    @property
    def firsts(self) -> tuple[bool, ...]:
        """For each column, whether it is the first one of a configuration other than the leftmost."""
        return tuple(place > 0 and name != self.columns[place - 1][0] for place, (name, _) in enumerate(self.columns))

    @property
    def heads(self) -> tuple[tuple[str, int], ...]:
        """Each configuration and the number of columns that it spans."""
        return tuple((name, len(list(same))) for name, same in groupby(name for name, _ in self.columns))


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure over all runs other than their sums: a row per configuration, a column per number of instances."""

    head: str
    rows: tuple[RateRow, ...]


@dataclass(frozen=True, slots=True)
class SustainedRow:
    """Numbers of instances that one configuration sustained, as text; ``runs``: how many runs each number had."""

    direction: str | None
    configuration: str
    tried: str
    runs: str
    in_every_run: str
    in_median_run: str
    by_every_instance: str


@dataclass(frozen=True, slots=True)
class InstanceTable:
    """The instances of one configuration and number of instances: a column for each run, below it what limited it."""

    configuration: str
    instances: int
    runs: tuple[int, ...]
    rows: tuple[RateRow, ...]
    limits: tuple[str, ...]


def sum_tables(way: OneWay) -> tuple[SumTable, ...]:
    """Returns one table with all configurations side by side, or one for each where it would have too many columns."""
    if len(way.columns) <= MOST_COLUMNS:
        return (_sum_table(way, way.columns),)
    return tuple(
        _sum_table(way, tuple(column for column in way.columns if column[0] == name)) for name in way.configurations
    )


def measures(way: OneWay) -> tuple[Measure, ...]:
    """Returns the measures that are known: shares that met the target, dropped frames, fairness and MB/s."""
    found = (
        Measure(
            head,
            tuple(
                RateRow(name, tuple(RateCell(_words_of(way.at.get((name, count)), text)) for count in way.counts))
                for name in way.configurations
            ),
        )
        for head, text in _MEASURES.items()
        if way.has_several_runs or head != _FAIRNESS_LEAST
    )
    return tuple(each for each in found if any(cell.text != UNKNOWN for row in each.rows for cell in row.cells))


def sustained_rows(study: Study) -> tuple[SustainedRow, ...]:
    """Returns a row for each direction and configuration that has a target."""
    return tuple(
        SustainedRow(
            direction=way.direction,
            configuration=name,
            tried=_span(sorted(way.figures_over_runs(name))),
            runs=_span(sorted({over.runs for over in way.figures_over_runs(name).values()})),
            in_every_run=held_text(found.in_every_run),
            in_median_run=held_text(found.in_median_run),
            by_every_instance=held_text(found.by_every_instance),
        )
        for way in study.ways
        for name in way.configurations
        if (found := way.sustained_instances(name)) is not None
    )


def instance_tables(way: OneWay) -> tuple[InstanceTable, ...]:
    """Returns tables by number of instances, then configuration, where the rates of single instances are known."""
    return tuple(
        _instances_of(name, way.at[name, count])
        for count in way.counts
        for name in way.configurations
        if (name, count) in way.at and any(ran.instances for ran in way.at[name, count].runs)
    )


_SUM: Final = Column(value=SUM, head="Sum", unit="fps")
_RATE: Final = Column(value=RATE, head="Rate", unit="fps")


def _sum_table(way: OneWay, columns: tuple[tuple[str, int], ...]) -> SumTable:
    found = [way.at[column] for column in columns]
    decimals = rate_decimals(ran.figures.sum_frames_per_s for each in found for ran in each.runs)
    by_run = [{ran.run: ran for ran in each.runs} for each in found]
    printed = _printed_sums(found)
    rows = [
        RateRow(
            str(run),
            tuple(_sum_cell(of.get(run), each, decimals, printed) for of, each in zip(by_run, found, strict=True)),
        )
        for run in way.runs
    ]
    return SumTable(columns, (*rows, *_summing_up(found, decimals, several=way.has_several_runs)))


def _printed_sums(found: Iterable[TriedPoint]) -> Mapping[str, str | None]:
    """Returns the digits of imported sums by the ids of their results, with the zeros that a spreadsheet left out."""
    wholes = [ran.whole for each in found for ran in each.runs if ran.whole is not None]
    return _printed_by_id(wholes, _SUM)


def _printed_by_id(results: Sequence[Result], column: Column) -> Mapping[str, str | None]:
    filled = fill_digits([printed_digits(result, column) for result in results])
    return {result.id: text for result, text in zip(results, filled, strict=True)}


def _sum_cell(ran: FilmRun | None, tried: TriedPoint, decimals: int, printed: Mapping[str, str | None]) -> RateCell:
    if ran is None:
        return RateCell(UNKNOWN)
    figures = ran.figures
    own = ran.whole if ran.whole is not None else next(filter(None, ran.instances), None)
    text = (ran.whole and printed[ran.whole.id]) or rate_text(figures.sum_frames_per_s, decimals)
    return RateCell(text, figures.is_met if tried.target else None, own)


def _summing_up(found: Sequence[TriedPoint], decimals: int, *, several: bool) -> list[RateRow]:
    """Returns the rows Average, Median and Target; average and median only where there are several runs."""
    overs = [each.over for each in found]
    targets = [each.target.for_instances(each.instances) if each.target else None for each in found]
    rows = []
    if several:
        rows.append(_sum_row("Average", [rate_text(over.average_frames_per_s, decimals) for over in overs]))
        rows.append(_sum_row("Median", [rate_text(over.median_frames_per_s, decimals) for over in overs]))
    if any(target is not None for target in targets):
        rows.append(_sum_row("Target", [rate_text(target, decimals) for target in targets]))
    return rows


def _words_of(tried: TriedPoint | None, text: Callable[[TriedPoint], str]) -> str:
    return UNKNOWN if tried is None else text(tried)


_FAIRNESS_LEAST: Final = "Fairness, least run"
_FAIRNESS: Final = ("Fairness, median run", _FAIRNESS_LEAST)
_MEGABYTES: Final = "Average [MB/s]"
_MEASURES: Final[Mapping[str, Callable[[TriedPoint], str]]] = MappingProxyType(
    {
        "Runs that met the target [%]": lambda tried: share_text(tried.over.runs_met_ratio if tried.target else None),
        "Instances that met it [%]": lambda tried: share_text(tried.over.instances_met_ratio if tried.target else None),
        "Frames dropped": lambda tried: whole(tried.over.dropped_frames),
        "Dropped of those due [%]": lambda tried: share_text(tried.over.dropped_ratio),
        _FAIRNESS[0]: lambda tried: _fairness(tried.runs, statistics.median),
        _FAIRNESS_LEAST: lambda tried: _fairness(tried.runs, min),
        _MEGABYTES: lambda tried: megabytes(_mean(ran.bytes_per_s for ran in tried.runs)),
        "Average [MiB/s]": lambda tried: mebibytes(_mean(ran.bytes_per_s for ran in tried.runs)),
    }
)


def _sum_row(head: str, texts: Iterable[str]) -> RateRow:
    return RateRow(head, tuple(RateCell(text) for text in texts), is_sum=True)


def _fairness(runs: Sequence[FilmRun], of: Callable[[list[float]], float]) -> str:
    known = [ran.figures.fairness for ran in runs if ran.figures.fairness is not None]
    return fairness_text(of(known)) if known else UNKNOWN


def fairness_text(fairness: float | None) -> str:
    """Returns Jain's fairness index with three decimals; "1" is printed only where all rates are equal."""
    if fairness is None:
        return UNKNOWN
    return "1" if fairness > 1.0 - 1e-9 else f"{min(fairness, 0.999):.3f}"


def _mean(values: Iterable[float | None]) -> float | None:
    """Returns the mean of the values; None where any of them is unknown."""
    every = list(values)
    known = [value for value in every if value is not None]
    return statistics.fmean(known) if known and len(known) == len(every) else None


def _instances_of(configuration: str, tried: TriedPoint) -> InstanceTable:
    runs = [ran for ran in tried.runs if ran.instances]
    rates = [trusted_number(one, RATE) for ran in runs for one in ran.instances if one is not None]
    decimals = rate_decimals(rates)
    printed = _printed_by_id([one for ran in runs for one in ran.instances if one is not None], _RATE)
    rows = [
        RateRow(str(place + 1), tuple(_instance_cell(ran.instances[place], tried, decimals, printed) for ran in runs))
        for place in range(tried.instances)
    ]
    each: list[tuple[str, Callable[[RunFigures], str]]] = [
        ("Average", lambda run: rate_text(run.average_frames_per_s, decimals)),
        ("Std. Deviation", lambda run: rate_text(run.standard_deviation_frames_per_s, max(2, decimals))),
        ("Fairness", lambda run: fairness_text(run.fairness)),
        ("Frames dropped", lambda run: whole(run.dropped_frames)),
        ("of those due", lambda run: whole(run.due_frames)),
    ]
    sums = tuple(
        RateCell(rate_text(ran.figures.sum_frames_per_s, decimals), ran.figures.is_met if tried.target else None)
        for ran in runs
    )
    below = [_sum_row(head, [text(ran.figures) for ran in runs]) for head, text in each]
    below.append(_sum_row("Sum [MB/s]", [megabytes(ran.bytes_per_s) for ran in runs]))
    below.append(_sum_row("Sum [MiB/s]", [mebibytes(ran.bytes_per_s) for ran in runs]))
    kept = [*below[:2], *(row for row in below[2:] if any(cell.text != UNKNOWN for cell in row.cells))]
    return InstanceTable(
        configuration,
        tried.instances,
        tuple(ran.run for ran in runs),
        (*rows, RateRow("Sum", sums, is_sum=True), *kept),
        _limits(runs),
    )


def _instance_cell(
    result: Result | None, tried: TriedPoint, decimals: int, printed: Mapping[str, str | None]
) -> RateCell:
    if result is None:
        return RateCell(UNKNOWN, False if tried.target else None)
    rate = trusted_number(result, RATE)
    port = result.values.get("bond_port")
    return RateCell(
        printed[result.id] or rate_text(rate, decimals),
        tried.target.is_met(rate) if tried.target else None,
        result,
        port if isinstance(port, str) else None,
    )


def _limits(runs: Sequence[FilmRun]) -> tuple[str, ...]:
    """Returns what limited the runs and who shared a bond's port, each sentence once with the numbers of its runs."""
    by_words: dict[str, list[int]] = {}
    for ran in runs:
        for value in ("limit", "bond"):
            words = ran.whole.values.get(value) if ran.whole else None
            if isinstance(words, str) and words:
                by_words.setdefault(words, []).append(ran.run)
    return tuple(f"{_of_runs(of, len(runs))}: {words}" for words, of in by_words.items())


def _of_runs(numbers: Sequence[int], all_runs: int) -> str:
    if len(numbers) == all_runs > 1:
        return "Every run"
    return f"Run {numbers[0]}" if len(numbers) == 1 else f"Runs {_span(numbers)}"


def _span(numbers: Sequence[int]) -> str:
    """Shortens a rising sequence of numbers: "1 to 12", "1 to 5, 7", "4, 8"."""
    stretches: list[list[int]] = []
    for number in numbers:
        if stretches and stretches[-1][-1] == number - 1:
            stretches[-1].append(number)
        else:
            stretches.append([number])
    return ", ".join(f"{each[0]} to {each[-1]}" if len(each) > 2 else ", ".join(map(str, each)) for each in stretches)


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
    rows = sustained_rows(study)
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
    yield Group(tuple(_sums(study, each) for each in sum_tables(way)), "besides")
    if found := measures(way):
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


def _about_measures(found: Sequence[Measure]) -> Iterator[Part]:
    if any(each.head in _FAIRNESS for each in found):
        yield " Fairness is Jain’s index: 1 where all instances had the same."
    if any(each.head == _MEGABYTES for each in found):
        yield from (" MB/s are 10", superscript("6"), " bytes.")


def _sums(study: Study, shown: SumTable) -> Block:
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


def _row(each: RateRow, firsts: Sequence[bool] | None = None, title: str | None = None) -> Row:
    begins = firsts or (False,) * len(each.cells)
    cells = (_cell(one, is_first=first) for one, first in zip(each.cells, begins, strict=True))
    return row(name(each.head if title is None else title), *cells, look="made" if each.is_sum else "")


def _cell(one: RateCell, *, is_first: bool = False) -> Cell:
    beneath = (BREAK, small(one.beneath)) if one.beneath else ()
    text = strong(one.text) if one.met else one.text
    told = inlines(text, mark(one.result) if one.result else None, *beneath)
    return Cell(told, tone="missed" if one.met is False else "", look="first" if is_first else "")


def _measures(study: Study, way: OneWay, found: Sequence[Measure]) -> Block:
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
    yield Figure(dots, look="multiples")
    yield from _sharing(study, way, doing)
    shown = instance_tables(way)
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


def _instance_table(study: Study, way: OneWay, shown: InstanceTable) -> Iterator[Block]:
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
