"""``ethtool -c``: after how long, or how many frames, an interrupt comes."""

from __future__ import annotations

import re

from nicbench.adapters._rows import key_of, number_of, rows_of, switch_of

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
