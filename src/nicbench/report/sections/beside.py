"""The sections of a comparison page alone: entries, their settings, their main values, and published sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nicbench.report.beside.page import Page, PublishedSource
from nicbench.report.beside.rows import SettingRow
from nicbench.report.beside.values import ValueCell
from nicbench.report.document.blocks import Block, Cell, FoldedBlocks, Note
from nicbench.report.document.inlines import (
    BREAK,
    Part,
    breakable_code,
    code,
    command,
    inlines,
    join_inlines,
    lines,
    mark,
    set_tone,
    small,
    strong,
    tone_of,
)
from nicbench.report.document.tables import (
    caption,
    cell,
    head,
    heading,
    listing,
    name,
    paragraph,
    table,
    word_heads,
    words,
)
from nicbench.report.sections.closing import errata_table

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
    number = len(page.entries)
    yield heading(1, "What is compared", id="compared")
    if page.alike:
        all_of_them = "Both" if number == 2 else f"All {number}"
        yield paragraph(f"{all_of_them}: {'; '.join(f'{label.lower()} {text}' for label, text in page.alike)}.")
    shown = table(
        ((head("#"), *word_heads("Name here", *page.columns, "Run")),),
        (
            (
                cell(str(each.number), tone="quiet"),
                name(each.name, words=True),
                *(words(_told_part(label, each.told[label])) for label in page.columns),
                words(each.run, tone="quiet"),
            )
            for each in page.entries
        ),
        "result",
    )
    if number > _MOST_ENTRIES:
        yield FoldedBlocks(inlines(f"All {number}, with their numbers here"), (shown,))
    else:
        yield shown


def _told_part(label: str, text: str) -> Part:
    return set_tone(text, tone_of(text)) if label == "Verdict" else text


def settings(page: Page) -> Iterator[Block]:
    """Yields the settings in which the entries differ, the most important first."""
    known = page.known
    yield heading(1, "Differences in setup", id="making")
    if page.settings:
        yield caption(
            "Bench file, machines, settings and versions, as each run recorded them; what changes results most comes "
            "first."
        )
        yield _settings_table(page.settings, known.of)
    elif len(known.of) > 1:
        who = ", ".join(known.of) if page.few else "Those that nicbench measured"
        yield paragraph(f"{who} were made in the same way, on the same settings, as far as is recorded.")
    else:
        yield paragraph("Fewer than two of them record how they were made: the differences are not known.")
    if page.more_settings:
        less = ", less likely to matter" if page.settings else ""
        summary = inlines(f"{len(page.more_settings)} more that differ{less}")
        yield FoldedBlocks(summary, (_settings_table(page.more_settings, known.of),), is_for_screens=True)
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
    told: list[Part] = [inlines(strong(text), f": {_list_words(who)}") for text, who in row.groups[:_MOST_GROUPS]]
    more = len(row.groups) - _MOST_GROUPS
    return words(lines([*told, *([f"and {more} more values"] if more > 0 else [])]))


def _list_words(who: Sequence[str]) -> str:
    if len(who) > _MOST_NAMES:
        return f"{', '.join(who[:3])} and {len(who) - 3} more"
    return ", ".join(who)


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
            ((name(entry, words=True), *map(_value, cells)) for entry, cells in each.rows.items()),
            "heat",
        )


def _value(one: ValueCell) -> Cell:
    heat = None if one.heat is None else round(100 * one.heat)
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
                words(
                    f"{', '.join(row.names[:8])} and {len(row.names) - 8} more"
                    if len(row.names) > 8
                    else ", ".join(row.names)
                ),
            )
            for row in page.lonely
        ),
    )


def published_sources(page: Page) -> Iterator[Block]:
    """Yields the sources of the published figures."""
    if page.published:
        yield heading(1, "Where the published figures are from", id="published")
    for one in page.published:
        yield from _published_source(one, is_only=len(page.published) == 1)


def _published_source(one: PublishedSource, *, is_only: bool) -> Iterator[Block]:
    shows: tuple[Part, ...] = (
        ("; ", code(f"nicbench reference show {one.data_set}"), " shows them as they are printed")
        if one.data_set
        else ()
    )
    yield heading(2, ", ".join(one.names))
    yield paragraph(strong("Not measured by nicbench."), f" The numbers are those of {one.source}", *shows, ".")
    yield from map(paragraph, one.notes)
    yield caption(
        "What the source does not tell, nicbench cannot: intervals, the times of trials, how often a point was "
        "measured, and the settings of a machine beyond those it names."
    )
    if one.errata:
        yield FoldedBlocks(
            inlines(f"Errata of the source: {len(one.errata)}, marked † above"),
            (errata_table(one.errata),),
            is_open=is_only and len(one.errata) <= _FEW_ERRATA,
            id="errata",
        )


def command_block(page: Page) -> Iterator[Block]:
    """Yields the command that makes this page again."""
    if page.command:
        yield heading(1, "How to make this page again")
        yield paragraph(command(page.command))
        yield caption("Each run’s own report says how it was measured and how to repeat it.")
