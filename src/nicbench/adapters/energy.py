"""``ethtool --show-eee``: Energy-Efficient Ethernet (IEEE 802.3az), which delays the first frame after an idle time."""

from __future__ import annotations

import re

from nicbench.adapters._rows import rows_of

_MICROSECONDS = re.compile(r"^(\d{1,9}) \(us\)")


def parse_energy(text: str) -> dict[str, bool | int | None]:
    """``active`` says that both ends agreed to it."""
    rows = dict(rows_of(text))
    status = rows.get("EEE status")
    if status is None:
        raise ValueError("no EEE status in it")
    enabled = status.startswith("enabled")
    idle = rows.get("Tx LPI", "")
    timer = _MICROSECONDS.match(idle)
    return {
        "supported": not status.startswith("not supported"),
        "enabled": enabled,
        "active": enabled and status.endswith("- active"),
        "transmit_idle": False if idle.startswith("disabled") else bool(timer) or None,
        "transmit_idle_timer_ns": int(timer[1]) * 1000 if timer else None,
    }
