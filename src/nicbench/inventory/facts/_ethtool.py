"""Output of ethtool. Pure: text in, facts out."""

from __future__ import annotations


def parse_driver(text: str) -> dict[str, str | None]:
    """``ethtool -i``; an empty field is unknown."""
    fields = {
        name.strip(): value.strip() or None for name, _, value in (row.partition(":") for row in text.splitlines())
    }
    return {
        "name": fields.get("driver"),
        "version": fields.get("version"),
        "firmware": fields.get("firmware-version"),
        "bus": fields.get("bus-info"),
    }


def parse_limits(text: str) -> dict[str, dict[str, int | None]]:
    """``ethtool -g`` and ``-l``: for each row its maximum and its current value, null where it is ``n/a``."""
    limits: dict[str, dict[str, int | None]] = {}
    column = "maximum"
    for row in text.splitlines():
        name, colon, value = (part.strip() for part in row.partition(":"))
        if name.startswith("Current hardware settings"):
            column = "current"
        elif colon and value:
            key = name.lower().replace(" ", "_")
            limits.setdefault(key, {})[column] = int(value) if value.isdigit() else None
    return {name: values for name, values in limits.items() if any(value is not None for value in values.values())}


def parse_features(text: str) -> list[str]:
    """``ethtool -k``: the offloads that are on, in its order."""
    rows = (row.strip().partition(":") for row in text.splitlines()[1:])
    return [name for name, _, value in rows if value.split()[:1] == ["on"]]
