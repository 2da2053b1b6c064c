"""A value that differs between runs, in words."""

from __future__ import annotations

import json
from typing import Any, Final

NOT_RECORDED: Final = object()
"""In the place of a value of which a run says nothing at all."""
LONGEST: Final = 160


def shown(value: Any, path: str, longest: int = LONGEST) -> str:
    """For people, on one line and cut where it is longer than so many characters."""
    if value is NOT_RECORDED:
        return "not tuned" if path.startswith("tuning.") else "not recorded"
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
