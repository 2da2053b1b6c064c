"""What must hold in the summary on the terminal: the numbers and verdicts of the results, size by size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nicbench.core.result import ResultVerdict

from ._reading import numbers_in, plain
from ._truth import FACTORS, ends_of, is_near
from ._whole import Whole

_ENDS = {"pps": "_frames_per_s", "kpps": "_frames_per_s", "Mpps": "_frames_per_s", "µs": "_ns", "ms": "_ns"}


def the_terminal_has_the_numbers_of_the_results(whole: Whole) -> Iterator[str]:
    """Each rate and latency of a row is one of its frame size and configuration, and its verdict is their worst."""
    heads = []
    for line in whole.terminal:
        if line.startswith("┃"):
            cells = [plain(cell) for cell in line.strip("┃").split("┃")]
            heads = (
                cells
                if len(cells) != len(heads)
                else [" ".join(pair).strip() for pair in zip(heads, cells, strict=True)]
            )
        elif line.startswith("│") and heads:
            yield from _row_differs(whole, heads, [plain(cell) for cell in line.strip("│").split("│")])
        elif not line.startswith("┡"):
            heads = []


def _row_differs(whole: Whole, heads: Sequence[str], cells: Sequence[str]) -> Iterator[str]:
    if len(heads) != len(cells) or (not heads[0].startswith("frame") and "configuration" not in heads[0]):
        return
    at_size = next((at for at, head in enumerate(heads) if head.startswith("frame [")), None)
    if at_size is None or not cells[at_size].isdigit():
        return
    named = next((cells[at] for at, head in enumerate(heads) if head == "configuration"), None)
    known = [
        one
        for one in whole.summary.over_runs or whole.summary.counted
        if one.parameters.get("frame_bytes") == int(cells[at_size]) and named in (None, one.configuration)
    ]
    for head, cell in zip(heads, cells, strict=True):
        unit = re.search(r"\[([^\]]+)\]", head)
        end = _ENDS.get(unit[1]) if unit else None
        if end is None or unit is None:
            continue
        factor = FACTORS[end][unit[1]]
        values = [
            each
            for one in known
            for name, value in one.values.items()
            if name.removesuffix("_sum_of_ports").endswith(end)
            for each in ends_of(value)
        ]
        for number in numbers_in(re.sub(r"\d+ of \d+ runs", "", cell)):
            if not any(is_near(number, value / factor, slack / factor) for value, slack in values):
                yield f"terminal: {cell!r} ({head}) has a number that is none of {cells[at_size]} bytes {named or ''}"
    verdicts = {one.verdict.value for one in known}
    if heads[-1] != "verdict":
        return
    if cells[-1] not in verdicts:
        yield f"terminal: {cells[-1]} of {cells[at_size]} bytes, whose results are {verdicts}"
    searched = {one.verdict.value for one in known if one.method == "throughput"}
    if cells[-1] == ResultVerdict.VALID.value and "NDR" in " ".join(heads) and searched - {cells[-1]}:
        yield f"terminal: {cells[at_size]} bytes are valid, and their throughput is {searched}"
