"""Statistics of Cisco TRex's stateless client as JSON: what ``STLClient.get_stats()`` returns, dumped.

The fields are those of TRex's own examples and of the tester ``trex``; no complete export was available. All ports
together give frames sent and received and the share lost; each packet group of a latency stream gives its latencies in
microseconds. TRex does not report the frame size and the load, so ``--set`` has to state them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Final

from nicbench.core.errors import Position, Problem, UsageError, WrongFileError
from nicbench.importing.cells import MOST_ROWS, Cell, Sheet
from nicbench.importing.columns import ImportOptions
from nicbench.importing.formats._shared import place_of
from nicbench.importing.formats.base import Format
from nicbench.workloads.base import WorkloadError
from nicbench.workloads.tool_output import Reading, json_object

GROUP: Final = "packet group"
_COUNTS: Final = ("offered frames", "returned frames", "loss [%]")
_LATENCIES: Final = ("minimum latency [us]", "average latency [us]", "maximum latency [us]")
_HEADS: Final = (GROUP, *_COUNTS, *_LATENCIES)
_OF_METHOD: Final = {"frame-loss": _COUNTS, "latency": _LATENCIES}
_ALL_PORTS: Final = "all ports"


class TrexStatistics(Format):
    """Reads one trial from each file."""

    kind: ClassVar[str] = "trex"
    about: ClassVar[str] = "statistics of TRex's stateless client as JSON, one trial for each file"

    @classmethod
    def cells(cls, text: str, path: str, delimiter: str | None, heading_line: int) -> Sheet:
        try:
            rows = _rows(Reading(json_object(text, "TRex"), "TRex"))
        except WorkloadError as error:
            hint = "is it what STLClient.get_stats() returned, whole?"
            raise WrongFileError(path, [Problem(place_of(error, text), error.message, hint)]) from error
        if len(rows) > MOST_ROWS:
            raise WrongFileError(path, [Problem(Position(1, 1), f"has more than {MOST_ROWS} packet groups", None)])
        first = Position(1, 1)
        heads = tuple(Cell(head, first) for head in _HEADS)
        return Sheet(heads, tuple(tuple(Cell(text_of_cell, first) for text_of_cell in row) for row in rows))

    @classmethod
    def sheet(cls, sheet: Sheet, path: str, method: str, options: ImportOptions) -> Sheet:
        if method not in _OF_METHOD:
            known = ", ".join(f"`{name}`" for name in _OF_METHOD)
            step = f"known are {known}; or write a table and use --from plain"
            raise UsageError(f"nothing of `{method}` is in TRex's statistics", place="--from", next_step=step)
        wanted = _OF_METHOD[method]
        asked = {*options.configurations, *options.columns, *options.where}
        kept = [
            number
            for number, head in enumerate(sheet.heads)
            if head.text in wanted or head.text not in _HEADS or (head.text == GROUP and GROUP in asked)
        ]
        figures = [number for number, head in enumerate(sheet.heads) if head.text in wanted]
        rows = [row for row in sheet.rows if any(row[number].text for number in figures)]
        if not rows:
            missing = "no latency stream" if method == "latency" else "no sum of all ports"
            raise WrongFileError(path, [Problem(Position(1, 1), f"there is {missing} in it", None)])
        chosen = tuple(tuple(row[number] for number in kept) for row in rows)
        return replace(sheet, heads=tuple(sheet.heads[number] for number in kept), rows=chosen)


def _rows(stats: Reading) -> list[tuple[str, ...]]:
    """Returns rows in the order of ``_HEADS``: all ports together, then each packet group that has latencies."""
    total = stats.part("total")
    sent, received = total.number("opackets"), total.number("ipackets")
    lost_percent = 100.0 * (sent - received) / sent if sent > 0 else None
    blank = ("", "", "")
    rows: list[tuple[str, ...]] = [(_ALL_PORTS, *map(_text, (sent, received, lost_percent)), *blank)]
    groups = stats.maybe("latency")
    for group in groups.names() if groups else ():
        if groups is None or not group.isdecimal():  # "global" has the errors of no group
            continue
        latency = groups.part(group).part("latency")
        latencies = (latency.maybe_number(name) for name in ("total_min", "average", "total_max"))
        rows.append((group[:20], *blank, *(_text(value) for value in latencies)))
    return rows


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.15g}"
