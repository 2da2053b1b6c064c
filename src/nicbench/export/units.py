"""Units, taken from the ends of names: ``ndr_frames_per_s`` is in frames a second."""

from __future__ import annotations

from typing import Final

_UNITS: Final = (
    "frames_per_s",
    "bits_per_s",
    "bytes_per_s",
    "datagrams_per_s",
    "messages_per_s",
    "packets_per_s",
    "transactions_per_s",
    "cycles_per_packet",
    "percent",
    "ratio",
    "share",
    "ns",
    "us",
    "ms",
    "s",
    "hz",
    "bytes",
    "bits",
    "bursts",
    "cycles",
    "datagrams",
    "frames",
    "messages",
    "packets",
    "trials",
    "joules",
    "watts",
    "celsius",
)
_INSIDE: Final = {"_percent_of_line_rate": "percent"}
"""Names that go on after their unit, to say what it is a share of."""


def unit_of(name: str) -> str | None:
    """The unit that a name ends with, as it is written there; None where it has none."""
    for end, unit in _INSIDE.items():
        if name.endswith(end) or name == end.removeprefix("_"):
            return unit
    return next((unit for unit in _UNITS if name == unit or name.endswith(f"_{unit}")), None)
