"""Whether a bond is what was asked for, and works: from ``ip -j -d link show``, in words where it does not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nicbench.interfaces._bond_options import LACP, BondSettings

_NOBODY: Final = "00:00:00:00:00:00"


def unlike(links: Sequence[Mapping[str, Any]], name: str, settings: BondSettings, mtu: int | None = None) -> list[str]:
    """What does not read as it was set, each in words; nothing where all does."""
    link = _link(links, name)
    data = link.get("linkinfo", {}).get("info_data", {})
    found = [
        f"{key} is {data.get(key)} instead of {value}"
        for key, value in settings.data().items()
        if str(data.get(key, 0 if key == "min_links" else None)) != str(value)
    ]
    if mtu is not None and link.get("mtu") != mtu:
        found.append(f"its MTU is {link.get('mtu')} instead of {mtu}")
    return found


def waiting_for(links: Sequence[Mapping[str, Any]], name: str, settings: BondSettings, ports: Sequence[str]) -> str:
    """What it lacks to work as a whole, in words; an empty text where it lacks nothing.

    Of LACP: a partner, and every port in the one aggregator that has it, collecting and distributing
    (IEEE 802.1AX-2020, 6.4.13). Of all modes: every port's link is up.
    """
    bond = _link(links, name)
    if "LOWER_UP" not in bond.get("flags", ()):
        return f"{name} has no carrier: {_each(links, ports)}"
    down = [port for port in ports if _membership(links, port, name).get("mii_status") != "UP"]
    if down:
        return f"{_listed(down)} {'is' if len(down) == 1 else 'are'} down: {_each(links, ports)}"
    if settings.mode != LACP:
        return ""
    info = bond.get("linkinfo", {}).get("info_data", {}).get("ad_info") or {}
    if info.get("partner_mac", _NOBODY) == _NOBODY:
        return f"nobody at the other end speaks LACP: {_each(links, ports)}"
    outside = [
        port for port in ports if _membership(links, port, name).get("ad_aggregator_id") != info.get("aggregator")
    ]
    if outside:
        return (
            f"its ports are not in one aggregator, the active one is {info.get('aggregator')} with the partner "
            f"{info['partner_mac']}: {_each(links, ports)}"
        )
    idle = [port for port in ports if not _distributes(_membership(links, port, name))]
    if idle:
        return f"{_listed(idle)} {'does' if len(idle) == 1 else 'do'} not distribute yet: {_each(links, ports)}"
    return ""


def _each(links: Sequence[Mapping[str, Any]], ports: Sequence[str]) -> str:
    """Such as: e0 is up in aggregator 1, e1 is down."""
    return ", ".join(f"{port} {_port_words(_link(links, port))}" for port in ports)


def _port_words(link: Mapping[str, Any]) -> str:
    if not link:
        return "is not there"
    data = link.get("linkinfo", {}).get("info_slave_data", {})
    state = "is up" if data.get("mii_status") == "UP" else "is down"
    aggregator = data.get("ad_aggregator_id")
    return state if aggregator is None else f"{state} in aggregator {aggregator}"


def _distributes(member: Mapping[str, Any]) -> bool:
    """An older ``ip`` does not tell: then that the bond has it active must do."""
    states = member.get("ad_actor_oper_port_state_str")
    if states is None:
        return bool(member.get("state", "ACTIVE") == "ACTIVE")
    return {"collecting", "distributing"} <= set(states)


def _membership(links: Sequence[Mapping[str, Any]], port: str, bond: str) -> Mapping[str, Any]:
    link = _link(links, port)
    data: Mapping[str, Any] = link.get("linkinfo", {}).get("info_slave_data", {})
    return data if link.get("master") == bond else {}


def _link(links: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next((link for link in links if link.get("ifname") == name), {})


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
