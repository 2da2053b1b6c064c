"""``tc -j qdisc show``: queueing disciplines of an interface."""

from __future__ import annotations

import json
from typing import Any


def parse_qdiscs(text: str) -> list[dict[str, Any]]:
    """Root first, then what hangs under it; parameters in tc's own words."""
    listed = json.loads(text)
    if not isinstance(listed, list):
        raise ValueError("not a list of queueing disciplines")
    return [
        {
            "kind": entry["kind"],
            "handle": entry.get("handle"),
            "parent": "root" if entry.get("root") else entry.get("parent"),
            "parameters": entry.get("options") or {},
        }
        for entry in listed
    ]
