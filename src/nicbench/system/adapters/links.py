"""What ip and lldpcli say of interfaces: what they are, what is made of them, what stands at the other end. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_BOND = (
    *("mode", "miimon", "xmit_hash_policy", "ad_lacp_rate", "ad_select", "ad_info", "active_slave"),
    *("lp_interval", "updelay", "downdelay"),
)
_BRIDGE = ("stp_state", "vlan_filtering", "vlan_protocol", "ageing_time", "mcast_snooping", "nf_call_iptables")
_VLAN = ("id", "protocol", "flags")
_XDP_MODES = {1: "native", 2: "generic", 3: "offloaded"}  # XDP_ATTACHED_* of linux/if_link.h


def parse_links(text: str) -> list[dict[str, Any]]:
    """The interfaces. ValueError where the text is not ip's list of them."""
    links = json.loads(text)
    if not isinstance(links, list):
        raise ValueError("not a list of interfaces")
    return [link for link in links if isinstance(link, dict) and "ifname" in link]


def aggregates(links: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Bonds and bridges with their members, VLANs with what they stand on, by name."""
    found: dict[str, dict[str, Any]] = {}
    for link in links:
        info = link.get("linkinfo", {})
        kind, data = info.get("info_kind"), info.get("info_data", {})
        name = str(link["ifname"])
        if kind in ("bond", "bridge"):
            wanted = _BOND if kind == "bond" else _BRIDGE
            members = [member for member in links if member.get("master") == name]
            found[name] = {
                "kind": kind,
                "members": {str(member["ifname"]): _membership(member) for member in members},
                **{key: data[key] for key in wanted if key in data},
            }
        elif kind in ("vlan", "macvlan", "ipvlan", "vxlan", "team"):
            found[name] = {"kind": kind, "on": link.get("link"), **{key: data[key] for key in _VLAN if key in data}}
    return found


def virtual_functions(link: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The virtual functions of a physical one, as their owner set them."""
    return [
        {
            "number": function.get("vf"),
            "mac": function.get("address") or function.get("mac"),
            "spoof_check": function.get("spoofchk"),
            "trusted": function.get("trust"),
            "link_state": function.get("link_state"),
            "rate": function.get("rate"),
            "vlans": [vlan.get("vlan") for vlan in function.get("vlan_list", []) if isinstance(vlan, dict)],
        }
        for function in link.get("vfinfo_list", [])
    ]


def xdp_program(link: Mapping[str, Any]) -> dict[str, Any] | None:
    """The program that frames meet first, where there is one; ``tag`` is a hash of its instructions."""
    xdp = link.get("xdp") or {}
    attached = xdp.get("attached") or [xdp]
    program = attached[0].get("prog") or {}
    if program.get("id") is None:
        return None
    mode = attached[0].get("mode")
    return {
        "mode": _XDP_MODES.get(mode) if isinstance(mode, int) else None,
        "name": program.get("name"),
        "tag": program.get("tag"),
    }


def _membership(member: Mapping[str, Any]) -> Mapping[str, Any]:
    data = member.get("linkinfo", {}).get("info_slave_data", {})
    kept = ("state", "mii_status", "link_failure_count", "queue_id", "ad_aggregator_id", "hairpin", "learning", "flood")
    return {key: data[key] for key in kept if key in data}


# ``lldpcli -f json show neighbors``: what the other end of the cable says of itself (IEEE 802.1AB).


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
