"""Reads what ``esxcli`` of VMware ESXi prints: ``get`` (a fact a line) and ``list`` (a table with a ruler)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nicbench.core.machine import HypervisorTable

_RULER = re.compile(r"^\s*-{2,}(\s+-{2,})*\s*$")
_SAVE = "save the output of esxcli as it is printed, without --formatter: esxcli network nic list > FILE"
_MOST_ROWS = 1000


def read_esxcli(content: bytes, title: str) -> HypervisorTable:
    """The table of one output. ValueError where it is no output of esxcli, or one of a failed command."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not text (byte {error.start + 1}); {_SAVE}") from error
    lines = [line.rstrip() for line in text.expandtabs().splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"is empty; {_SAVE}")
    if lines[0].lstrip().lower().startswith(("error:", "usage:", "errors:", "unable to")):
        raise ValueError(f"holds an error of esxcli ({lines[0].strip()[:80]}); {_SAVE}")
    if len(lines) > _MOST_ROWS:
        raise ValueError(f"has {len(lines)} lines, more than the {_MOST_ROWS} of such an output; {_SAVE}")
    if len(lines) > 1 and _RULER.match(lines[1]):
        return _table(lines, title)
    rows = tuple(_facts(lines))
    if not rows:
        raise ValueError(f"has neither a table with a ruler of dashes nor lines of `Name: value`; {_SAVE}")
    return HypervisorTable(title=title, rows=rows)


def _table(lines: Sequence[str], title: str) -> HypervisorTable:
    """Columns stand where the ruler's dashes do; numbers may be set to the right below a longer ruler."""
    spans = [found.span() for found in re.finditer(r"-+", lines[1])]
    starts = [begin for begin, _ in spans]
    ends = [*starts[1:], None]

    def cells(line: str) -> tuple[str, ...]:
        return tuple(line[begin:end].strip() for begin, end in zip(starts, ends, strict=True))

    heads, rows = cells(lines[0]), tuple(map(cells, lines[2:]))
    if not rows:
        raise ValueError(f"is a table without rows; {_SAVE}")
    return HypervisorTable(title=title, heads=heads, rows=rows)


def _facts(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Facts by their path: what is indented below a line without a value belongs to it."""
    above: list[tuple[int, str]] = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        above = [(depth, name) for depth, name in above if depth < indent]
        name, colon, value = line.strip().partition(": ")
        if not colon and line.strip().endswith(":"):
            name, colon = line.strip()[:-1], ":"
        elif not colon:
            name, colon, value = line.strip().partition(":")
            if colon:  # as in `CPU:0`, above the facts of one of several
                name, value = f"{name} {value}", ""
        if not colon and above and indent:  # an element of a list
            yield ", ".join(part for _, part in above), name
            continue
        if value:
            yield ", ".join([*(part for _, part in above), name]), value.strip()
        else:
            above.append((indent, name))
