"""What a comparison of runs found, in words. Of a few entries, each number is named; of many, the highest, the lowest,
and which entries stand apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nicbench.compare.claims import Basis
from nicbench.compare.compared import PointComparison
from nicbench.compare.entry import Entry
from nicbench.compare.objections import MOST_NAMED, list_names
from nicbench.core.result import PASSES_NOTHING, ResultVerdict
from nicbench.core.table import Goal
from nicbench.core.units import format_digits
from nicbench.report.answer import of_comparison, of_studies
from nicbench.report.answer.sentences import and_list
from nicbench.report.beside.values import ValueTable
from nicbench.report.comparison import Comparison
from nicbench.report.editors.study import Study
from nicbench.report.rates import RateCell, RatesRow, RatesTable, pair_of

FEW = 4
"""The most entries for which each has a column of its own."""
_SPOKEN = 2
"""The most entries for which the first sentence names each number and compares the entries with each other."""
_GAP = "\u00a0"
_REASONS: Final = {
    Basis.INTERVALS_OVERLAP: "and their intervals overlap",
    Basis.SEARCHES_OVERLAP: "which differ by less than the intervals within which they were found",
    Basis.TOO_FEW: "and there is neither an interval of each nor are there enough runs",
    Basis.DISTURBED: "and results were disturbed",
}
"""Why no difference is claimed, where the runs alone do not say it."""
_NOTHING = "Nothing was measured that could be compared"


def sentences(
    compared: Comparison, studies: Sequence[Study], tables: Sequence[ValueTable], entries: Sequence[Entry]
) -> tuple[str, ...]:
    """Returns the sentences about the comparison, of which the first is the answer."""
    if len(entries) <= _SPOKEN:
        said = list(of_studies.answers(studies))
        if compared.rates or _states(compared) or not said:
            if compared.rates or _states(compared) or not tables:
                headline = _of_two(compared) or of_comparison.headline(compared)
                said = [headline, *of_comparison.details(compared), *said]
            else:
                said = [*(_extremes(table, 0) for table in tables[:1]), *said]
    else:
        said = [_of_many(table, table.rows[0]) for table in compared.rates[:1] if table.rows]
        others = [table for table in tables if not table.is_searched][: 1 if said else 2]
        said += [_extremes(table, 0) for table in others]
        said += of_studies.answers(studies) if len(entries) <= FEW else ()
        said = said or [f"{len(entries)} entries side by side."]
    if said[0].startswith(_NOTHING) and (compared.tails or _states(compared)):
        said[0] = f"{list_names([entry.name for entry in entries])} are compared in the tables below, point by point."
    return (*said, *_compare_published(compared, entries))


def _of_two(compared: Comparison) -> str | None:
    """Compares the first rate of two entries in one sentence: how far they differ, or why no difference can be claimed.
    None where there is no searched rate of both, and where the runs decide, which have a sentence of their own.
    """
    table = next((table for table in compared.rates if table.rows), None)
    if table is None:
        return None
    row, goal = table.rows[0], table.goals[0]
    cells, told = row.cells[goal.value], row.told[goal.value]
    if len(cells) != 2 or len(told) != 1 or any(cell.rate_frames_per_s is None for cell in cells):
        return None
    one = told[0]
    counted = {cell.configuration: cell.measured for cell in cells}
    many = of_comparison.words_of_medians(counted, table.runs) if table.runs > 1 else "one run each"
    rates = {cell.configuration: _rate(table, goal, cell) for cell in cells}
    behind = f"({goal.name}{f', {many}' if many else ''})"
    if one.claim.basis is Basis.INTERVALS and one.claim.spans is not None:
        higher, lower = one.claim.higher or "", one.claim.lower or ""
        above, below = one.claim.spans if one.comparison.first.name == higher else one.claim.spans[::-1]
        factor = of_comparison.factor_words(above, below)
        return (
            f"With {row.size_name} frames, “{higher}” passes {factor} times as much {goal.clause} as “{lower}”: "
            f"{rates[higher]} against {rates[lower]} {behind}, and their intervals do not overlap."
        )
    reason = _REASONS.get(one.claim.basis)
    if reason is None:
        return None
    passed = and_list([f"“{name}” passes {rate}" for name, rate in rates.items()])
    return f"No difference can be claimed with {row.size_name} frames: {passed} {goal.clause} {behind}, {reason}."


def _of_many(table: RatesTable, row: RatesRow) -> str:
    """Names the highest and the lowest rate and those of which only a bound is known, and says of how many others the
    highest is shown to pass more.
    """
    goal = table.goals[0]
    cells = [cell for cell in row.cells[goal.value] if cell.results]
    known = [cell for cell in cells if cell.rate_frames_per_s is not None]
    if not known or len(cells) < 2:
        return f"For {row.size_name} frames, no two rates are known."
    ranked = sorted(known, key=lambda cell: (-(cell.rate_frames_per_s or 0.0), _is_disturbed(cell)))
    most = ranked[0]
    exact = [cell for cell in ranked[1:] if not cell.text.startswith("≥")]
    bounds = [cell for cell in cells if cell is not most and cell not in exact]
    told = [f"“{most.configuration}” passes the most {goal.clause}: {_rate(table, goal, most)}"]
    if exact:
        of_known = " of those whose rate is known" if bounds else ""
        told.append(f"“{exact[-1].configuration}” the least{of_known}: {_rate(table, goal, exact[-1])}")
    told += [f"“{cell.configuration}” {_bound_words(table, goal, cell)}" for cell in bounds[:MOST_NAMED]]
    if len(bounds) > MOST_NAMED:
        told.append(f"of {len(bounds) - MOST_NAMED} more only a bound is known")
    said = f"For {row.size_name} frames, {'; '.join(told)} ({goal.name}, {len(cells)} entries)."
    shown = [_is_shown_above(most, cell, goal, row.told[goal.value]) for cell in cells if cell is not most]
    why = "disturbed or without an interval"
    above, alike, open_ = (shown.count(answer) for answer in (True, False, None))
    if open_ == len(shown):
        return f"{said} No difference of the highest to the others can be claimed: {why}."
    more = f" Of {open_} nothing can be claimed: {why}." if open_ else ""
    if not above:
        return f"{said} No difference of the highest to the others is shown.{more}"
    if above == len(shown):
        return f"{said} The highest is shown to pass more than all others."
    rest = f"; no difference to the remaining {_one_or(alike)} is shown" if alike else ""
    return f"{said} The highest is shown to pass more than {_one_or(above)} of the others{rest}.{more}"


def _is_disturbed(cell: RateCell) -> bool:
    return any(result.verdict is ResultVerdict.DISTURBED for result in cell.results)


def _bound_words(table: RatesTable, goal: Goal, cell: RateCell) -> str:
    """Says what is known of a rate that has no number, or one that the true rate may exceed."""
    if cell.text.startswith(PASSES_NOTHING):
        return "passes nothing"
    if cell.rate_frames_per_s is not None:
        return f"passes {_rate(table, goal, cell)}"
    below = table.below_text(goal, cell)
    return "passes an unknown rate" if below is None else f"passes less than {below}"


def _one_or(number: int) -> str:
    return "one" if number == 1 else str(number)


def _is_shown_above(most: RateCell, other: RateCell, goal: Goal, told: Sequence[PointComparison]) -> bool | None:
    """Whether the one rule of claims shows that the highest passes more than another; None where nothing can be said.

    Pairs of many entries are not compared one by one: of these the intervals of all runs tell.
    """
    pair = pair_of(other.configuration, most.configuration, told)
    if pair is not None:
        if pair.claim.basis in (Basis.DISTURBED, Basis.TOO_FEW):
            return None
        return pair.claim.basis.is_shown and pair.claim.higher == most.configuration
    if _is_disturbed(most) or _is_disturbed(other) or most.span is None or other.span is None:
        return None
    return most.span.is_above(other.span)


def _rate(table: RatesTable, goal: Goal, cell: RateCell) -> str:
    bound = "at least " if cell.text.startswith("≥") else "the line rate, " if cell.text.startswith("line") else ""
    return f"{bound}{table.rate_text(goal, cell)}"


def _states(compared: Comparison) -> bool:
    """Returns whether any section states values of frames at a load."""
    return any(section.table.apart_by for section in compared.sections)


def _extremes(table: ValueTable, column: int) -> str:
    """Says between which numbers a value lies, without claiming a difference."""
    known = [(cells[column].number, name, cells[column].text) for name, cells in table.rows.items()]
    numbers = [(number, name, text) for number, name, text in known if number is not None]
    if not numbers:
        return f"{table.head} of {table.test} is not known."
    least, most = min(numbers), max(numbers)
    unit = f"{_GAP}{table.unit}" if table.unit else ""
    own = table.head.lower().startswith(table.test.lower())
    head = table.head if own else f"{table.test}, {table.head}"
    low, high = (f"{text}{unit} (“{name}”)" for _, name, text in (least, most))
    point = table.points[column]
    at = f"{point} bytes" if point.isdigit() else point
    return f"{head[:1].upper()}{head[1:]} at {at}: from {low} to {high}."


def _compare_published(compared: Comparison, entries: Sequence[Entry]) -> tuple[str, ...]:
    """Compares published rates with measured ones: says how many times as much was measured, and that no interval backs
    it.
    """
    foreign = {entry.name for entry in entries if entry.imported is not None}
    own = [entry.name for entry in entries if entry.imported is None]
    found: list[str] = []
    for table in compared.rates[:1]:
        goal = table.goals[0]
        rows = [row for row in table.rows if _pair(row, goal.value, own, foreign) is not None]
        for row in dict.fromkeys((rows[0].size, rows[-1].size)) if rows else ():
            pair = _pair(next(one for one in rows if one.size == row), goal.value, own, foreign)
            assert pair is not None  # noqa: S101 - of the rows that have one
            mine, theirs = pair
            times = (mine.rate_frames_per_s or 0.0) / (theirs.rate_frames_per_s or 1.0)
            figures = f"{_rate(table, goal, mine)} and {_rate(table, goal, theirs)}"
            size = f"{row}-byte" if row.isdigit() else row
            found.append(
                f"Of {size} frames “{mine.configuration}” passes {format_digits(times)} times the figure of "
                f"“{theirs.configuration}” ({figures}; {goal.name}). That is a ratio of two "
                "numbers and no claim: how exact the published one is, its source does not say."
            )
    return tuple(found)


def _pair(row: RatesRow, goal: str, own: Sequence[str], foreign: set[str]) -> tuple[RateCell, RateCell] | None:
    cells = row.cells[goal]
    mine = next((cell for cell in cells if cell.configuration in own and cell.rate_frames_per_s), None)
    theirs = next((cell for cell in cells if cell.configuration in foreign and cell.rate_frames_per_s), None)
    return None if mine is None or theirs is None else (mine, theirs)


def title_of(entries: Sequence[Entry]) -> str:
    """Returns the title of the page for the case that the user gives none."""
    names = [entry.name for entry in entries]
    titles = {entry.title for entry in entries}
    if len(titles) == 1 and not any(entry.is_named for entry in entries):
        runs = len({entry.run_id for entry in entries})
        return f"{titles.pop()}: {f'{runs} runs' if runs > 1 else f'{len(names)} configurations'} side by side"
    return f"{list_names(names[:3])} side by side" if len(names) <= 3 else f"{len(names)} results side by side"
