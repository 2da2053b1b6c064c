"""The tables that stand first on the page of a comparison: what is compared, and in what it differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nicbench import __version__
from nicbench.compare.entries import Entry, Origin, Setting, Settings
from nicbench.compare.matching import MatchedEntries, Point, merge_summaries, plan_of_all, unify_scopes
from nicbench.compare.objections import Objection
from nicbench.compare.run_differences import shorten_apart
from nicbench.core.result import Summary
from nicbench.core.turn import DEFAULT
from nicbench.core.units import format_bits_per_s
from nicbench.report.answer.of_comparison import FEW, sentences
from nicbench.report.comparison import Comparison, comparison
from nicbench.report.editors import Study, is_summed_up, studies
from nicbench.report.entry_values import ChangeTable, ValueTable, change_table, value_tables
from nicbench.report.imported import ErratumRow, errata_rows
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN
from nicbench.report.section import Section
from nicbench.report.statistics import statistics_view

_LONGEST = 90


HEADS: Final = ("Device", "Machine", "Link", "Made", "Runs", "Verdict")
"""The headings of the facts about each entry."""


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One entry; ``told`` maps each of ``HEADS`` to its text, which is a dash where the fact is unknown."""

    number: int
    name: str
    run: str
    told: Mapping[str, str]


def entry_rows(entries: Sequence[Entry]) -> tuple[EntryRow, ...]:
    """Returns a row for each entry, in the order in which the entries are compared."""
    return tuple(
        EntryRow(
            number=number,
            name=entry.name,
            run=entry.run_id if entry.configuration == DEFAULT else f"{entry.run_id}: {entry.configuration}",
            told=dict(zip(HEADS, _texts_of(entry), strict=True)),
        )
        for number, entry in enumerate(entries, 1)
    )


def columns_of(rows: Sequence[EntryRow]) -> tuple[str, ...]:
    """Returns the headings under which entries differ; what all entries share stands once before the table."""
    return tuple(head for head in HEADS if len({row.told[head] for row in rows}) > 1)


def _texts_of(entry: Entry) -> tuple[str, ...]:
    machine = "; ".join(text for kind in ("processor", "kernel") for text in entry.machines.get(kind, ()))
    made = f"{entry.minute} UTC" if entry.minute else _year(entry)
    return _device(entry), machine or UNKNOWN, _link(entry), made, str(entry.runs), entry.verdict.value


def _year(entry: Entry) -> str:
    return str(entry.imported.year) if entry.imported is not None and entry.imported.year is not None else UNKNOWN


def _device(entry: Entry) -> str:
    if entry.imported is not None:
        return entry.imported.device or (entry.configuration if entry.configuration != DEFAULT else UNKNOWN)
    plan = entry.plan
    kind = plan.dut.get("kind") if plan is not None else None
    parts = [str(kind)] if kind else []
    if entry.origin is not Origin.SIMULATED:
        parts += entry.machines.get("card", ())
    return "; ".join(parts) or UNKNOWN


def _link(entry: Entry) -> str:
    plan = entry.plan
    if plan is None or plan.link_bits_per_s is None:
        return "; ".join(entry.links) or UNKNOWN
    speed = format_bits_per_s(plan.link_bits_per_s)
    return f"{speed}, simulated" if plan.simulated else f"{speed}, nominal" if plan.link_is_nominal else speed


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting that differs. ``texts`` has its value for each entry; ``groups`` has each distinct value with the
    names of the entries that have it.
    """

    setting: str
    where: str
    why: str
    texts: tuple[str, ...]
    groups: tuple[tuple[str, tuple[str, ...]], ...]


def setting_rows(found: Sequence[Setting], names: Sequence[str]) -> tuple[SettingRow, ...]:
    """Returns a row for each setting; ``names`` are those of the entries that disclose any settings."""
    rows = []
    for one in found:
        texts = shorten_apart(one.values, one.path, _LONGEST)
        groups: dict[str, list[str]] = {}
        for text, name in zip(texts, names, strict=True):
            groups.setdefault(text, []).append(name)
        turned = tuple((text, tuple(who)) for text, who in sorted(groups.items(), key=lambda item: -len(item[1])))
        rows.append(SettingRow(one.path, ", ".join(one.places), one.why, texts, turned))
    return tuple(rows)


SERIES = 7
"""The number of lines or bars that a reader can distinguish in one chart; more are drawn as small multiples and shown
as a heat table.
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
    kept = [
        section for section in compared.sections if not is_summed_up(section.rows[0].result.method, section.table.part)
    ]
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
        groups={},
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
