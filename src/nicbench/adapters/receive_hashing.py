"""``ethtool -x``: to which receive queue the hash of a flow leads (RSS): table, key, function."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby, pairwise

from nicbench.adapters._rows import switch_of

_HEAD = re.compile(r"indirection table for \S+ with (\d{1,6}) RX ring")
_ENTRIES = re.compile(r"^\s*(\d{1,6}):((?:\s+\d{1,6})+)\s*$")
_KEY = re.compile(r"^\s*((?:[0-9a-fA-F]{2}:)+[0-9a-fA-F]{2})\s*$")
_FUNCTION = re.compile(r"^\s+(\w[\w-]*): (on|off)\s*$")


@dataclass(frozen=True, slots=True)
class ReceiveHashing:
    """``table`` has a queue for each value of the hash's low bits; empty, and ``key`` null, where there is none."""

    queues: int | None
    table: tuple[int, ...]
    key: str | None
    functions: dict[str, bool]

    @property
    def function(self) -> str | None:
        """The hash function that is on."""
        return next((name for name, on in self.functions.items() if on), None)


def parse_receive_hashing(text: str) -> ReceiveHashing:
    """Every layout since 2.6.36; ValueError where there is nothing of it."""
    head = _HEAD.search(text)
    table: list[int] = []
    key = None
    functions: dict[str, bool] = {}
    for row in text.splitlines():
        if entries := _ENTRIES.match(row):
            if int(entries[1]) != len(table):
                raise ValueError(f"entry {entries[1]} of the indirection table follows after {len(table)} entries")
            table += [int(queue) for queue in entries[2].split()]
        elif (found := _KEY.match(row)) and key is None:
            key = found[1].lower()
        elif (found := _FUNCTION.match(row)) and (on := switch_of(found[2])) is not None:
            functions[found[1]] = on
    if head is None and not table and key is None:
        raise ValueError("no receive hashing in it")
    return ReceiveHashing(int(head[1]) if head else None, tuple(table), key, functions)


def described(table: tuple[int, ...]) -> str | None:
    """The table in a few words, exactly: its repeated beginning, or runs of the same queue. Null for an empty one."""
    if not table:
        return None
    size = len(table)
    for period in range(1, min(size, 129)):
        # At least two whole repetitions, or it would be no shorter than the table itself.
        if period * 2 <= size and all(table[at] == table[at % period] for at in range(period, size)):
            return f"{_numbers(table[:period])}, again and again to {size} entries"
    runs = [(queue, len(list(group))) for queue, group in groupby(table)]
    return " ".join(f"{queue}x{length}" if length > 1 else str(queue) for queue, length in runs)


def _numbers(queues: tuple[int, ...]) -> str:
    if len(queues) > 2 and all(after == before + 1 for before, after in pairwise(queues)):
        return f"{queues[0]} to {queues[-1]}"
    return " ".join(map(str, queues))
