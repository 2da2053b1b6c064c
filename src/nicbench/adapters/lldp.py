"""``lldpcli -f json show neighbors``: what the other end of the cable says of itself (IEEE 802.1AB)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def parse_neighbours(text: str) -> dict[str, list[dict[str, Any]]]:
    """Neighbours by interface: switch, port, and what it is set to. Both of lldpd's layouts, ``json`` and ``json0``.

    A chassis of ``json`` is an object under its name, one of ``json0`` a list; an interface alone is no list in
    ``json``.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    root = json.loads(text).get("lldp", {})
    for part in _each(root):
        for interface in _each(part.get("interface")):
            named = [(str(interface["name"]), interface)] if "name" in interface else list(interface.items())
            for name, entry in named:
                for one in _each(entry):
                    found.setdefault(name, []).append(_neighbour(one))
    return found


def _neighbour(entry: Mapping[str, Any]) -> dict[str, Any]:
    chassis, name = _chassis(entry.get("chassis"))
    port = next(_each(entry.get("port")), {})
    vlan = next(_each(entry.get("vlan")), {})
    autonegotiation = next(_each(port.get("auto-negotiation")), {})
    mtu = _text(port.get("mfs"))
    return {
        "name": name or _text(chassis.get("name")),
        "description": _text(chassis.get("descr")),
        "chassis": _text(chassis.get("id")),
        "port": _text(port.get("id")),
        "port_description": _text(port.get("descr")),
        "maximum_frame_bytes": int(mtu) if mtu and mtu.isdecimal() else None,
        "speed": _text(autonegotiation.get("current")),
        "vlan": _text(vlan.get("vlan-id")),
        "protocol": _text(entry.get("via")),
    }


def _chassis(value: Any) -> tuple[Mapping[str, Any], str | None]:
    one = next(_each(value), {})
    key = next(iter(one), None)
    if (
        len(one) == 1
        and key is not None
        and key not in ("id", "name", "descr")
        and isinstance(inside := one[key], dict)
    ):
        return inside, str(key)
    return one, None


def _each(value: Any) -> Iterator[Mapping[str, Any]]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict):
            yield one


def _text(value: Any) -> str | None:
    """``"x"``, ``{"type": .., "value": "x"}`` or ``[{"value": "x"}]``."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        value = value.get("value")
    return None if value is None or value == "" else str(value)
