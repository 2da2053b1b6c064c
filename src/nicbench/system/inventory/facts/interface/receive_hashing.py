"""How each test interface spreads flows over its receive queues (RSS): table, key, hash function."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.system.adapters.ethtool_queues import describe_table, parse_receive_hashing
from nicbench.system.inventory.facts._per_interface import EthtoolFact


class _Hashing(TypedDict):
    """Of one interface."""

    queues: int | None
    entries: int | None
    table: str | None
    key: str | None
    function: str | None


class ReceiveHashingFact(EthtoolFact):
    """From ``ethtool -x``."""

    kind = "receive_hashing"
    shape = dict[str, _Hashing]
    options = ("-x",)

    def parse(self, text: str) -> dict[str, Any]:
        """The table in words that say all of it."""
        hashing = parse_receive_hashing(text)
        return {
            "queues": hashing.queues,
            "entries": len(hashing.table) or None,
            "table": describe_table(hashing.table),
            "key": hashing.key,
            "function": hashing.function,
        }
