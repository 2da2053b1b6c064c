"""What cannot be so: figures above what a line carries, negative ones, and those that contradict one another.

Two figures contradict each other only where no numbers that round to them would agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from nicbench.importing.rows import Figure, ReadRow
from nicbench.model.import_table import ImportTable
from nicbench.units import l2_bits_per_s

# For the arithmetic itself, relatively.
_EXACT: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Finding:
    """A figure that cannot be so; ``computed`` is what it would be at least, at most or exactly, in its own unit."""

    value: str
    figure: Figure
    computed: str | None
    reason: str


def implausible(row: ReadRow, table: ImportTable) -> list[Finding]:
    """Everything of a row that cannot be so, one thing of each figure."""
    found = [
        *_by_themselves(row, table),
        *_line_rate(row, table),
        *_too_fast(row, table),
        *_too_much_payload(row),
        *_shares(row, table),
        *_bit_rates(row, table),
        *_falling(row, table),
        *_parts(row, table),
    ]
    return list({finding.value: finding for finding in reversed(found)}.values())[::-1]  # the first of each figure


def _by_themselves(row: ReadRow, table: ImportTable) -> Iterator[Finding]:
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


def _line_rate(row: ReadRow, table: ImportTable) -> Iterator[Finding]:
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


def _too_fast(row: ReadRow, table: ImportTable) -> Iterator[Finding]:
    line = _line(row, table)
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


def _too_much_payload(row: ReadRow) -> Iterator[Finding]:
    """More than all the bits of the link; of a row that speaks of one direction."""
    if row.link is None:
        return
    most = row.link.bits_per_s * (row.link.ports or 1)
    for value, figure in row.figures.items():
        if figure.quantity == "payload_rate" and figure.value - figure.rounding > most:
            yield Finding(value, figure, figure.words(most), "the link carries no more")


def _line(row: ReadRow, table: ImportTable) -> tuple[float, float] | None:
    """The line rate and its rounding: of the link, or else as it is printed."""
    computed = row.line_rate_frames_per_s
    if computed is not None:
        return computed, 0.0
    printed = row.figures.get(table.line_rate or "")
    return (printed.value, printed.rounding) if printed is not None and printed.value > printed.rounding else None


def _shares(row: ReadRow, table: ImportTable) -> Iterator[Finding]:
    line = _line(row, table)
    for rate_name, share_name in table.shares:
        rate, share = row.figures.get(rate_name), row.figures.get(share_name)
        if line is None or rate is None or share is None:
            continue
        lowest = 100.0 * (rate.value - rate.rounding) / (line[0] + line[1])
        highest = 100.0 * (rate.value + rate.rounding) / (line[0] - line[1])
        computed = 100.0 * rate.value / line[0]
        yield from _outside(share_name, share, lowest, highest, computed, f"{rate.words()} of the line rate")


def _bit_rates(row: ReadRow, table: ImportTable) -> Iterator[Finding]:
    for rate_name, bits_name in table.bit_rates:
        rate, bits = row.figures.get(rate_name), row.figures.get(bits_name)
        if rate is None or bits is None or row.frame_bytes is None:
            continue
        lowest, computed, highest = (
            l2_bits_per_s(value, row.frame_bytes)
            for value in (rate.value - rate.rounding, rate.value, rate.value + rate.rounding)
        )
        yield from _outside(
            bits_name, bits, lowest, highest, computed, f"{rate.words()} of {row.frame_bytes} bytes on layer 2"
        )


def _falling(row: ReadRow, table: ImportTable) -> Iterator[Finding]:
    sequences = [*table.rising, *((f"{value}:lower", value, f"{value}:upper") for value in _with_bounds(row))]
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


def _with_bounds(row: ReadRow) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value.partition(":")[0] for value in row.figures if ":" in value))


def _parts(row: ReadRow, table: ImportTable) -> Iterator[Finding]:
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
            yield from _outside(share_name, share, computed_share, computed_share, computed_share, reason)
    for rate_name, loss_name in table.lossless:
        rate, loss = row.figures.get(rate_name), row.figures.get(loss_name)
        if rate is not None and loss is not None and loss.value > loss.rounding:
            yield Finding(loss_name, loss, loss.words(0.0), "the rate beside it was found without loss")


def _outside(
    value: str, figure: Figure, lowest: float, highest: float, computed: float, reason: str
) -> Iterator[Finding]:
    slack = figure.rounding + abs(computed) * _EXACT
    if figure.value + slack < lowest or figure.value - slack > highest:
        yield Finding(value, figure, figure.words(computed), reason)
