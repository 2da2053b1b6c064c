"""The tables of a study: sums by run and what they amount to, streams sustained, and each instance of each run."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import Final

from nicbench.core.lists import grouped, without_none
from nicbench.core.result import Result
from nicbench.core.table import Column
from nicbench.core.units import count_of
from nicbench.report.cells import fill_digits, printed_digits
from nicbench.report.document.blocks import Block, Cell, Figure, FoldedBlocks, Group, Row, Table, TableLook
from nicbench.report.document.making import (
    BREAK,
    NOTHING,
    Optional,
    Part,
    about_row,
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
from nicbench.report.drawing.runs import dot_figures, overview_caption, overview_chart
from nicbench.report.editors import (
    OneWay,
    Study,
    directory_rows,
    held_text,
    rate_decimals,
    rate_of,
    rate_text,
    share_text,
    target_words,
)
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN, mebibytes, megabytes, share, whole
from nicbench.report.sections.opening import foreign
from nicbench.report.study import place_of_study
from nicbench.report.wording import lower_first
from nicbench.stats.frames import RATE, SUM, FilmRun, TriedPoint

MOST_COLUMNS: Final = 26
"""Maximum number of columns in one table of numbers; with more, each configuration has a table of its own."""
_PRINTED_INSTANCES = 100
_BROAD = 14
"""A table with more columns than this has smaller type."""
_SUM: Final = Column(SUM, "Sum", unit="fps")
_RATE: Final = Column(RATE, "Rate", unit="fps")


def studies(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields the sections of each study in the report."""
    yield from study_openings(report, figures)
    yield from study_details(report, figures)


def study_openings(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields the answer of each study: a chart for each direction, and how many instances were sustained."""
    several = len(report.studies) > 1
    for study in report.studies:
        draw = partial(overview_chart, compares=study.compares)
        whose = f"{study.test}: " if several else ""
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
        if sustained := sustained_table(study):
            yield from _sustained(study, sustained, report, f": {study.test}" if several else "")


def study_details(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields where the frames of each study were, and its runs and instances."""
    several = len(report.studies) > 1
    for study in report.studies:
        yield from _directories(study, f": {study.test}" if several else "")
        for way in study.ways:
            yield from _way(study, way, report, figures, f" ({study.test})" if several else "")


def _sustained(study: Study, sustained: Table, report: Report, of_test: str) -> Iterator[Block]:
    targets = "; ".join(
        f"{target_words(target)} each, met from {share(1 - target.tolerance_ratio)} of it" for target in study.targets
    )
    assumed = " (the file names no target; this is the usual one)" if study.assumes_target else ""
    yield heading(2, f"Streams sustained{of_test}", id=place_of_study(study).id)
    yield caption(
        foreign(report),
        " An instance stands for one editor or recorder. The number is the largest number of instances that met the "
        f"target: {targets}{assumed}. “In every run” and “in the median run” go by the sum of the instances, “by every "
        "instance” by each of them in every run. “≥”: no more were tried.",
    )
    yield sustained
    if any(cell(UNKNOWN) in each.cells for each in sustained.body):
        yield caption("–: not known, because of some runs only the sum of the instances is.")


def sustained_table(study: Study) -> Table | None:
    """Returns a row for each direction and configuration that has a target; None without one."""
    rows: list[tuple[Optional, ...]] = []
    directed = False
    for way in study.ways:
        for configuration in way.configurations:
            if (found := way.sustained_instances(configuration)) is not None:
                directed = directed or bool(way.direction and not rows)
                over = way.figures_over_runs(configuration)
                cells = (
                    name(way.direction) if way.direction else None,
                    study.compares and name(configuration),
                    cell(strong(held_text(found.in_every_run))),
                    cell(held_text(found.in_median_run)),
                    cell(held_text(found.by_every_instance)),
                    cell(_span(sorted(over)), tone="quiet"),
                    cell(_span(sorted({each.runs for each in over.values()})), tone="quiet"),
                )
                rows.append(cells)
    titles = heads(
        directed and "Direction",
        study.compares and "Configuration",
        *("In every run", "In the median run", "By every instance", "Instances tried", "Runs of each"),
    )
    return table((titles,), rows, "result") if rows else None


def _directories(study: Study, of_test: str) -> Iterator[Block]:
    rows = directory_rows(study)
    if not rows:
        return
    yield heading(2, f"Directories{of_test}")
    yield caption(
        "Where the frames of each instance were, as its client had it mounted in the rounds: type of the file system "
        "and its source. What is local by its type goes over no network, unless its block device does."
    )
    titles = (
        *heads(study.compares and "Configuration", "Instance"),
        *word_heads("Client", "Directory", "File system", "Kind"),
    )
    body = (
        (
            *((name(each.configuration), cell(str(each.instance))) if study.compares else (name(str(each.instance)),)),
            words(each.client),
            words(breakable(each.directory)),
            words(breakable(each.file_system)),
            words(each.kind),
        )
        for each in rows
    )
    yield table((titles,), body)


def _way(study: Study, way: OneWay, report: Report, figures: Figures, of_test: str) -> Iterator[Block]:
    """Yields the tables of one direction: reading, writing, or the only one there is."""

    def doing(text: str) -> str:
        return f"{way.doing}: {lower_first(text)}" if way.doing else text

    yield heading(2, f"{doing('Sum')} of all instances, run by run{of_test}")
    yield caption(foreign(report), *_about_sums(study, way))
    yield Group(tuple(sum_tables(study, way)), "besides")
    if found := measures(way):
        yield heading(3, f"{doing('What')} the runs come to")
        yield caption(foreign(report), " By the number of instances at once, over all runs.", *_about_measures(found))
        yield _measures_table(study, way, found)
    if dots := dot_figures(study, way, figures.numbered):
        dashed = " Dashed: the target. Hollow: an instance that missed it." if way.targets else ""
        yield heading(3, f"{doing('Every')} instance of every run")
        yield caption(
            foreign(report),
            " Each dot is one instance in one run; all charts have one scale. Higher and more consistent is better."
            f"{dashed}",
        )
        yield Figure(dots, look="multiples")
        if shared := sharing_table(study, way):
            yield heading(3, f"{doing('Instances')} that shared a port of the bond")
            yield caption(
                "A connection uses one port of a bond: instances that meet on a port share its rate. Of all runs in "
                "which the port of every instance is known."
            )
            yield shared
        yield _instances(study, way)


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


def _about_measures(found: Mapping[str, Measure]) -> Iterator[Part]:
    if _FAIRNESS in found or _FAIRNESS_LEAST in found:
        yield " Fairness is Jain’s index: 1 where all instances had the same."
    if _MEGABYTES in found:
        yield from (" MB/s are 10", superscript("6"), " bytes.")


def sum_tables(study: Study, way: OneWay) -> Iterator[Table]:
    """Yields one table with all configurations side by side, or one for each where it would have too many columns."""
    if len(way.columns) <= MOST_COLUMNS:
        yield _sum_table(study, way, way.columns)
    else:
        for of in way.configurations:
            yield _sum_table(study, way, tuple(column for column in way.columns if column[0] == of))


def _sum_table(study: Study, way: OneWay, columns: tuple[tuple[str, int], ...]) -> Table:
    """Returns the sum of each run by configuration and number of instances, then averages, medians and targets."""
    found = [way.at[column] for column in columns]
    begins = [at > 0 and of != columns[at - 1][0] for at, (of, _) in enumerate(columns)]
    decimals = rate_decimals(ran.figures.sum_frames_per_s for each in found for ran in each.runs)
    printed = _printed_by_id([ran.whole for each in found for ran in each.runs], _SUM)

    def of_run(run: int, tried: TriedPoint) -> Cell:
        ran = next((ran for ran in tried.runs if ran.run == run), None)
        if ran is None:
            return cell(UNKNOWN)
        text = (ran.whole and printed[ran.whole.id]) or rate_text(ran.figures.sum_frames_per_s, decimals)
        own = ran.whole or next(filter(None, ran.instances), None)
        return _rate(text, ran.figures.is_met if tried.target else None, own)

    def line(title: str, cells: Iterable[Cell], *, is_made: bool = False) -> Row:
        marked = (replace(one, look="first") if first else one for one, first in zip(cells, begins, strict=True))
        return row(name(title), *marked, look="made" if is_made else "")

    made: dict[str, list[float | None]] = {}
    if way.has_several_runs:
        made["Average"] = [each.over.average_frames_per_s for each in found]
        made["Median"] = [each.over.median_frames_per_s for each in found]
    if any(each.target for each in found):
        made["Target"] = [each.target.for_instances(each.instances) if each.target else None for each in found]
    rows = [
        *(line(str(run), (of_run(run, tried) for tried in found)) for run in way.runs),
        *(
            line(title, (cell(rate_text(rate, decimals)) for rate in rates), is_made=True)
            for title, rates in made.items()
        ),
    ]
    spans = (head(of, columns=len(list(same))) for of, same in groupby(of for of, _ in columns))
    titles = (
        replace(head(str(count)), look="first" if first else "")
        for (_, count), first in zip(columns, begins, strict=True)
    )
    above = ((NOTHING, *spans),) if study.compares else ()
    look: TableLook = "broad" if len(columns) > _BROAD else "sums"
    return table((*above, (head("Run"), *titles)), rows, look)


def _printed_by_id(results: Iterable[Result | None], column: Column) -> Mapping[str, str | None]:
    """Returns the digits of imported figures by the ids of their results, with the zeros that a spreadsheet left
    out.
    """
    known = without_none(results)
    filled = fill_digits([printed_digits(result, column) for result in known])
    return {result.id: text for result, text in zip(known, filled, strict=True)}


def _rate(text: str, is_met: bool | None, result: Result | None = None, beneath: Part = None) -> Cell:
    """Returns a rate, bold where it met its target and dotted where it missed it."""
    below = (BREAK, small(beneath)) if isinstance(beneath, str) else ()
    told = inlines(strong(text) if is_met else text, mark(result) if result else None, *below)
    return Cell(told, tone="missed" if is_met is False else "")


Measure = Mapping[str, Sequence[str]]
"""The cells of each configuration, one for each number of instances."""
_FAIRNESS: Final = "Fairness, median run"
_FAIRNESS_LEAST: Final = "Fairness, least run"
_MEGABYTES: Final = "Average [MB/s]"
_MEASURES: Final[Mapping[str, Callable[[TriedPoint], str]]] = MappingProxyType(
    {
        "Runs that met the target [%]": lambda tried: share_text(tried.over.runs_met_ratio if tried.target else None),
        "Instances that met it [%]": lambda tried: share_text(tried.over.instances_met_ratio if tried.target else None),
        "Frames dropped": lambda tried: whole(tried.over.dropped_frames),
        "Dropped of those due [%]": lambda tried: share_text(tried.over.dropped_ratio),
        _FAIRNESS: lambda tried: _fairness(tried.runs, statistics.median),
        _FAIRNESS_LEAST: lambda tried: _fairness(tried.runs, min),
        _MEGABYTES: lambda tried: megabytes(_mean(ran.bytes_per_s for ran in tried.runs)),
        "Average [MiB/s]": lambda tried: mebibytes(_mean(ran.bytes_per_s for ran in tried.runs)),
    }
)


def measures(way: OneWay) -> dict[str, Measure]:
    """Returns the measures that are known: shares that met the target, dropped frames, fairness and MB/s."""
    found = {
        title: {
            of: [text(way.at[of, count]) if (of, count) in way.at else UNKNOWN for count in way.counts]
            for of in way.configurations
        }
        for title, text in _MEASURES.items()
        if way.has_several_runs or title != _FAIRNESS_LEAST
    }
    return {title: rows for title, rows in found.items() if any(set(cells) != {UNKNOWN} for cells in rows.values())}


def _measures_table(study: Study, way: OneWay, found: Mapping[str, Measure]) -> Block:
    def rows() -> Iterator[Row]:
        for title, of_each in found.items():
            if study.compares:
                yield about_row(title, len(way.counts) + 1)
            for number, (of, texts) in enumerate(of_each.items()):
                made = row(name(of if study.compares else title), *map(cell, texts))
                yield replace(made, begins_group=not study.compares and number == 0)

    return table((heads("Instances", *map(str, way.counts)),), rows(), "measures")


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
    known = without_none(every)
    return statistics.fmean(known) if known and len(known) == len(every) else None


def _instances(study: Study, way: OneWay) -> Block:
    """Returns the rates of single instances, by their number and then by configuration."""
    known = [
        (of, way.at[of, count])
        for count in way.counts
        for of in way.configurations
        if (of, count) in way.at and any(ran.instances for ran in way.at[of, count].runs)
    ]
    parts: list[Block] = [
        caption(
            "Frames/s (fps). Std. Deviation is that of the population: the instances of the run are all there were."
        )
    ]
    for of, tried in known:
        before = f"{way.doing}, " if way.doing else ""
        instances = count_of(tried.instances, "instance")
        parts.append(heading(4, f"{before}{instances}{f', {of}' if study.compares else ''}"))
        parts.append(instance_table(tried))
        parts += remarks(_limits(tried), "", "things to say of these runs")
    many = sum(tried.instances for _, tried in known) > _PRINTED_INSTANCES
    return FoldedBlocks(
        inlines(f"The rates behind these charts: {len(known)} tables"), tuple(parts), is_for_screens=many
    )


def instance_table(tried: TriedPoint) -> Table:
    """Returns the instances at one point: a column for each run, and below it what they come to."""
    runs, target = [ran for ran in tried.runs if ran.instances], tried.target
    results = [one for ran in runs for one in ran.instances if one is not None]
    decimals = rate_decimals(map(rate_of, results))
    printed = _printed_by_id(results, _RATE)

    def of_instance(result: Result | None) -> Cell:
        if result is None:
            return _rate(UNKNOWN, False if target else None)
        rate, port = rate_of(result), result.values.get("bond_port")
        text = printed[result.id] or rate_text(rate, decimals)
        return _rate(text, target.is_met(rate) if target else None, result, port if isinstance(port, str) else None)

    every = [ran.figures for ran in runs]
    sums = [_rate(rate_text(one.sum_frames_per_s, decimals), one.is_met if target else None) for one in every]
    below = {
        "Average": [rate_text(one.average_frames_per_s, decimals) for one in every],
        "Std. Deviation": [rate_text(one.standard_deviation_frames_per_s, max(2, decimals)) for one in every],
        "Fairness": [fairness_text(one.fairness) for one in every],
        "Frames dropped": [whole(one.dropped_frames) for one in every],
        "of those due": [whole(one.due_frames) for one in every],
        "Sum [MB/s]": [megabytes(ran.bytes_per_s) for ran in runs],
        "Sum [MiB/s]": [mebibytes(ran.bytes_per_s) for ran in runs],
    }
    always = ("Average", "Std. Deviation")
    rows = [
        *(
            row(name(f"Instance {place + 1}"), *(of_instance(ran.instances[place]) for ran in runs))
            for place in range(tried.instances)
        ),
        row(name("Sum"), *sums, look="made"),
        *(
            row(name(title), *map(cell, texts), look="made")
            for title, texts in below.items()
            if title in always or set(texts) != {UNKNOWN}
        ),
    ]
    corner = head("Run") if len(runs) > 1 else NOTHING
    return table(((corner, *heads(*(str(ran.run) for ran in runs))),), rows, "sums")


def _limits(tried: TriedPoint) -> list[str]:
    """Returns what limited the runs and who shared a bond's port, each sentence once with the numbers of its runs."""
    runs = [ran for ran in tried.runs if ran.instances]
    told = grouped(
        (said, ran.run)
        for ran in runs
        for value in ("limit", "bond")
        if isinstance(said := ran.whole.values.get(value) if ran.whole else None, str) and said
    )
    return [f"{_of_runs(of, len(runs))}: {said}" for said, of in told.items()]


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


def sharing_table(study: Study, way: OneWay) -> Table | None:
    """Returns the rates of instances that shared one port of a bond, by how many they were, over all runs in which the
    port of every instance is known; None without a bond.
    """
    rows = []
    for configuration in way.configurations:
        by_together = grouped(
            (together, (rate, met))
            for of, count in way.columns
            if of == configuration
            for together, rate, met in _count_shared(way.at[of, count])
        )
        decimals = rate_decimals(rate for each in by_together.values() for rate, _ in each)
        for together, each in sorted(by_together.items()):
            rates = [rate for rate, _ in each]
            judged = [one for _, one in each if one is not None]
            cells = (
                name(str(together)),
                study.compares and cell(configuration),
                cell(strong(rate_text(statistics.median(rates), decimals))),
                cell(rate_text(min(rates), decimals)),
                cell(rate_text(max(rates), decimals)),
                bool(way.targets) and cell(share_text(sum(judged) / len(judged) if judged else None)),
                cell(whole(len(each)), tone="quiet"),
            )
            rows.append(cells)
    titles = heads(
        "Instances\non the port",
        study.compares and "Configuration",
        *("Median\n[fps]", "Least\n[fps]", "Greatest\n[fps]"),
        bool(way.targets) and "Met the target\n[%]",
        "So many\nin all runs",
    )
    return table((titles,), rows, "result") if rows else None


def _count_shared(tried: TriedPoint) -> Iterator[tuple[int, float, bool | None]]:
    """Yields for each instance how many shared its port (itself included), its rate, and if it met the target. A run
    counts where no port is only predicted, and no instance has several.
    """
    for ran in tried.runs:
        known = without_none(ran.instances)
        ports = [(str(one.values.get("bond_end")), str(one.values.get("bond_port") or "")) for one in known]
        if len(known) < len(ran.instances) or any(len(port.split()) != 1 for _, port in ports):
            continue
        on_port = Counter(ports)
        for port, one in zip(ports, known, strict=True):
            if (rate := rate_of(one)) is not None:
                yield on_port[port], rate, tried.target.is_met(rate) if tried.target else None
