"""``ethtool DEVICE``: speed, duplex, autonegotiation, modes, and whether there is a link."""

from __future__ import annotations

import re
from typing import Any

from nicbench.adapters._rows import known

_ROW = re.compile(r"^\s+(?P<name>[A-Z][A-Za-z0-9 /-]*):\s*(?P<value>.*)$")
_SPEED = re.compile(r"^(\d{1,9})Mb/s$")
_MODE = re.compile(r"^\S+/(?:Half|Full)$|^\S*base\S+$")


def parse_link_settings(text: str) -> dict[str, Any]:
    """Null is what the driver does not say, as a virtual one does not."""
    rows = _rows(text)

    def one(name: str) -> str | None:
        return known(" ".join(rows.get(name, [])) or None)

    speed = _SPEED.match(one("Speed") or "")
    detected = one("Link detected")
    return {
        "link": None if detected is None else detected.startswith("yes"),
        "why_no_link": detected.partition("(")[2].rstrip(")") or None if detected else None,
        "speed_bits_per_s": int(speed[1]) * 1_000_000 if speed else None,
        "lanes": int(lanes) if (lanes := one("Lanes") or "").isdecimal() else None,
        "duplex": duplex.lower() if (duplex := one("Duplex")) else None,
        "autonegotiation": {"on": True, "off": False}.get(one("Auto-negotiation") or ""),
        "autonegotiation_possible": {"Yes": True, "No": False}.get(one("Supports auto-negotiation") or ""),
        "port": one("Port"),
        "transceiver": one("Transceiver"),
        "supported_modes": _modes(rows.get("Supported link modes", [])),
        "advertised_modes": _modes(rows.get("Advertised link modes", [])),
        "partner_modes": _modes(rows.get("Link partner advertised link modes", [])),
        "supported_fec": (one("Supported FEC modes") or "").split(),
    }


def _rows(text: str) -> dict[str, list[str]]:
    """Name to values: a list of modes goes on over the rows below its name."""
    rows: dict[str, list[str]] = {}
    name = ""
    for row in text.splitlines():
        if found := _ROW.match(row):
            name = found["name"]
            rows.setdefault(name, []).append(found["value"].strip())
        elif name and row[:1].isspace():
            rows[name].append(row.strip())
    if not rows:
        raise ValueError("no link settings in it")
    return rows


def _modes(values: list[str]) -> list[str]:
    return [word for value in values for word in value.split() if _MODE.match(word)]
