"""Points in time as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def label_of_time(wall_time: str) -> str:
    """An ISO time as people read it; anything else as it is, for it only labels."""
    try:
        moment = datetime.fromisoformat(wall_time)
    except ValueError:
        return wall_time
    return f"{moment.astimezone(UTC) if moment.tzinfo else moment:%Y-%m-%d %H:%M}{' UTC' if moment.tzinfo else ''}"
