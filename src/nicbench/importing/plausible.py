"""Finds implausible figures: above what a line carries, negative, or sums that contradict their parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from nicbench.core.errors import Problem
from nicbench.core.table import ImportShare, ImportTable, ImportTotal
from nicbench.core.units import l2_bits_per_s
from nicbench.importing.rows import Figure, ReadRow

# The relative rounding error of the arithmetic itself.
_EXACT: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Finding:
    """An implausible figure; ``computed`` is what it should be at least, at most or exactly, in its own unit."""

    value: str
    figure: Figure
    computed: str | None
    reason: str


def find_implausible(row: ReadRow, table: ImportTable) -> list[Finding]:
    """Finds the implausible figures of a row: the first reason for each."""
    found = [
        *_check_each_alone(row, table),
        *_check_line_rate(row, table),
        *_check_rates(row, table),
        *_check_payload_rates(row),
        *_check_shares(row, table),
        *_check_bit_rates(row, table),
        *_check_rising(row, table),
        *_check_parts(row, table),
    ]
    first_by_figure = {finding.value: finding for finding in reversed(found)}
    return list(first_by_figure.values())[::-1]


def _check_each_alone(row: ReadRow, table: ImportTable) -> Iterator[Finding]:
    columns = {column.value: column for column in table.columns}
    for value, figure in row.figures.items():
        column = columns.get(value)
        if figure.value < 0:
            yield Finding(value, figure, None, "nothing of it can be negative")
        elif figure.quantity == "count" and not figure.value.is_integer():
            yield Finding(value, figure, None, "there are only whole ones")
        elif column is not None and column.is_above_zero and figure.value == 0:
            counted = figure.quantity == "count"
            yield Finding(value, figure, None, "it is counted from 1" if counted else "it is above 0")
        elif column is not None and column.most is not None and figure.value > column.most:
            yield Finding(value, figure, None, f"it is {column.most} at most")
        elif figure.value - figure.rounding > 100.0 and _is_at_most_all(figure, table):
            yield Finding(value, figure, figure.words(100.0), "100 % is all")


def _is_at_most_all(figure: Figure, table: ImportTable) -> bool:
    return figure.quantity == "percent" or (figure.quantity == "load" and not table.overload)


def _check_line_rate(row: ReadRow, table: ImportTable) -> Iterator[Finding]:
    printed = row.figures.get(table.line_rate or "")
    computed = row.line_rate_frames_per_s
    if printed is None or computed is None or table.line_rate is None:
        return
    if abs(printed.value - computed) > printed.rounding + computed * _EXACT:
        yield Finding(
            table.line_rate,
            printed,
            printed.words(computed),
            f"{row.link} carry that many frames of {row.frame_bytes} bytes",
        )


def _check_rates(row: ReadRow, table: ImportTable) -> Iterator[Finding]:
    line = _find_line_rate(row, table)
    if line is None:
        return
    most, rounding = line
    for value, figure in row.figures.items():
        if figure.quantity != "frame_rate" or value == table.line_rate:
            continue
        if figure.value - figure.rounding > (most + rounding) * (1.0 + _EXACT):
            yield Finding(value, figure, figure.words(most), "the line carries no more")
    for _, bits in table.bit_rates:
        throughput = row.figures.get(bits)
        if throughput is not None and row.frame_bytes is not None:
            most_bits = l2_bits_per_s(most + rounding, row.frame_bytes)
            if throughput.value - throughput.rounding > most_bits * (1.0 + _EXACT):
                yield Finding(bits, throughput, throughput.words(most_bits), "the line carries no more")


def _check_payload_rates(row: ReadRow) -> Iterator[Finding]:
    """Finds payload rates above all the bits of the link, in rows of one direction."""
    if row.link is None:
        return
    most = row.link.bits_per_s * (row.link.ports or 1)
    for value, figure in row.figures.items():
        if figure.quantity == "payload_rate" and figure.value - figure.rounding > most:
            yield Finding(value, figure, figure.words(most), "the link carries no more")


def _find_line_rate(row: ReadRow, table: ImportTable) -> tuple[float, float] | None:
    """Returns the line rate and its rounding: computed from the link, or else as printed."""
    computed = row.line_rate_frames_per_s
    if computed is not None:
        return computed, 0.0
    printed = row.figures.get(table.line_rate or "")
    return (printed.value, printed.rounding) if printed is not None and printed.value > printed.rounding else None


def _check_shares(row: ReadRow, table: ImportTable) -> Iterator[Finding]:
    line = _find_line_rate(row, table)
    for rate_name, share_name in table.shares:
        rate, share = row.figures.get(rate_name), row.figures.get(share_name)
        if line is None or rate is None or share is None:
            continue
        lowest = 100.0 * (rate.value - rate.rounding) / (line[0] + line[1])
        highest = 100.0 * (rate.value + rate.rounding) / (line[0] - line[1])
        computed = 100.0 * rate.value / line[0]
        yield from _check_within(share_name, share, lowest, highest, computed, f"{rate.words()} of the line rate")


def _check_bit_rates(row: ReadRow, table: ImportTable) -> Iterator[Finding]:
    for rate_name, bits_name in table.bit_rates:
        rate, bits = row.figures.get(rate_name), row.figures.get(bits_name)
        if rate is None or bits is None or row.frame_bytes is None:
            continue
        lowest, computed, highest = (
            l2_bits_per_s(value, row.frame_bytes)
            for value in (rate.value - rate.rounding, rate.value, rate.value + rate.rounding)
        )
        yield from _check_within(
            bits_name, bits, lowest, highest, computed, f"{rate.words()} of {row.frame_bytes} bytes on layer 2"
        )


def _check_rising(row: ReadRow, table: ImportTable) -> Iterator[Finding]:
    sequences = [*table.rising, *((f"{value}:lower", value, f"{value}:upper") for value in _bounded_values(row))]
    for sequence in sequences:
        known = [(value, row.figures[value]) for value in sequence if value in row.figures]
        for (_, before), (value, after) in pairwise(known):
            if after.value + after.rounding < before.value - before.rounding:
                yield Finding(
                    value,
                    after,
                    after.words(before.value),
                    f"it cannot be less than the {before.name}, {before.words()}",
                )


def _bounded_values(row: ReadRow) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value.partition(":")[0] for value in row.figures if ":" in value))


def _check_parts(row: ReadRow, table: ImportTable) -> Iterator[Finding]:
    for first_name, second_name in table.complements:
        first, second = row.figures.get(first_name), row.figures.get(second_name)
        if first is not None and second is not None:
            slack = first.rounding + second.rounding
            if abs(first.value + second.value - 100.0) > slack + 100.0 * _EXACT:
                computed = second.words(100.0 - first.value)
                yield Finding(second_name, second, computed, f"with {first.words()} it makes 100 %")
    for share_name, part_name, whole_name in table.percentages:
        share, part, whole = (row.figures.get(name) for name in (share_name, part_name, whole_name))
        if share is not None and part is not None and whole is not None and whole.value > 0:
            computed_share = 100.0 * part.value / whole.value
            reason = f"{part.words()} of {whole.words()}"
            yield from _check_within(share_name, share, computed_share, computed_share, computed_share, reason)
    for rate_name, loss_name in table.lossless:
        rate, loss = row.figures.get(rate_name), row.figures.get(loss_name)
        if rate is not None and loss is not None and loss.value > loss.rounding:
            yield Finding(loss_name, loss, loss.words(0.0), "the rate beside it was found without loss")


def _check_within(
    value: str, figure: Figure, lowest: float, highest: float, computed: float, reason: str
) -> Iterator[Finding]:
    slack = figure.rounding + abs(computed) * _EXACT
    if figure.value + slack < lowest or figure.value - slack > highest:
        yield Finding(value, figure, figure.words(computed), reason)


# Checks across rows: sums that differ from their parts, and shares that should be equal.
#
# Two rows contradict each other only where no numbers that round to theirs would agree.


Group = tuple[object, ...]
"""What rows must share to be compared: configuration, frame size, link, and further values."""


@dataclass(frozen=True, slots=True)
class _PlausibleRow:
    """A row without the figures that are implausible by themselves."""

    row: ReadRow
    figures: dict[str, Figure]

    def number(self, value: str) -> float | None:
        figure = self.figures.get(value)
        return figure.value if figure else None

    def group(self, values: Sequence[str]) -> Group:
        row = self.row
        values_of_row = [self.number(value) if value in row.figures else row.texts.get(value) for value in values]
        return (row.configuration, row.frame_bytes, row.link, *values_of_row)


def find_wrong_totals(
    rows: Sequence[ReadRow], findings: Sequence[Sequence[Finding]], table: ImportTable
) -> list[list[Finding]]:
    """Returns the findings of each row, followed by the totals that are not the sum of their parts."""
    found = [list(of_row) for of_row in findings]
    plausible_rows = _plausible_rows(rows, findings)
    for rule in table.totals:
        for index, finding in _check_totals(plausible_rows, rule, table):
            found[index].append(finding)
    return found


def find_contradicting_shares(
    rows: Sequence[ReadRow], findings: Sequence[Sequence[Finding]], table: ImportTable
) -> list[Problem]:
    """Returns a problem for each row whose share contradicts that of the rows before it."""
    plausible_rows = _plausible_rows(rows, findings)
    return [problem for rule in table.same_shares for problem in _check_equal_shares(plausible_rows, rule)]


def _plausible_rows(rows: Sequence[ReadRow], findings: Sequence[Sequence[Finding]]) -> list[_PlausibleRow]:
    wrong = [{finding.value for finding in of_row} for of_row in findings]
    return [
        _PlausibleRow(row, {value: figure for value, figure in row.figures.items() if value not in of_row})
        for row, of_row in zip(rows, wrong, strict=True)
    ]


def _check_totals(
    rows: Sequence[_PlausibleRow], rule: ImportTotal, table: ImportTable
) -> Iterator[tuple[int, Finding]]:
    """Checks totals against their parts; where some are unknown the total must at least be the sum of the others."""
    alike = [column.value for column in table.columns if column.tells_apart and column.value != rule.place]
    parts: dict[Group, list[Figure]] = {}
    for one in rows:
        if one.number(rule.place) is not None and rule.part in one.figures:
            parts.setdefault(one.group(alike), []).append(one.figures[rule.part])
    for index, one in enumerate(rows):
        total, number = one.figures.get(rule.total), one.number(rule.number)
        known = parts.get(one.group(alike), [])
        if total is None or number is None or not known:
            continue
        computed = math.fsum(part.value for part in known)
        slack = total.rounding + math.fsum(part.rounding for part in known) + computed * _EXACT
        is_complete = len(known) == number
        if total.value < computed - slack or (is_complete and total.value > computed + slack):
            which = f"{len(known)}" if is_complete else f"{len(known)} known ones of {number:g}"
            reason = f"{which} {rule.number}, the first on line {known[0].cell.position.line}, make another"
            yield index, Finding(rule.total, total, total.words(computed), reason)


def _check_equal_shares(rows: Sequence[_PlausibleRow], rule: ImportShare) -> Iterator[Problem]:
    """Checks shares that must agree; ``least`` and ``most`` bound what all rows of a group so far allow."""
    allowed: dict[Group, tuple[float, float, Figure]] = {}
    for one in rows:
        figure, number = one.figures.get(rule.value), one.number(rule.number)
        if figure is None or number is None:
            continue
        of = 1.0 if rule.place in one.row.figures else number
        least, most = (figure.value - figure.rounding) / of, (figure.value + figure.rounding) / of
        group = one.group(rule.among)
        known_least, known_most, first = allowed.get(group, (least, most, figure))
        if least > known_most * (1.0 + _EXACT) or most < known_least * (1.0 - _EXACT):
            each = figure.words(figure.value / of)
            what = f"{figure.name} {figure.words()} is {each} for each of {of:g}"
            other = f"which contradicts line {first.cell.position.line}"
            yield Problem(figure.cell.position, f"{what}, {other}", rule.hint)
            continue
        allowed[group] = (max(least, known_least), min(most, known_most), first)
