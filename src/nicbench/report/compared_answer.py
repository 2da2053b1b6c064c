"""The answer where configurations were compared: each one's number, and a difference only where intervals show it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from nicbench.comparing.claims import Basis
from nicbench.comparing.compared import Compared
from nicbench.model.result import ResultVerdict
from nicbench.report.answer import goal_clause
from nicbench.report.cells import number_of
from nicbench.report.comparison import Comparison, LatencyBeside
from nicbench.report.model import Goal
from nicbench.report.numbers import microseconds, mpps
from nicbench.report.rates import RateCell, RatesRow, RatesTable
from nicbench.report.tables import CONFIGURATION, Section

_GAP = "\u00a0"
_MOST_TOLD = 4
"""Of more configurations a sentence each would be no answer; the tables have them."""


def headline(comparison: Comparison) -> str:
    """The smallest frames and the first goal; else what a method's first table says of each configuration."""
    for table in comparison.rates:
        for goal in table.goals:
            if table.rows:
                return _sentence(table, table.rows[0], goal)
    if comparison.latencies:
        return _latency_sentence(comparison.latencies[0], comparison) or _nothing_compared(comparison)
    return " ".join(_of_each(_told(comparison))) or _nothing_compared(comparison)


def details(comparison: Comparison) -> tuple[str, ...]:
    """Further goals, the largest frames, and the latency."""
    sentences: list[str] = []
    if comparison.rates:
        table = comparison.rates[0]
        sentences += [_sentence(table, table.rows[0], goal) for goal in table.goals[1:]]
        if len(table.rows) > 1:
            sentences.append(_sentence(table, table.rows[-1], table.goals[0]))
        if comparison.latencies:
            sentences.append(_latency_sentence(comparison.latencies[0], comparison) or "")
    if not comparison.rates and not comparison.latencies:
        first = _told(comparison)
        for section in comparison.sections:
            if section is not first:
                sentences += _of_each(section)
    return tuple(sentence for sentence in sentences if sentence)


def _told(comparison: Comparison) -> Section | None:
    """The section that is the answer where no frame rate and no latency is."""
    return next((section for section in comparison.sections if section.sentence), None)


def _of_each(section: Section | None) -> list[str]:
    """What a section says of each configuration, or of the first one where there are too many for sentences."""
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
            said.append(f"{_named(str(name)) if name else 'The DUT'} {sentence}.")
    return said


def sentences_of_rates(table: RatesTable) -> tuple[str, ...]:
    """Of each goal, what the smallest and the largest frames say."""
    ends = (table.rows[0], table.rows[-1]) if table.rows else ()
    return tuple(dict.fromkeys(_sentence(table, row, goal) for goal in table.goals for row in ends))


def sentence_of_latencies(table: LatencyBeside, comparison: Comparison) -> str | None:
    """What a table of latencies side by side says; None where it lacks one."""
    return _latency_sentence(table, comparison)


def _nothing_compared(comparison: Comparison) -> str:
    if not comparison.sections:
        return "Nothing was measured that could be compared."
    if not comparison.compares:
        return f"{comparison.runs} runs were measured; the tables below give the median and range of each value."
    named = _and([_named(name) for name in comparison.names])
    return f"{named} were measured side by side; the tables and curves below compare them."


def _sentence(table: RatesTable, row: RatesRow, goal: Goal) -> str:
    """Each configuration's rate, then which are told apart."""
    cells = row.cells[goal.key]
    many = f"median of {table.runs} runs" if table.runs > 1 else "one run each" if len(cells) > 1 else ""
    rates = _and([f"{_subject(cell, cells)} {_rate(cell)}" for cell in cells])
    told = f" ({goal.name}{f', {many}' if many else ''})"
    verdicts = {result.verdict for cell in cells for result in cell.results}
    disturbed = " Some of it rests on disturbed trials." if ResultVerdict.DISTURBED in verdicts else ""
    return f"Of {row.size_name} frames, {rates} {goal_clause(goal)}{told}.{_apart(row.told[goal.key])}{disturbed}"


def _subject(cell: RateCell, cells: Sequence[RateCell]) -> str:
    return f"{_named(cell.configuration)} passes" if len(cells) > 1 else "the DUT passes"


def _named(configuration: str) -> str:
    """In quotes, for it is a word of the bench file's author in our sentence."""
    return f"“{configuration}”"


def _rate(cell: RateCell) -> str:
    if cell.rate_frames_per_s is None and not cell.text.startswith("<"):
        return f"no rate that is known ({cell.text})"
    if cell.rate_frames_per_s is None:
        return f"less than {cell.text.removeprefix('< ')}{_GAP}Mpps"
    bound = "at least " if cell.text.startswith("≥") else "the line rate, " if cell.text.startswith("line") else ""
    return f"{bound}{mpps(cell.rate_frames_per_s)}{_GAP}Mpps"


def _apart(told: Sequence[Compared]) -> str:
    """Of each two: how many times as much one passes, or that no difference is shown."""
    said = [text for text in map(_of_two, told) if text]
    return f" {' '.join(said)}" if said else ""


def _of_two(one: Compared) -> str:
    """By the runs in the words of all comparisons; of few runs by the intervals within which rates were found."""
    claim = one.claim
    if claim.basis is Basis.TOO_FEW:
        return ""
    first, second = one.comparison.first.name, one.comparison.second.name
    if claim.spans is None or claim.basis not in (Basis.INTERVALS, Basis.INTERVALS_OVERLAP):
        said = one.said
        return f"{said[:1].upper()}{said[1:]}."
    if claim.higher is None:
        return f"{_named(first)} and {_named(second)} are not told apart: their intervals overlap."
    above, below = claim.spans if claim.higher == first else claim.spans[::-1]
    least, most = above.times(below)
    factor = f"{least:.3g} to {most:.3g} times" if not math.isinf(most) else f"at least {least:.3g} times"
    much = f"{_named(claim.higher)} passes {factor} as much as {_named(claim.lower or '')}"
    return f"{much}; their intervals do not overlap."


def _latency_sentence(table: LatencyBeside, comparison: Comparison) -> str | None:
    """What half of the smallest frames take, without a claim: latencies come without an interval of the DUT's."""
    sizes = dict.fromkeys(result.parameters.get("size") for _, result in table.rows)
    for size in sizes:
        rows = [result for _, result in table.rows if result.parameters.get("size") == size]
        known = [result for result in rows if number_of(result, "latency_p50_ns") is not None]
        if len(known) == len(rows):
            each = [
                f"{microseconds(number_of(result, 'latency_p50_ns'))}{_GAP}µs"
                + (f" ({_named(result.configuration)})" if comparison.compares else "")
                for result in known
            ]
            tails = [number_of(result, "latency_p99_9_ns") for result in known]
            also = ""
            if all(tail is not None for tail in tails):
                also = f", and 99.9 % within {_and([f'{microseconds(tail)}{_GAP}µs' for tail in tails])}"
            name = f"{size}-byte" if str(size).isdigit() else size
            notes = ["each of its own"] if comparison.compares else []
            notes += [f"medians of {comparison.runs} runs"] if comparison.runs > 1 else []
            noted = f" ({', '.join(notes)})" if notes else ""
            return f"At {table.load}{noted}, half of the {name} frames pass within {_and(each)}{also}."
    return None


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
