"""Names by which sentences point to tables; pure."""

from __future__ import annotations

import re


def anchor(*words: str) -> str:
    """The id of a table by what tells it from others: ``throughput-bare-run-2``."""
    text = " ".join(word for word in words if word and word != "default")
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "table"
