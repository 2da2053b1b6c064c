"""The content of comparison.html: several entries in one file that needs no network, with the report's own tables and
figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nicbench import __version__
from nicbench.compare.entry import Entry
from nicbench.compare.matching import MatchedEntries, Point
from nicbench.compare.merged_summary import merge_summaries, plan_of_all, unify_scopes
from nicbench.compare.objections import Objection
from nicbench.compare.settings import Settings
from nicbench.core.result import Summary
from nicbench.report.answer.of_entries import FEW, sentences
from nicbench.report.beside.changes import ChangeTable, change_table
from nicbench.report.beside.rows import EntryRow, SettingRow, columns_of, entry_rows, setting_rows
from nicbench.report.beside.values import ValueTable, value_tables
from nicbench.report.comparison import Comparison, comparison
from nicbench.report.editors.study import Study, editors_parts, studies
from nicbench.report.imported import ErratumRow, errata_rows
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN
from nicbench.report.section import Section
from nicbench.report.statistics.view import statistics_view

SERIES = 7
"""The number of lines or bars that can be told apart in one chart; more are drawn as small multiples and shown as a
heat table.
"""
_SETTINGS_OPEN = 12


@dataclass(frozen=True, slots=True)
class PublishedSource:
    """The source of imported figures, with what it says and what it leaves out."""

    names: tuple[str, ...]
    source: str
    data_set: str | None
    notes: tuple[str, ...]
    errata: tuple[ErratumRow, ...]


@dataclass(frozen=True, slots=True)
class Lonely:
    """A point that not every entry has, and the names of the entries that have it."""

    words: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Everything on the page; ``report`` is what the sections that it shares with a report are made from."""

    report: Report
    entries: tuple[EntryRow, ...]
    forced: tuple[str, ...]
    told: tuple[str, ...]
    settings: tuple[SettingRow, ...]
    more_settings: tuple[SettingRow, ...]
    known: Settings
    tables: tuple[ValueTable, ...]
    changes: ChangeTable | None
    """What the page opens with; None where there are more entries than a table has columns for."""
    lonely: tuple[Lonely, ...]
    published: tuple[PublishedSource, ...]
    command: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings of the facts that differ between entries, which the table tells entry by entry."""
        return columns_of(self.entries)

    @property
    def alike(self) -> tuple[tuple[str, str], ...]:
        """The facts, as heading and text, that are known and the same for all entries."""
        first = self.entries[0].told
        return tuple((head, text) for head, text in first.items() if head not in self.columns and text != UNKNOWN)

    @property
    def few(self) -> bool:
        """Whether each entry has a column of its own."""
        return len(self.entries) <= FEW

    @property
    def many(self) -> bool:
        """Whether there are more entries than colours."""
        return len(self.entries) > SERIES


def page_of(
    found: MatchedEntries,
    against: Sequence[Objection],
    known: Settings,
    *,
    title: str,
    remarks: Sequence[str] = (),
    command: str = "",
) -> Page:
    """Returns the page of a comparison. ``against`` are the objections to the comparison; those that would block it
    were overridden by force. ``remarks`` are further things to know.
    """
    entries = found.entries
    summary = unify_scopes(merge_summaries(found, title))
    statistics = statistics_view(summary, {}, None, " ".join(sorted(entry.run_id for entry in entries)))
    compared = comparison(summary, {}, plan_of_all(entries, title), statistics)
    assert compared is not None  # noqa: S101 - of two entries at least
    of_editors = studies(summary.counted, {}, summary.configurations)
    compared = _drop_details(compared, len(entries) > SERIES)
    compared, lonely_goals = _select_shared_goals(compared)
    tables = value_tables(summary)
    said = sentences(compared, of_editors, tables, entries)
    return Page(
        report=replace(
            _report(summary, compared, of_editors, said, entries),
            statistics=None if statistics.is_empty else statistics,
        ),
        entries=entry_rows(entries),
        forced=tuple(one.text for one in against if one.blocks),
        told=(*(one.text for one in against if not one.blocks), *remarks, *found.remarks),
        settings=setting_rows(known.main[:_SETTINGS_OPEN], known.of),
        more_settings=setting_rows((*known.main[_SETTINGS_OPEN:], *known.others), known.of),
        known=known,
        tables=tables,
        changes=change_table(compared, tables, statistics) if len(entries) <= FEW else None,
        lonely=(*_lonely(found), *lonely_goals),
        published=_list_published(entries),
        command=command,
    )


def _drop_details(compared: Comparison, many: bool) -> Comparison:
    """Leaves out the instances of film frames, which their study shows; of many entries it leaves out the curves and
    tails, too.
    """
    own = editors_parts()
    kept = [section for section in compared.sections if (section.rows[0].result.method, section.table.part) not in own]
    if many:
        kept = [_plain(section) for section in kept]
    return replace(compared, sections=tuple(kept), tails=() if many else compared.tails)


def _select_shared_goals(compared: Comparison) -> tuple[Comparison, tuple[Lonely, ...]]:
    """Returns the comparison without the goals that only one entry has, and these goals, which are listed instead."""
    tables, lonely = [], []
    for table in compared.rates:
        has = {
            goal.value: tuple(
                name
                for place, name in enumerate(table.names)
                if any(row.cells[goal.value][place].results for row in table.rows)
            )
            for goal in table.goals
        }
        lonely += [
            Lonely(f"{table.test}: {goal.name}", has[goal.value]) for goal in table.goals if len(has[goal.value]) < 2
        ]
        tables.append(replace(table, goals=tuple(goal for goal in table.goals if len(has[goal.value]) > 1)))
    return replace(compared, rates=tuple(table for table in tables if table.goals)), tuple(lonely)


def _plain(section: Section) -> Section:
    """Returns the section with its rows alone: without grid, curve, plots and bars."""
    table = section.table.replace(grid=None, curve=None, plots=(), bars=None, narrowing=None)
    return replace(section, table=table, grids=(), brief=())


def _report(
    summary: Summary, compared: Comparison, of_editors: tuple[Study, ...], said: Sequence[str], entries: Sequence[Entry]
) -> Report:
    headline, *details = said
    return Report(
        run_id="",
        title=summary.title,
        description=None,
        started=None,
        nicbench_version=__version__,
        verdict=summary.verdict,
        verdict_text="",
        headline=headline,
        details=tuple(details),
        statements=(),
        labels=(),
        sections=(),
        other_results=(),
        ceilings=(),
        own_latencies=(),
        groups=(),
        notes=(),
        plan=plan_of_all(entries, summary.title),
        inventory={},
        bench_text="",
        core_clock_hz=None,
        comparison=compared,
        studies=of_editors,
    )


def _lonely(found: MatchedEntries) -> tuple[Lonely, ...]:
    """Groups lonely points by the entries that have them, so that a test which only one entry has takes one line."""
    grouped: dict[tuple[str, tuple[str, ...]], list[Point]] = {}
    for point, names in found.lonely.items():
        grouped.setdefault((f"{point.test} ({point.method})", names), []).append(point)
    return tuple(Lonely(_points(test, points), names) for (test, names), points in grouped.items())


_MOST_POINTS = 6


def _points(test: str, points: Sequence[Point]) -> str:
    words = [
        ", ".join(
            f"{name.removesuffix('_bytes').replace('_', ' ')} {value}"
            for name, value in point.parameters
            if name != "part"
        )
        for point in points
    ]
    shown = [text for text in dict.fromkeys(words) if text]
    more = f"; and {len(shown) - _MOST_POINTS} more" if len(shown) > _MOST_POINTS else ""
    return f"{test}: {'; '.join(shown[:_MOST_POINTS])}{more}" if shown else test


def _list_published(entries: Sequence[Entry]) -> tuple[PublishedSource, ...]:
    grouped: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.imported is not None:
            grouped.setdefault(entry.run_id, []).append(entry)
    return tuple(
        PublishedSource(
            names=tuple(entry.name for entry in members),
            source=members[0].imported.named if members[0].imported else "",
            data_set=members[0].data_set,
            notes=members[0].notes,
            errata=errata_rows([result for entry in members for result in entry.results]),
        )
        for members in grouped.values()
    )
