"""The answer of a comparison of configurations: the number of each, and a difference only where the
intervals show it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from nicbench.compare.claims import Basis
from nicbench.compare.compared import PointComparison
from nicbench.core.result import PASSES_NOTHING, Result, ResultVerdict, Spread, number_of
from nicbench.core.table import Goal
from nicbench.core.units import decimals_above_one
from nicbench.report.answer.sentences import and_list, state_rows
from nicbench.report.comparison import Comparison
from nicbench.report.numbers import significant, speak_number
from nicbench.report.rates import RateCell, RatesRow, RatesTable
from nicbench.report.section import Row, Section
from nicbench.report.tables import CONFIGURATION, configuration_of
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
    for table in comparison.rates:
        for goal in table.goals:
            if table.rows:
                return rates_sentence(table, table.rows[0], goal)
    stating = _stating(comparison)
    if stating is not None:
        return statement_of_each(stating, comparison) or _explain_nothing_compared(comparison)
    return " ".join(_of_each(_first_telling(comparison))) or _explain_nothing_compared(comparison)


def details(comparison: Comparison) -> tuple[str, ...]:
    """Returns the further sentences: the other goals, the largest frames, and the latency."""
    sentences: list[str] = []
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
    """Returns a sentence with each configuration's rate, and then which configurations are told apart."""
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
        of_each = [f"{count} run{'s' if count > 1 else ''} of {quote_name(name)}" for name, count in counted.items()]
        return f"medians: {and_list(of_each)}"
    count = counts.pop() if counts else 0
    if count < 2:
        return f"one of {runs} runs{' each' if len(counted) > 1 else ''}" if count else ""
    return f"median of {count if count == runs else f'{count} of {runs}'} runs"


def quote_name(configuration: str) -> str:
    """Returns the name in quotation marks, because the author of the bench file chose it."""
    return f"“{configuration}”"


def _rate(table: RatesTable, goal: Goal, cell: RateCell) -> str:
    if cell.text.startswith(PASSES_NOTHING):
        return f"nothing ({cell.text.removeprefix(f'{PASSES_NOTHING}: ')})"
    if cell.rate_frames_per_s is None:
        below = table.below_text(goal, cell)
        return f"an unknown rate ({cell.text})" if below is None else f"less than {below}"
    bound = "at least " if cell.text.startswith("≥") else "the line rate, " if cell.text.startswith("line") else ""
    return f"{bound}{table.rate_text(goal, cell)}"


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
        return f"{said[:1].upper()}{said[1:]}."
    if claim.higher is None:
        return f"{quote_name(first)} and {quote_name(second)} show no difference: their intervals overlap."
    factor = factor_words(*(claim.spans if claim.higher == first else claim.spans[::-1]))
    much = f"{quote_name(claim.higher)} passes {factor} times as much as {quote_name(claim.lower or '')}"
    return f"{much}; their intervals do not overlap."


def statement_of_each(section: Section, comparison: Comparison) -> str | None:
    """Returns the statement for the smallest frame size that all configurations have; None where there is none. It
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
