"""The answer of a comparison of configurations: the number of each, and a difference only where the
intervals show it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from nicbench.compare.claims import Basis, PointComparison
from nicbench.compare.entries import Entry
from nicbench.compare.objections import MOST_NAMED, list_names
from nicbench.core.result import Result, ResultVerdict, Spread, number_of
from nicbench.core.table import Goal
from nicbench.core.units import and_list, count_of, decimals_above_one, format_digits
from nicbench.report.answer import of_run
from nicbench.report.answer.sentences import state_rows
from nicbench.report.comparison import Comparison
from nicbench.report.editors import Study
from nicbench.report.entry_values import ValueTable
from nicbench.report.numbers import significant, speak_number
from nicbench.report.rates import Bound, RateCell, RatesRow, RatesTable, pair_of
from nicbench.report.section import Row, Section
from nicbench.report.tables import CONFIGURATION, configuration_of
from nicbench.report.wording import capitalise
from nicbench.stats.sample import Span

_SPOKEN_OUT: Final = 2
"""The most configurations of which each has a verb of its own."""
_MOST_PAIRS: Final = 3
"""The most pairs of configurations, those of three, that are all compared in words."""
_MOST_TOLD = 4
"""The most configurations that get a sentence each; where there are more, the tables have them."""


def headline(comparison: Comparison) -> str:
    """Returns the first sentence: the rates of the smallest frames for the first goal, or the statement of a method, or
    what the first section with a sentence says of each configuration.
    """
    return _headline(comparison) or _explain_nothing_compared(comparison)


def _headline(comparison: Comparison) -> str | None:
    for table in comparison.rates:
        for goal in table.goals:
            if table.rows:
                return rates_sentence(table, table.rows[0], goal)
    stating = _stating(comparison)
    if stating is not None:
        return statement_of_each(stating, comparison)
    return " ".join(_of_each(_first_telling(comparison)))


def details(comparison: Comparison) -> tuple[str, ...]:
    """Returns the further sentences: the other goals, the largest frames, and the latency."""
    sentences = []
    stating = _stating(comparison)
    if comparison.rates:
        table = comparison.rates[0]
        sentences += [rates_sentence(table, table.rows[0], goal) for goal in table.goals[1:]]
        if len(table.rows) > 1:
            sentences.append(rates_sentence(table, table.rows[-1], table.goals[0]))
        if stating is not None:
            sentences.append(statement_of_each(stating, comparison) or "")
    elif stating is None:
        first = _first_telling(comparison)
        for section in comparison.sections:
            if section is not first:
                sentences += _of_each(section)
    return tuple(sentence for sentence in sentences if sentence)


def _stating(comparison: Comparison) -> Section | None:
    """Returns the first section with a statement; of several loads, that is the load that was measured first."""
    return next((section for section in comparison.sections if section.table.apart_by), None)


def _first_telling(comparison: Comparison) -> Section | None:
    """Returns the section that gives the answer where neither a frame rate nor a latency was measured."""
    return next((section for section in comparison.sections if section.sentence), None)


def _of_each(section: Section | None) -> list[str]:
    """Returns what a section says of each configuration; where there are too many for sentences, of the first, and
    where the others are.
    """
    if section is None:
        return []
    names = list(dict.fromkeys(row.result.parameters.get(CONFIGURATION) for row in section.rows))
    said = []
    for name in names[: _MOST_TOLD if len(names) <= _MOST_TOLD else 1]:
        rows, brief = (
            tuple(row for row in part if row.result.parameters.get(CONFIGURATION) == name)
            for part in (section.rows, section.brief)
        )
        sentence = replace(section, rows=rows, brief=brief).sentence
        if sentence:
            said.append(f"{quote_name(str(name)) if name else 'The DUT'} {sentence}.")
    if said and len(names) > _MOST_TOLD:
        said.append(f"The tables below have the other {len(names) - 1} configurations.")
    return said


def sentences_of_rates(table: RatesTable) -> tuple[str, ...]:
    """Returns, for each goal, the sentences about the smallest and the largest frames."""
    ends = (table.rows[0], table.rows[-1]) if table.rows else ()
    return tuple(dict.fromkeys(rates_sentence(table, row, goal) for goal in table.goals for row in ends))


def _explain_nothing_compared(comparison: Comparison) -> str:
    if not comparison.sections:
        return "Nothing was measured that could be compared."
    if not comparison.compares:
        return f"{comparison.runs} runs were measured; the tables below give the median and range of each value."
    quoted = and_list([quote_name(name) for name in comparison.names])
    return f"{quoted} were measured side by side; the tables and curves below compare them."


def rates_sentence(table: RatesTable, row: RatesRow, goal: Goal) -> str:
    """Returns a sentence with each configuration's rate, and then which configurations differ."""
    cells = row.cells[goal.value]
    counted = {cell.configuration: cell.measured for cell in cells if cell.measured}
    many = words_of_medians(counted, table.runs) if table.runs > 1 else "one run each" if len(cells) > 1 else ""
    subjects = [_subject(cell, cells) for cell in cells]
    if len(cells) > _SPOKEN_OUT:
        subjects[1:] = [quote_name(cell.configuration) for cell in cells[1:]]
    rates = and_list([f"{subject} {_rate(table, goal, cell)}" for subject, cell in zip(subjects, cells, strict=True)])
    told = f" ({goal.name}{f', {many}' if many else ''})"
    verdicts = {result.verdict for cell in cells for result in cell.results}
    disturbed = " Not reliable: some of the trials were disturbed." if ResultVerdict.DISTURBED in verdicts else ""
    return f"With {row.size_name} frames, {rates} {goal.clause}{told}.{_compare_pairs(row.told[goal.value])}{disturbed}"


def _subject(cell: RateCell, cells: Sequence[RateCell]) -> str:
    return f"{quote_name(cell.configuration)} passes" if len(cells) > 1 else "the DUT passes"


def _runs_of(value: str, rows: Sequence[Row], runs: int) -> dict[str, int]:
    """Returns for each configuration how many of its runs have the value; ``runs`` is the most that any has made."""
    return {configuration_of(row.result): _count_runs(row.result, value, runs) for row in rows}


def _count_runs(result: Result, value: str, runs: int) -> int:
    found = result.values.get(value)
    if isinstance(found, Spread):
        return found.n
    if result.run is not None:  # of one run
        return 1
    # A value that is equal in all runs is no spread (stats/runs.py); others of the result say how many runs there are.
    return next((other.runs for other in result.values.values() if isinstance(other, Spread)), runs)


def words_of_medians(counted: Mapping[str, int], runs: int) -> str:
    """Says of how many runs the numbers are medians, for each configuration where these differ: not every run that was
    made has every value.
    """
    counts = set(counted.values())
    if len(counts) > 1:
        of_each = [f"{count_of(count, 'run')} of {quote_name(name)}" for name, count in counted.items()]
        return f"medians: {and_list(of_each)}"
    count = counts.pop() if counts else 0
    if count < 2:
        return f"one of {runs} runs{' each' if len(counted) > 1 else ''}" if count else ""
    return f"median of {count if count == runs else f'{count} of {runs}'} runs"


def quote_name(configuration: str) -> str:
    """Returns the name in quotation marks, because the author of the bench file chose it."""
    return f"“{configuration}”"


def _rate(table: RatesTable, goal: Goal, cell: RateCell) -> str:
    """Returns the rate of a cell, with the reason of an unknown one in brackets."""
    is_known = cell.rate_frames_per_s is not None or cell.below_frames_per_s is not None
    reason = "" if is_known else f" ({cell.text if cell.passes_nothing is None else cell.passes_nothing})"
    return f"{table.speak_rate(goal, cell)}{reason}"


_NOT_SHOWN: Final = {
    Basis.NOT_BY_RUNS: "For {names} no difference from {first} is shown: the runs do not show one.",
    Basis.SEARCHES_OVERLAP: "For {names} no difference from {first} is shown: the rates were not found exactly enough.",
    Basis.INTERVALS_OVERLAP: "For {names} no difference from {first} is shown: the intervals overlap.",
    Basis.DISTURBED: "For {names} no difference from {first} can be claimed: results were disturbed.",
}


def _compare_pairs(told: Sequence[PointComparison]) -> str:
    """Says how many times as much one configuration passes as another, or that no difference is shown: of few pairs for
    each, of more for those with the first configuration.
    """
    said = _compare_with_first(told) if len(told) > _MOST_PAIRS else [text for text in map(_compare_two, told) if text]
    return f" {' '.join(said)}" if said else ""


def _compare_with_first(told: Sequence[PointComparison]) -> list[str]:
    """Compares each configuration with the first: first those of which a difference is shown, then the others, with one
    sentence for each reason.
    """
    first = told[0].comparison.first.name
    with_first = [one for one in told if one.comparison.first.name == first]
    said = [_compare_two(one) for one in with_first if one.claim.basis.is_shown]
    for basis, text in _NOT_SHOWN.items():
        names = [quote_name(one.comparison.second.name) for one in with_first if one.claim.basis is basis]
        if names:
            said.append(text.format(names=and_list(names), first=quote_name(first)))
    return said


def factor_words(above: Span, below: Span) -> str:
    """Returns how many times the lower rate the higher one is, as two bounds or as the least: "1.10 to 1.12".

    The least has as many decimals as show that it is more than 1: "1.002 to 1.038".
    """
    least, most = above.times(below)
    decimals = decimals_above_one(least)
    if math.isinf(most):
        return f"at least {speak_number(least) if decimals is None else f'{least:.{decimals}f}'}"
    bounds = (significant(one) if decimals is None else f"{one:.{decimals}f}" for one in (least, most))
    return " to ".join(dict.fromkeys(bounds))


def _compare_two(one: PointComparison) -> str:
    """Words the claim about one pair: from its runs as all comparisons do, or, where there are few runs, from the
    intervals of the searched rates.
    """
    claim = one.claim
    if claim.basis is Basis.TOO_FEW:
        return ""
    first, second = one.comparison.first.name, one.comparison.second.name
    if claim.spans is None or claim.basis not in (Basis.INTERVALS, Basis.INTERVALS_OVERLAP):
        said = one.claim_text
        return f"{capitalise(said)}."
    if claim.higher is None:
        return f"{quote_name(first)} and {quote_name(second)} show no difference: their intervals overlap."
    factor = factor_words(*(claim.spans if claim.higher == first else claim.spans[::-1]))
    much = f"{quote_name(claim.higher)} passes {factor} times as much as {quote_name(claim.lower or '')}"
    return f"{much}; their intervals do not overlap."


def statement_of_each(section: Section, comparison: Comparison) -> str | None:
    """Returns the statement for the smallest frame size that all configurations have, or None. It
    claims no difference, because a stated value has no interval for the DUT.
    """
    statement = section.table.statement
    if statement is None:
        return None
    sizes = dict.fromkeys(row.cells[0] for row in section.rows)
    for size in sizes:
        rows = [row for row in section.rows if row.cells[0] == size]
        if all(number_of(row.result.values.get(statement.value)) is not None for row in rows):
            names = [configuration_of(row.result) if comparison.compares else "" for row in rows]
            notes = ["of each configuration’s own rate"] if comparison.compares else []
            notes += (
                [words_of_medians(_runs_of(statement.value, rows, comparison.runs), comparison.runs)]
                if comparison.runs > 1
                else []
            )
            return state_rows(section, rows, names, notes)
    return None


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


def sentences(
    compared: Comparison, studies: Sequence[Study], tables: Sequence[ValueTable], entries: Sequence[Entry]
) -> tuple[str, ...]:
    """Returns the sentences about the comparison, of which the first is the answer."""
    if len(entries) <= _SPOKEN:
        said = list(of_run.answers(studies))
        if compared.rates or _states(compared) or not said:
            if compared.rates or _states(compared) or not tables:
                first = _of_two(compared) or _headline(compared)
                if not first and compared.tails and not compared.sections:
                    names = list_names([entry.name for entry in entries])
                    first = f"{names} are compared in the tables below, point by point."
                first = first or _explain_nothing_compared(compared)
                said = [first, *details(compared), *said]
            else:
                said = [*(_extremes(table, 0) for table in tables[:1]), *said]
    else:
        said = [_of_many(table, table.rows[0]) for table in compared.rates[:1] if table.rows]
        others = [table for table in tables if not table.is_searched][: 1 if said else 2]
        said += [_extremes(table, 0) for table in others]
        said += of_run.answers(studies) if len(entries) <= FEW else ()
        said = said or [f"{len(entries)} entries side by side."]
    return (*said, *_compare_published(compared, entries))


def _of_two(compared: Comparison) -> str | None:
    """Compares the first rate of two entries in one sentence: how far they differ, or why no difference can be claimed.
    Returns None unless both have a searched rate, and where the runs decide, which have a sentence of their own.
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
    many = words_of_medians(counted, table.runs) if table.runs > 1 else "one run each"
    rates = {cell.configuration: table.speak_rate(goal, cell) for cell in cells}
    behind = f"({goal.name}{f', {many}' if many else ''})"
    if one.claim.basis is Basis.INTERVALS and one.claim.spans is not None:
        higher, lower = one.claim.higher or "", one.claim.lower or ""
        above, below = one.claim.spans if one.comparison.first.name == higher else one.claim.spans[::-1]
        factor = factor_words(above, below)
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
    exact = [cell for cell in ranked[1:] if cell.bound is not Bound.AT_LEAST]
    bounds = [cell for cell in cells if cell is not most and cell not in exact]
    told = [f"“{most.configuration}” passes the most {goal.clause}: {table.speak_rate(goal, most)}"]
    if exact:
        of_known = " of those whose rate is known" if bounds else ""
        told.append(f"“{exact[-1].configuration}” the least{of_known}: {table.speak_rate(goal, exact[-1])}")
    told += [f"“{cell.configuration}” passes {table.speak_rate(goal, cell)}" for cell in bounds[:MOST_NAMED]]
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


def _one_or(number: int) -> str:
    return "one" if number == 1 else str(number)


def _is_shown_above(most: RateCell, other: RateCell, goal: Goal, told: Sequence[PointComparison]) -> bool | None:
    """Whether the one rule of claims shows that the highest passes more than another; None if the rule does not apply.

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
    return f"{capitalise(head)} at {at}: from {low} to {high}."


def _compare_published(compared: Comparison, entries: Sequence[Entry]) -> tuple[str, ...]:
    """Compares published rates with measured ones: says how many times as much was measured, and that no interval backs
    it.
    """
    foreign = {entry.name for entry in entries if entry.imported is not None}
    own = [entry.name for entry in entries if entry.imported is None]
    found = []
    for table in compared.rates[:1]:
        goal = table.goals[0]
        rows = [row for row in table.rows if _pair(row, goal.value, own, foreign) is not None]
        for row in dict.fromkeys((rows[0].size, rows[-1].size)) if rows else ():
            pair = _pair(next(one for one in rows if one.size == row), goal.value, own, foreign)
            assert pair is not None  # noqa: S101 - of the rows that have one
            mine, theirs = pair
            times = (mine.rate_frames_per_s or 0.0) / (theirs.rate_frames_per_s or 1.0)
            figures = f"{table.speak_rate(goal, mine)} and {table.speak_rate(goal, theirs)}"
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
        runs = len({part.run_id for entry in entries for part in entry.parts or (entry,)})
        return f"{titles.pop()}: {f'{runs} runs' if runs > 1 else f'{len(names)} configurations'} side by side"
    return f"{list_names(names[:3])} side by side" if len(names) <= 3 else f"{len(names)} results side by side"
