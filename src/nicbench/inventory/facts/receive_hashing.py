"""How each test interface spreads flows over its receive queues (RSS): table, key, hash function."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.receive_hashing import described, parse_receive_hashing
from nicbench.inventory.facts._per_interface import EthtoolFact


class ReceiveHashingFact(EthtoolFact):
    """From ``ethtool -x``."""

    kind = "receive_hashing"
    options = ("-x",)

    def parse(self, text: str) -> dict[str, Any]:
        """The table in words that say all of it."""
        hashing = parse_receive_hashing(text)
        return {
            "queues": hashing.queues,
            "entries": len(hashing.table) or None,
            "table": described(hashing.table),
            "key": hashing.key,
            "function": hashing.function,
        }
