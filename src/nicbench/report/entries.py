"""The tables that stand first on the page of a comparison: what is compared, and in what it differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from nicbench import __version__
from nicbench.compare.entries import Entry, Origin, Settings
from nicbench.compare.matching import MatchedEntries, Point, merge_summaries, plan_of_all, unify_scopes
from nicbench.compare.objections import Objection
from nicbench.compare.run_differences import Difference, shorten_apart
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.core.turn import DEFAULT
from nicbench.core.units import format_bits_per_s
from nicbench.report.answer.of_comparison import FEW, sentences
from nicbench.report.comparison import Comparison, comparison
from nicbench.report.editors import is_summed_up, studies
from nicbench.report.entry_values import ChangeTable, ValueTable, change_table, value_tables
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN
from nicbench.report.section import Section
from nicbench.report.statistics import statistics_view
from nicbench.report.wording import first_few

_LONGEST = 90


HEADS: Final = ("Device", "Machine", "Link", "Made", "Runs", "Verdict")
"""The headings of the facts about each entry."""


def facts_of(entry: Entry) -> dict[str, str]:
    """Returns the text of each of ``HEADS``, which is a dash where the fact is unknown."""
    machine = "; ".join(text for kind in ("processor", "kernel") for text in entry.machines.get(kind, ()))
    year = entry.imported.year if entry.imported is not None else None
    made = f"{entry.minute} UTC" if entry.minute else str(year or UNKNOWN)
    texts = _device(entry), machine or UNKNOWN, _link(entry), made, str(entry.runs), entry.verdict.value
    return dict(zip(HEADS, texts, strict=True))


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


class SettingRow(NamedTuple):
    """One setting that differs. ``texts`` has its value for each entry; ``groups`` has each distinct value with the
    names of the entries that have it.
    """

    setting: str
    where: str
    why: str
    texts: tuple[str, ...]
    groups: tuple[tuple[str, Sequence[str]], ...]


def setting_rows(found: Sequence[Difference], names: Sequence[str]) -> tuple[SettingRow, ...]:
    """Returns a row for each setting; ``names`` are those of the entries that disclose any settings."""
    rows = []
    for one in found:
        texts = shorten_apart(one.values, one.path, _LONGEST)
        groups = grouped(zip(texts, names, strict=True))
        commonest = tuple(sorted(groups.items(), key=lambda item: -len(item[1])))
        rows.append(SettingRow(one.path, ", ".join(one.places), one.why, texts, commonest))
    return tuple(rows)


SERIES = 7
"""The number of lines or bars that a reader can distinguish in one chart; more are drawn as small multiples and shown
as a heat table.
"""
_SETTINGS_OPEN = 12


class Lonely(NamedTuple):
    """A point that not every entry has, and the names of the entries that have it."""

    words: str
    names: tuple[str, ...]


@frozen
class Page:
    """Everything on the page; ``report`` is what the sections that it shares with a report are made from. ``against``
    are the objections to the comparison; those that would block it were overridden by force.
    """

    report: Report
    found: MatchedEntries
    against: Sequence[Objection]
    known: Settings
    remarks: Sequence[str]
    """Further things to know."""
    tables: tuple[ValueTable, ...]
    changes: ChangeTable | None
    """What the page opens with; None where there are more entries than a table has columns for."""
    lonely: tuple[Lonely, ...]
    command: str

    @property
    def entries(self) -> Sequence[Entry]:
        """The entries in the order in which they are compared."""
        return self.found.entries

    @property
    def forced(self) -> tuple[str, ...]:
        """The objections that the user overruled."""
        return tuple(one.text for one in self.against if one.blocks)

    @property
    def told(self) -> tuple[str, ...]:
        """What a reader must know before drawing conclusions."""
        return (*(one.text for one in self.against if not one.blocks), *self.remarks, *self.found.remarks)

    @property
    def settings(self) -> tuple[SettingRow, ...]:
        """The settings that differ and matter most."""
        return setting_rows(self.known.main[:_SETTINGS_OPEN], self.known.of)

    @property
    def more_settings(self) -> tuple[SettingRow, ...]:
        """The other settings that differ."""
        return setting_rows((*self.known.main[_SETTINGS_OPEN:], *self.known.others), self.known.of)

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
    """Returns the page of a comparison."""
    entries = found.entries
    summary = unify_scopes(merge_summaries(found, title))
    statistics = statistics_view(summary, {}, None, " ".join(sorted(entry.run_id for entry in entries)))
    plan = plan_of_all(entries, title)
    compared = comparison(summary, {}, plan, statistics)
    assert compared is not None  # noqa: S101 - of two entries at least
    of_editors = studies(summary.counted, {}, summary.configurations)
    compared = _drop_details(compared, len(entries) > SERIES)
    compared, lonely_goals = _select_shared_goals(compared)
    tables = value_tables(summary)
    headline, *details = sentences(compared, of_editors, tables, entries)
    report = Report(
        run_id="",
        title=summary.title,
        nicbench_version=__version__,
        verdict=summary.verdict,
        headline=headline,
        details=tuple(details),
        plan=plan,
        comparison=compared,
        studies=of_editors,
        statistics=None if statistics.is_empty else statistics,
    )
    changes = change_table(compared, tables, statistics) if len(entries) <= FEW else None
    lonely = (*_lonely(found), *lonely_goals)
    return Page(report, found, against, known, remarks, tables, changes, lonely, command)


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


def _lonely(found: MatchedEntries) -> tuple[Lonely, ...]:
    """Groups lonely points by the entries that have them, so that a test which only one entry has takes one line."""
    groups = grouped(((f"{point.test} ({point.method})", names), point) for point, names in found.lonely.items())
    return tuple(Lonely(_points(test, points), names) for (test, names), points in groups.items())


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
    return f"{test}: {first_few(shown, _MOST_POINTS, '; ', '; and {} more')}" if shown else test
