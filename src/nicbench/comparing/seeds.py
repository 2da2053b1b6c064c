"""The seed of a report's intervals: it follows from the runs, so that the same runs always get the same intervals."""

from __future__ import annotations

import hashlib


def seed_of(*run_ids: str) -> int:
    """0 to 2^32 - 1; the order of the runs does not matter. It is printed wherever an interval is."""
    text = "\n".join(sorted(run_ids))
    return int.from_bytes(hashlib.sha256(f"nicbench statistics\n{text}".encode()).digest()[:4], "big")
