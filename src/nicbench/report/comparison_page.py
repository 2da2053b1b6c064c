"""comparison.html: what is named is found, matched, checked whether it may be compared, and laid out as a document. It
opens as a report does, with answer, chart and one table; the rest is folded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from nicbench.compare.entries import Entry, compare_settings, entries_of, name_entries
from nicbench.compare.matching import MatchedEntries, divide_by_ports, match_points
from nicbench.compare.objections import Objection, conditions_of, find_objections
from nicbench.core.errors import UsageError
from nicbench.core.lists import grouped
from nicbench.core.result import Result
from nicbench.core.turn import DEFAULT
from nicbench.report.answer.of_comparison import title_of
from nicbench.report.document.blocks import Block, Cell, Document, FoldedBlocks, Group, Note, Row, Text, Verdict
from nicbench.report.document.finishing import fold
from nicbench.report.document.making import (
    BREAK,
    NOTHING,
    Part,
    about_row,
    badge,
    breakable_code,
    caption,
    cell,
    code,
    command,
    head,
    heading,
    inlines,
    join_inlines,
    lines,
    listing,
    mark,
    name,
    paragraph,
    row,
    set_tone,
    small,
    strong,
    table,
    tone_of,
    word_heads,
    words,
)
from nicbench.report.drawing.figures import Figures
from nicbench.report.entries import HEADS, Page, SettingRow, facts_of, page_of
from nicbench.report.entry_values import ChangeCell, ChangeTable, ValueCell, ValueTable
from nicbench.report.imported import errata_of
from nicbench.report.layouts import make_document
from nicbench.report.numbers import UNKNOWN, heat_of
from nicbench.report.sections import closing, comparing
from nicbench.report.sections.closing import errata_table
from nicbench.report.sections.comparing import rates_by_configuration
from nicbench.report.sections.editors import studies
from nicbench.report.sections.statistics import statistics
from nicbench.report.wording import capitalise, first_few

_MOST_ENTRIES = 12
_MOST_COLUMNS = 4
_MOST_GROUPS = 8
_MOST_NAMES = 6
_FEW_ERRATA = 6


def objections(page: Page) -> Iterator[Block]:
    """Yields the objections to the comparison that the user overruled by ``--force``."""
    if page.forced:
        first = paragraph(
            strong("Not comparable, and compared all the same ("),
            code("--force"),
            strong(")."),
            " What follows must not be read as a comparison in these respects:",
        )
        yield Note((first, listing(f"{text}." for text in page.forced)), "forced")


def entries(page: Page) -> Iterator[Block]:
    """Yields the table of the entries that are compared."""
    number, facts = len(page.entries), [facts_of(entry) for entry in page.entries]
    differing = [label for label in HEADS if len({told[label] for told in facts}) > 1]
    alike = {label: text for label, text in facts[0].items() if label not in differing and text != UNKNOWN}
    yield heading(1, "What is compared", id="compared")
    if alike:
        all_of_them = "Both" if number == 2 else f"All {number}"
        yield paragraph(f"{all_of_them}: {'; '.join(f'{label.lower()} {text}' for label, text in alike.items())}.")
    shown = table(
        ((head("#"), *word_heads("Name here", *differing, "Run")),),
        (
            (
                cell(str(place), tone="quiet"),
                name(entry.name, words=True),
                *(
                    words(set_tone(told[label], tone_of(told[label]) if label == "Verdict" else ""))
                    for label in differing
                ),
                words(
                    entry.run_id if entry.configuration == DEFAULT else f"{entry.run_id}: {entry.configuration}",
                    tone="quiet",
                ),
            )
            for place, (entry, told) in enumerate(zip(page.entries, facts, strict=True), 1)
        ),
        "result",
    )
    if number > _MOST_ENTRIES:
        yield FoldedBlocks(inlines(f"All {number}, with their numbers here"), (shown,))
    else:
        yield shown


def settings(page: Page) -> Iterator[Block]:
    """Yields the settings in which the entries differ, the most important first."""
    known, main, more = page.known, page.settings, page.more_settings
    yield heading(1, "Differences in setup", id="making")
    if main:
        yield caption(
            "Bench file, machines, settings and versions, as each run recorded them; what changes results most comes "
            "first."
        )
        yield _settings_table(main, known.of)
    elif len(known.of) > 1:
        who = ", ".join(known.of) if page.few else "Those that nicbench measured"
        yield paragraph(f"{who} were made in the same way, on the same settings, as far as is recorded.")
    else:
        yield paragraph("Fewer than two of them record how they were made: the differences are not known.")
    if more:
        summary = inlines(f"{len(more)} more that differ{', less likely to matter' if main else ''}")
        yield FoldedBlocks(summary, (_settings_table(more, known.of),), is_for_screens=True)
    if known.apart:
        paths = caption(join_inlines(", ", map(breakable_code, known.apart)))
        summary = inlines(f"Values that differ and are no settings: {len(known.apart)}")
        yield FoldedBlocks(summary, (paths,), "remarks")
    if known.silent and len(known.of) > 1:
        silent = ", ".join(known.silent)
        yield caption(f"Not in this table, because how they were made is not recorded: {silent}.")


def _settings_table(rows: Sequence[SettingRow], names: Sequence[str]) -> Block:
    few = len(names) <= _MOST_COLUMNS
    titles = names if few else ("Values, and which entries have them",)
    return table(
        (word_heads("Setting", *titles, "Why it matters"),),
        (
            (
                name(breakable_code(row.setting), *((BREAK, small(row.where)) if row.where else ()), words=True),
                *(map(words, row.texts) if few else (_groups(row, len(names)),)),
                words(row.why, tone="quiet"),
            )
            for row in rows
        ),
        "result",
    )


def _groups(row: SettingRow, entries: int) -> Cell:
    """Returns a cell with each value of a setting and the entries that have it."""
    if len(row.groups) == entries and len(row.groups) > _MOST_GROUPS:
        some = "".join(f"{text}, " for text, _ in row.groups[:5])
        return words(f"another value in each: {some}…")
    told: list[Part] = [
        inlines(strong(text), f": {', '.join(who) if len(who) <= _MOST_NAMES else first_few(who, 3)}")
        for text, who in row.groups[:_MOST_GROUPS]
    ]
    more = len(row.groups) - _MOST_GROUPS
    return words(lines([*told, *([f"and {more} more values"] if more > 0 else [])]))


def main_values(page: Page) -> Iterator[Block]:
    """Yields tables of main values with an entry in each row; with few entries the tables of results suffice."""
    shown = [each for each in page.tables if not each.is_searched and not page.few]
    if shown:
        yield heading(2, "Main values, side by side")
        yield caption(
            "An entry on each row, what was measured across. The darker a cell, the greater its value in its column; "
            "which way is better the value’s name says. “–”: not measured."
        )
    for each in shown:
        yield heading(3, f"{each.test}: {each.heading}")
        yield table(
            ((*word_heads("Entry"), *map(head, each.points)),),
            (
                (name(entry, words=True), *(_value(one, each, place) for place, one in enumerate(cells)))
                for entry, cells in each.rows.items()
            ),
            "heat",
        )


def _value(one: ValueCell, shown: ValueTable, place: int) -> Cell:
    heat = heat_of(one.number, [cells[place].number for cells in shown.rows.values()])
    return Cell(inlines(one.text, mark(one.result) if one.result else None), heat=heat)


def lonely(page: Page) -> Iterator[Block]:
    """Yields the table of points that at least one entry lacks."""
    if not page.lonely:
        return
    yield heading(1, "What not all of them have", id="only")
    yield caption(
        "Points that some entries lack. Where two have them, they are compared above; what one alone has stands in "
        "that run’s own report."
    )
    yield table(
        (word_heads("Points", "Only in"),),
        (
            (
                name(row.words, words=True),
                words(first_few(row.names, 8)),
            )
            for row in page.lonely
        ),
    )


def published_sources(page: Page) -> Iterator[Block]:
    """Yields the sources of the published figures."""
    published = published_entries(page)
    if published:
        yield heading(1, "Where the published figures are from", id="published")
    for members in published:
        yield from _published_source(members, is_only=len(published) == 1)


def published_entries(page: Page) -> list[list[Entry]]:
    """Returns the entries whose figures were published, those of one source together."""
    return list(grouped((entry.run_id, entry) for entry in page.entries if entry.imported is not None).values())


def _published_source(members: Sequence[Entry], *, is_only: bool) -> Iterator[Block]:
    first = members[0]
    shows: tuple[Part, ...] = (
        ("; ", code(f"nicbench reference show {first.data_set}"), " shows them as they are printed")
        if first.data_set
        else ()
    )
    source = first.imported.named if first.imported else ""
    errata = errata_of([result for entry in members for result in entry.results])
    yield heading(2, ", ".join(entry.name for entry in members))
    yield paragraph(strong("Not measured by nicbench."), f" The numbers are those of {source}", *shows, ".")
    yield from map(paragraph, first.notes)
    yield caption(
        "What the source does not tell, nicbench cannot: intervals, the times of trials, how often a point was "
        "measured, and the settings of a machine beyond those it names."
    )
    if errata:
        yield FoldedBlocks(
            inlines(f"Errata of the source: {len(errata)}, marked † above"),
            (errata_table(errata),),
            is_open=is_only and len(errata) <= _FEW_ERRATA,
            id="errata",
        )


def command_block(page: Page) -> Iterator[Block]:
    """Yields the command that makes this page again."""
    if page.command:
        yield heading(1, "How to make this page again")
        yield paragraph(command(page.command))
        yield caption("Each run’s own report says how it was measured and how to repeat it.")


_MOST_REMARKS: Final = 3
"""The most remarks that stand above the chart; the others are folded beneath them."""


_MOST_BESIDE: Final = 2
"""The greatest number of entries whose table fits next to the chart."""


def first_screen(page: Page, figures: Figures) -> Iterator[Block]:
    """Yields answer and verdict, what a reader must know before drawing conclusions, a chart and a table of it all."""
    yield paragraph(page.report.headline, role="answer")
    yield Verdict(tuple(_badges(page)), inlines(page.changes.sentence if page.changes else ""))
    yield from _remarks(page)
    blocks: list[Block] = [figures.lead] if figures.lead is not None else []
    if page.changes is not None:
        blocks.append(_table(page.changes))
    if blocks and len(page.entries) > _MOST_BESIDE:
        yield from blocks
    elif blocks:
        yield Group(tuple(blocks), "overview")
    if page.changes is not None:
        yield caption(_about(page.changes))
    elif compared := page.report.comparison:
        for shown in compared.rates[:1]:
            yield from rates_by_configuration(shown, shown.goals[0])


def _badges(page: Page) -> Iterator[Text]:
    if page.changes is not None and page.changes.changes:
        is_shown = any(change.is_shown for change in page.changes.changes)
        yield badge("difference shown", "good") if is_shown else badge("no difference claimed", "quiet")
    verdict = page.report.verdict.value
    yield badge(f"runs: {verdict}", tone_of(verdict))


def _remarks(page: Page) -> Iterator[Block]:
    if page.told:
        told = [paragraph(f"{capitalise(text)}.") for text in page.told]
        rest = told[_MOST_REMARKS:]
        more = (FoldedBlocks(inlines(f"{len(rest)} more"), tuple(rest)),) if rest else ()
        yield Note((paragraph(strong("Before drawing conclusions:")), *told[:_MOST_REMARKS], *more))


def _about(shown: ChangeTable) -> str:
    against = f"Change is that from “{shown.names[0]}”: " if len(shown.names) > 2 else "Change: "
    left_out = f" Below: {'; '.join(shown.left_out)}." if shown.left_out else ""
    return (
        f"{against}between two bounds where the intervals of the rates give them, else the ratio of the medians, with "
        "its interval in brackets where there are enough runs. A change without an interval is a ratio of two numbers "
        f"and no claim.{left_out}"
    )


def _table(shown: ChangeTable) -> Block:
    """Returns the table with a row for each point: the value of each entry with its interval beneath it, and the change
    from the first entry with its verdict beneath it.
    """
    first, *others = shown.names
    titles = head(first), *(each for other in others for each in (head(other), head("Change")))

    def rows() -> Iterator[Row]:
        for part in shown.parts:
            yield replace(about_row(strong(part.heading), len(titles) + 1), begins_group=False)
            for point, cells in part.rows:
                yield row(name(point), *(each for one in cells for each in _cells(one, is_first=one is cells[0])))

    return table(((NOTHING, *titles),), rows(), "result")


def _cells(one: ChangeCell, *, is_first: bool) -> Iterator[Cell]:
    """Yields a value, and a change with its verdict beneath it, so that the table fits a phone."""
    within = (BREAK, small(one.within)) if one.within else ()
    yield cell(strong(one.text), mark(one.result) if one.result else None, *within)
    if change := one.change:
        verdict = strong(change.verdict) if change.is_shown else small(change.verdict)
        yield cell(change.text, BREAK, verdict, tone="" if change.is_shown else "quiet")
    elif not is_first:
        yield cell(UNKNOWN)


def findings(page: Page) -> Iterator[Block]:
    """Yields what else was found, a sentence each."""
    if page.report.details:
        yield heading(1, "Key findings", id="findings")
        yield listing(page.report.details)


_MOST_BARS = 7
"""The most rows that are drawn as bars of a long tail; more rows have only the table."""


def document(page: Page) -> Document:
    """Returns the page of a comparison as a document."""
    eyebrow = (strong("nicbench"), f" · comparison of {len(page.entries)} results")
    published = ", and from published figures" if published_entries(page) else ""
    footer = (
        f"Made by nicbench {page.report.nicbench_version} from the run folders that it names{published}, alone. They "
        "were not changed."
    )
    header = (paragraph(*eyebrow, role="eyebrow"),)
    return make_document(page.report, header, _sections(page, Figures(page.report)), inlines(footer))


def _sections(page: Page, figures: Figures) -> Iterator[Block]:
    """Yields the first screen, then a section for each step, folded on a page as those of a report are."""
    yield from objections(page)
    yield Group((heading(1, "Answer", id="answer"), *first_screen(page, figures)), "opening")
    yield from _folded(findings(page))
    yield from _folded(entries(page))
    yield from _folded(settings(page))
    yield Group((heading(1, "Results side by side", id="results"), *fold(_results(page, figures))))
    yield from _folded(lonely(page))
    yield from _folded(published_sources(page))
    yield from _folded((heading(1, "Glossary", id="glossary"), *closing.glossary(page.report)))
    yield from _folded(command_block(page))


def _folded(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yields the section as one folded group; nothing where it is empty."""
    if parts := tuple(blocks):
        yield Group(parts, "folded")


def _results(page: Page, figures: Figures) -> Iterator[Block]:
    report, compared = page.report, page.report.comparison
    assert compared is not None  # noqa: S101 - a page compares
    yield from studies(report, figures)
    yield from comparing.rates(compared, report, figures)
    yield from main_values(page)
    every = tuple(comparing.every_value(compared, report, figures, most_bars=_MOST_BARS))
    if page.many and compared.sections:
        summary = f"Every value of every point: {len(compared.names)} entries beneath each other"
        yield FoldedBlocks(inlines(summary), every)
    else:
        yield from every
    yield from statistics(report, figures)


def compare(
    references: Sequence[str],
    runs_folder: Path,
    find_tagged: Callable[[str], list[Path]],
    *,
    command: str,
    title: str | None = None,
    force: bool = False,
    per_port: bool = False,
) -> Page:
    """Compares what ``references`` name, as `nicbench compare` takes them; ``command`` is printed on the page.

    UsageError, with every reason, where they may not be compared; where nothing is in common also with ``force``.
    """
    entries = name_entries(entries_of(list(references), runs_folder, find_tagged, damaged=force))
    remarks: tuple[str, ...] = ()
    if per_port:
        entries, remarks = divide_by_ports(entries)
    found = match_points(entries)
    within = [one for entry in found.entries for one in find_objections([conditions_of(part) for part in entry.parts])]
    against = (*find_objections([conditions_of(entry) for entry in found.entries]), *(o for o in within if o.blocks))
    _refuse(found, against, force=force)
    known = compare_settings(found.entries)
    return page_of(found, against, known, title=title or title_of(found.entries), remarks=remarks, command=command)


def _measured_by(results: Sequence[Result]) -> str:
    """Each test with its frame sizes, for a reader: "throughput (64, 1518 bytes), latency (64, 1518 bytes)"."""
    sizes: dict[str, dict[str, None]] = {}
    for result in results:
        known = sizes.setdefault(result.test or result.method, {})
        if (size := result.parameters.get("frame_bytes")) is not None:
            known[str(size)] = None
    return ", ".join(f"{test} ({', '.join(known)} bytes)" if known else test for test, known in sizes.items())


def _refuse(found: MatchedEntries, against: Sequence[Objection], *, force: bool) -> None:
    """Raises UsageError with every reason; where different runs have nothing in common also with ``--force``."""
    run_of = {entry.name: entry.run_id for entry in found.entries}
    at_least = min(2, len(set(run_of.values())))
    if not any(len({run_of[name] for name in found.has[point]}) >= at_least for point in found.common):
        tests = "; ".join(f"{entry.name}: {_measured_by(entry.results)}" for entry in found.entries[:4])
        raise UsageError(
            f"they have no point in common: the same test at the same frame size or load ({tests})",
            place=", ".join(entry.run_id for entry in found.entries[:4]),
            next_step="compare runs that measured the same; `nicbench diff RUN RUN` shows what differs",
        )
    blocking = [one for one in against if one.blocks]
    if blocking and not force:
        steps = dict.fromkeys(one.next_step for one in blocking if one.next_step)
        reasons = "".join(f"\n  - {one.text}" for one in blocking)
        raise UsageError(
            f"these are not comparable:{reasons}",
            next_step="; ".join([*steps, "--force compares them all the same, and says so in red"]),
        )
