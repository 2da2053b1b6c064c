"""Finds implausible figures of a row: above what a line carries, negative, or contradicted by others beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from nicbench.core.errors import Problem
from nicbench.core.frozen import frozen
from nicbench.core.lists import without_none
from nicbench.core.table import ImportShare, ImportTable
from nicbench.core.units import l2_bits_per_s
from nicbench.importing.rows import Figure, ReadRow

EXACT: Final = 1e-9
"""The relative rounding error of the arithmetic itself."""

_UNDER_THE_LINE_RATE: Final = "rates with the line rate that they cannot exceed"


@frozen
class Finding:
    """An implausible figure; ``computed`` is what it should be at least, at most or exactly, in its own unit."""

    value: str
    figure: Figure
    computed: str | None
    reason: str


@frozen
class Comparison:
    """One comparison: what was held against what ("sums of instances"), and the finding where it failed."""

    what: str
    finding: Finding | None = None


def compare_figures(row: ReadRow, table: ImportTable) -> list[Comparison]:
    """Makes every comparison that one row allows; of each figure, only the first that fails has a finding."""
    made = [
        *_check_each_alone(row, table),
        *_check_line_rate(row, table),
        *_check_rates(row, table),
        *_check_payload_rates(row),
        *_check_shares(row, table),
        *_check_bit_rates(row, table),
        *_check_rising(row, table),
        *_check_parts(row, table),
    ]
    found = set()
    for index, comparison in enumerate(made):
        if comparison.finding is not None:
            if comparison.finding.value in found:
                made[index] = Comparison(comparison.what)
            found.add(comparison.finding.value)
    return made


def _check_each_alone(row: ReadRow, table: ImportTable) -> Iterator[Comparison]:
    columns = {column.value: column for column in table.columns}
    for value, figure in row.figures.items():
        column = columns.get(value)
        finding = None
        if figure.value < 0:
            finding = Finding(value, figure, None, "nothing of it can be negative")
        elif figure.quantity == "count" and not figure.value.is_integer():
            finding = Finding(value, figure, None, "there are only whole ones")
        elif column is not None and column.is_above_zero and figure.value == 0:
            counted = figure.quantity == "count"
            finding = Finding(value, figure, None, "it is counted from 1" if counted else "it is above 0")
        elif column is not None and column.most is not None and figure.value > column.most:
            finding = Finding(value, figure, None, f"it is {column.most} at most")
        elif figure.value - figure.rounding > 100.0 and _is_at_most_all(figure, table):
            finding = Finding(value, figure, figure.words(100.0), "100 % is all")
        yield Comparison(
            "figures with what any of their kind can be (none below 0, counts whole, shares 100 % at most)", finding
        )


def _is_at_most_all(figure: Figure, table: ImportTable) -> bool:
    return figure.quantity == "percent" or (figure.quantity == "load" and not table.overload)


def _check_line_rate(row: ReadRow, table: ImportTable) -> Iterator[Comparison]:
    printed = row.figures.get(table.line_rate or "")
    computed = row.line_rate_frames_per_s
    if printed is None or computed is None or table.line_rate is None:
        return
    finding = None
    if abs(printed.value - computed) > printed.rounding + computed * EXACT:
        reason = f"{row.link} carry that many frames of {row.frame_bytes} bytes"
        finding = Finding(table.line_rate, printed, printed.words(computed), reason)
    yield Comparison("line rates with those of their links and frame sizes", finding)


def _check_rates(row: ReadRow, table: ImportTable) -> Iterator[Comparison]:
    line = _find_line_rate(row, table)
    if line is None:
        return
    most, rounding = line
    if table.overload:  # several ports send to one: a load of 150 % is that of one line and a half
        loads = [figure for figure in row.figures.values() if figure.quantity == "load"]
        most *= max((1.0, *((load.value + load.rounding) / 100.0 for load in loads)))
    for value, figure in row.figures.items():
        if figure.quantity != "frame_rate" or value == table.line_rate:
            continue
        finding = None
        if figure.value - figure.rounding > (most + rounding) * (1.0 + EXACT):
            finding = Finding(value, figure, figure.words(most), "the line carries no more")
        yield Comparison(_UNDER_THE_LINE_RATE, finding)
    for _, bits in table.bit_rates:
        throughput = row.figures.get(bits)
        if throughput is not None and row.frame_bytes is not None:
            most_bits = l2_bits_per_s(most + rounding, row.frame_bytes)
            finding = None
            if throughput.value - throughput.rounding > most_bits * (1.0 + EXACT):
                finding = Finding(bits, throughput, throughput.words(most_bits), "the line carries no more")
            yield Comparison(_UNDER_THE_LINE_RATE, finding)


def _check_payload_rates(row: ReadRow) -> Iterator[Comparison]:
    """Finds payload rates above all the bits of the link, in rows of one direction."""
    if row.link is None:
        return
    most = row.link.bits_per_s * (row.link.ports or 1)
    for value, figure in row.figures.items():
        if figure.quantity == "payload_rate":
            over = figure.value - figure.rounding > most
            finding = Finding(value, figure, figure.words(most), "the link carries no more") if over else None
            yield Comparison("rates of payload with the speed of their links", finding)


def _find_line_rate(row: ReadRow, table: ImportTable) -> tuple[float, float] | None:
    """Returns the line rate and its rounding: computed from the link, or else as printed."""
    computed = row.line_rate_frames_per_s
    if computed is not None:
        return computed, 0.0
    printed = row.figures.get(table.line_rate or "")
    return (printed.value, printed.rounding) if printed is not None and printed.value > printed.rounding else None


def _check_shares(row: ReadRow, table: ImportTable) -> Iterator[Comparison]:
    line = _find_line_rate(row, table)
    for rate_name, share_name in table.shares:
        rate, share = row.figures.get(rate_name), row.figures.get(share_name)
        if line is None or rate is None or share is None:
            continue
        lowest = 100.0 * (rate.value - rate.rounding) / (line[0] + line[1])
        highest = 100.0 * (rate.value + rate.rounding) / (line[0] - line[1])
        computed = 100.0 * rate.value / line[0]
        finding = _check_within(share_name, share, lowest, highest, computed, f"{rate.words()} of the line rate")
        yield Comparison("shares of the line rate with their rates", finding)


def _check_bit_rates(row: ReadRow, table: ImportTable) -> Iterator[Comparison]:
    for rate_name, bits_name in table.bit_rates:
        rate, bits = row.figures.get(rate_name), row.figures.get(bits_name)
        if rate is None or bits is None or row.frame_bytes is None:
            continue
        lowest, computed, highest = (
            l2_bits_per_s(value, row.frame_bytes)
            for value in (rate.value - rate.rounding, rate.value, rate.value + rate.rounding)
        )
        reason = f"{rate.words()} of {row.frame_bytes} bytes on layer 2"
        finding = _check_within(bits_name, bits, lowest, highest, computed, reason)
        yield Comparison("bit rates with their frame rates", finding)


def _check_rising(row: ReadRow, table: ImportTable) -> Iterator[Comparison]:
    sequences = [*table.rising, *((f"{value}:lower", value, f"{value}:upper") for value in _bounded_values(row))]
    for sequence in sequences:
        known = [(value, row.figures[value]) for value in sequence if value in row.figures]
        for (_, before), (value, after) in pairwise(known):
            finding = None
            if after.value + after.rounding < before.value - before.rounding:
                reason = f"it cannot be less than the {before.name}, {before.words()}"
                finding = Finding(value, after, after.words(before.value), reason)
            yield Comparison("figures with one beside them that cannot be above them (a minimum, a part)", finding)


def _bounded_values(row: ReadRow) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value.partition(":")[0] for value in row.figures if ":" in value))


def _check_parts(row: ReadRow, table: ImportTable) -> Iterator[Comparison]:
    for first_name, second_name in table.complements:
        first, second = row.figures.get(first_name), row.figures.get(second_name)
        if first is not None and second is not None:
            slack = first.rounding + second.rounding
            finding = None
            if abs(first.value + second.value - 100.0) > slack + 100.0 * EXACT:
                computed = second.words(100.0 - first.value)
                finding = Finding(second_name, second, computed, f"with {first.words()} it makes 100 %")
            yield Comparison("percentages with those that they make 100 % with", finding)
    for share_name, part_name, whole_name in table.percentages:
        share, part, whole = (row.figures.get(name) for name in (share_name, part_name, whole_name))
        if share is not None and part is not None and whole is not None and whole.value > 0:
            computed_share = 100.0 * part.value / whole.value
            reason = f"{part.words()} of {whole.words()}"
            finding = _check_within(share_name, share, computed_share, computed_share, computed_share, reason)
            yield Comparison("percentages with the counts that they are of", finding)
    for rate_name, loss_name in table.lossless:
        rate, loss = row.figures.get(rate_name), row.figures.get(loss_name)
        if rate is not None and loss is not None:
            lost = loss.value > loss.rounding
            reason = "the rate beside it was found without loss"
            finding = Finding(loss_name, loss, loss.words(0.0), reason) if lost else None
            yield Comparison("losses with the rate without loss beside them", finding)
    for names in table.sums:
        figures = [row.figures[name] for name in names if name in row.figures]
        if len(figures) == len(names):
            whole_figure, *part_figures = figures
            summed = sum(figure.value for figure in part_figures)
            reason = f"{' and '.join(figure.words() for figure in part_figures)} make another"
            finding = _check_within(names[0], whole_figure, summed, summed, summed, reason)
            yield Comparison("counts with the parts of which they are the sum", finding)


def _check_within(
    value: str, figure: Figure, lowest: float, highest: float, computed: float, reason: str
) -> Finding | None:
    slack = figure.rounding + abs(computed) * EXACT
    if figure.value + slack < lowest or figure.value - slack > highest:
        return Finding(value, figure, figure.words(computed), reason)
    return None


Group = tuple[object, ...]
"""What rows must share to be compared: configuration, frame size, link, and further values."""


@frozen
class PlausibleRow:
    """A row (the ``index``-th) without the figures that are implausible by themselves."""

    index: int
    row: ReadRow
    figures: dict[str, Figure]

    def number(self, value: str | None) -> float | None:
        """Returns the number of a value; None unless it is plausible."""
        figure = self.figures.get(value or "")
        return figure.value if figure else None

    def has(self, value: str) -> bool:
        """Says whether the row has anything in this column, plausible or not."""
        return value in self.row.figures or value in self.row.texts

    def group(self, values: Iterable[str]) -> Group:
        """Returns the values that distinguish the row from rows with which it is not compared."""
        row = self.row
        values_of_row = [self.number(value) if value in row.figures else row.texts.get(value) for value in values]
        return (row.configuration, row.frame_bytes, row.link, *values_of_row)


def plausible_rows(rows: Sequence[ReadRow], findings: Sequence[Sequence[Finding]]) -> list[PlausibleRow]:
    """Leaves out the figures that a finding is about."""
    wrong = [{finding.value for finding in of_row} for of_row in findings]
    return [
        PlausibleRow(index, row, {value: figure for value, figure in row.figures.items() if value not in of_row})
        for index, (row, of_row) in enumerate(zip(rows, wrong, strict=True))
    ]


def find_contradicting_shares(rows: Sequence[PlausibleRow], table: ImportTable) -> tuple[list[Problem], int]:
    """Returns a problem for each row whose share contradicts that of the rows before it, and how many were compared."""
    compared = [found for rule in table.same_shares for found in _compare_shares(rows, rule)]
    return without_none(compared), len(compared)


def _compare_shares(rows: Sequence[PlausibleRow], rule: ImportShare) -> Iterator[Problem | None]:
    """Compares shares that must agree; ``least`` and ``most`` bound what all rows of a group so far allow."""
    allowed = {}
    for one in rows:
        figure, number = one.figures.get(rule.value), one.number(rule.number)
        if figure is None or number is None:
            continue
        of = 1.0 if rule.place in one.row.figures else number
        least, most = (figure.value - figure.rounding) / of, (figure.value + figure.rounding) / of
        group = one.group(rule.among)
        if group not in allowed:
            allowed[group] = (least, most, figure)
            continue
        known_least, known_most, first = allowed[group]
        if least > known_most * (1.0 + EXACT) or most < known_least * (1.0 - EXACT):
            each = figure.words(figure.value / of)
            what = f"{figure.name} {figure.words()} is {each} for each of {of:g}"
            other = f"which contradicts line {first.cell.position.line}"
            yield Problem(figure.cell.position, f"{what}, {other}", rule.hint)
            continue
        allowed[group] = (max(least, known_least), min(most, known_most), first)
        yield None
