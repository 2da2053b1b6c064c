"""``ethtool -i``: driver, version, firmware, and where on the bus it sits."""

from __future__ import annotations

from nicbench.adapters._rows import rows_of


def parse_driver(text: str) -> dict[str, str | None]:
    """An empty field is unknown."""
    fields = {name: value or None for name, value in rows_of(text)}
    return {
        "name": fields.get("driver"),
        "version": fields.get("version"),
        "firmware": fields.get("firmware-version"),
        "option_rom": fields.get("expansion-rom-version"),
        "bus": fields.get("bus-info"),
    }
