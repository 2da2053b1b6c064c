"""What ethtool says of an interface's queues: how many, how deep, what they offload, who gets which frame. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import groupby, pairwise

from nicbench.system.adapters._rows import key_of, number_of, rows_of, switch_of

# ``ethtool -g`` and ``-l``: rings and channels, each with its maximum and its current value.


def parse_limits(text: str) -> dict[str, dict[str, int | None]]:
    """For each row its maximum and its current value, null where it is ``n/a``; rows without any number are left out.

    Rows that are no number (``TX Push: off``) are in ``parse_ring_switches``.
    """
    limits: dict[str, dict[str, int | None]] = {}
    column = "maximum"
    for name, value in rows_of(text):
        if name.startswith("Current hardware settings"):
            column = "current"
        elif value:
            limits.setdefault(key_of(name), {})[column] = number_of(value)
    return {name: values for name, values in limits.items() if any(value is not None for value in values.values())}


# ``ethtool -c``: after how long, or how many frames, an interrupt comes.


_PAIR = re.compile(r"^(?P<name>Adaptive|CQE mode) RX: (?P<rx>\S+)\s+TX: (?P<tx>\S+)\s*$")


def parse_coalescing(text: str) -> dict[str, int | bool | None]:
    """By the names that set them, ``rx_usecs`` for ``rx-usecs``; what the driver lacks (``n/a``) is left out."""
    found: dict[str, int | bool | None] = {}
    for row in text.splitlines():
        if pair := _PAIR.match(row.strip()):
            for side in ("rx", "tx"):
                found[f"{key_of(pair['name'])}_{side}"] = switch_of(pair[side])
    for name, value in rows_of(text):
        found.setdefault(key_of(name), number_of(value))
    return {name: value for name, value in found.items() if value is not None}


# ``ethtool -k``: offloads, as JSON (5.8 and newer) or as text.


@dataclass(frozen=True, slots=True)
class Feature:
    """An offload. ``fixed``: the driver lets nobody change it. ``requested``: what was asked for, where it differs."""

    on: bool
    fixed: bool = False
    requested: bool | None = None


def parse_features(text: str) -> dict[str, Feature]:
    """Every offload by its name, in ethtool's order; both of its layouts."""
    if text.lstrip().startswith("["):
        answer = json.loads(text)[0]
        return {name: _feature_of_json(value) for name, value in answer.items() if isinstance(value, dict)}
    found: dict[str, Feature] = {}
    for name, value in rows_of(text):
        on = switch_of(value)
        if on is not None:
            requested = switch_of(value.partition("[requested ")[2].rstrip("]"))
            found[name] = Feature(on, fixed="[fixed]" in value, requested=requested)
    return found


def _feature_of_json(value: dict[str, object]) -> Feature:
    on, fixed, requested = value.get("active"), value.get("fixed"), value.get("requested")
    different = isinstance(requested, bool) and requested != on and not fixed
    return Feature(on is True, fixed is True, bool(requested) if different else None)


# ``ethtool --show-priv-flags``: switches that only this driver has.


def parse_private_flags(text: str) -> dict[str, bool]:
    """By the driver's names, as text or JSON."""
    if text.lstrip().startswith("["):
        answer = json.loads(text)[0]
        flags = answer.get("private-flags", answer)
        return {str(name): value for name, value in flags.items() if isinstance(value, bool)}
    switches = ((name, switch_of(value)) for name, value in rows_of(text))
    return {name: on for name, on in switches if on is not None}


# ``ethtool -n DEVICE rx-flow-hash TYPE``: which fields of a flow its hash is made of.


_FIELDS = {
    "L2DA": "m",
    "VLAN tag": "v",
    "L3 proto": "t",
    "IP SA": "s",
    "IP DA": "d",
    "L4 bytes 0 & 1 [TCP/UDP src port]": "f",
    "L4 bytes 2 & 3 [TCP/UDP dst port]": "n",
}
"""ethtool's words, and the letters that set them (ethtool(8), rx-flow-hash)."""


def parse_hash_fields(text: str) -> str:
    """The letters in ethtool's order: ``sdfn``; ``r`` where such frames are dropped. ValueError for neither."""
    rows = [row.strip() for row in text.splitlines()]
    if any("All matching flows discarded on RX" in row for row in rows):
        return "r"
    if not any("use these fields for computing Hash flow key" in row for row in rows):
        raise ValueError("no fields of a hash in it")
    return "".join(letter for words, letter in _FIELDS.items() if words in rows)


# ``ethtool -x``: to which receive queue the hash of a flow leads (RSS): table, key, function.


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


def describe_table(table: tuple[int, ...]) -> str | None:
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
