"""``ethtool -g`` and ``-l``: rings and channels, each with its maximum and its current value."""

from __future__ import annotations

from nicbench.adapters._rows import key_of, number_of, rows_of


def parse_limits(text: str) -> dict[str, dict[str, int | None]]:
    """For each row its maximum and its current value, null where it is ``n/a``; rows without any number are left out.

    Rows that are no number (``TX Push: off``) are in ``parse_ring_switches``.
    """
    limits: dict[str, dict[str, int | None]] = {}
    column = "maximum"
    for name, value in rows_of(text):
        if name.startswith("Current hardware settings"):
            column = "current"
        elif value:
            limits.setdefault(key_of(name), {})[column] = number_of(value)
    return {name: values for name, values in limits.items() if any(value is not None for value in values.values())}


def current_of(limits: dict[str, dict[str, int | None]]) -> dict[str, int]:
    """The current values alone, of the rows that have one."""
    return {name: value for name, values in limits.items() if (value := values.get("current")) is not None}
