"""``ethtool -T``: which time stamps an interface can give, and its clock."""

from __future__ import annotations

from typing import Any

from nicbench.adapters._rows import number_of

_SECTIONS = {
    "Capabilities:": "capabilities",
    "Hardware Transmit Timestamp Modes:": "transmit_modes",
    "Hardware Receive Filter Modes:": "receive_filters",
}


def parse_time_stamping(text: str) -> dict[str, Any]:
    """The number of its PTP clock (/dev/ptpN), null where it has none; the modes in ethtool's words."""
    found: dict[str, Any] = {"clock": None, **{name: [] for name in _SECTIONS.values()}}
    section: str | None = None
    for row in text.splitlines():
        if row[:1].isspace():
            if section is not None and row.split():
                # "hardware-transmit" or, up to 5.2, "hardware-transmit     (SOF_TIMESTAMPING_TX_HARDWARE)".
                found[section].append(row.split()[0])
            continue
        section = next((name for head, name in _SECTIONS.items() if row.startswith(head)), None)
        if row.startswith(("PTP Hardware Clock:", "Hardware timestamp provider index:")):
            found["clock"] = number_of(row.rpartition(":")[2].strip())
    if not found["capabilities"]:
        raise ValueError("no time-stamping capabilities in it")
    return found
