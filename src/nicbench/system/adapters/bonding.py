"""The bond under an interface: from ``ip -j -d link show`` and sysfs, its ports in the order that hashing counts by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from nicbench.core.bond import Bond, BondPort

_BIG_ENDIAN = frozenset({"s390x", "s390", "ppc64", "ppc", "m68k", "mips", "mips64", "sparc64", "parisc"})
"""Of ``uname -m``; all other machines that Linux runs on are little-endian."""
_MEGABIT = 1e6


def bond_under(
    device: str,
    links: Sequence[Mapping[str, Any]],
    order: Mapping[str, Sequence[str]],
    speeds_mbit: Mapping[str, int],
    release: str | None = None,
    machine: str | None = None,
) -> Bond | None:
    """The bond that ``device`` is, or that the VLANs lie on which it is; None where there is none.

    ``order`` has the ports of each bond as ``/sys/class/net/BOND/bonding/slaves`` lists them, which is the order of the
    driver's own list (``bond_for_each_slave``), and ``speeds_mbit`` what ``/sys/class/net/PORT/speed`` says.
    """
    by_name = {str(link["ifname"]): link for link in links}
    own = by_name.get(device.partition("@")[0])
    vlan: int | None = None
    under = own
    while under is not None and _kind(under) == "vlan":
        # The bond sees the outer tag of several.
        vlan = _data(under).get("id")
        under = by_name.get(str(under.get("link")))
    if own is None or under is None or _kind(under) != "bond":
        return None
    name, data = str(under["ifname"]), _data(under)
    members = {str(link["ifname"]): link for link in links if link.get("master") == name}
    active = (data.get("ad_info") or {}).get("aggregator")
    ports = tuple(
        _port(port, members[port], str(data.get("mode")), active, speeds_mbit.get(port))
        for port in _put_in_order(order.get(name, ()), members)
    )
    order_of_bytes: Literal["little", "big"] = "big" if machine in _BIG_ENDIAN else "little"
    return Bond(
        name=name,
        mode=str(data.get("mode")),
        policy=data.get("xmit_hash_policy"),
        ports=ports,
        active_port=data.get("active_slave"),
        aggregator=active,
        partner_mac=(data.get("ad_info") or {}).get("partner_mac"),
        mac=own.get("address"),
        vlan=vlan,
        mtu_bytes=own.get("mtu"),
        kernel=release,
        byte_order=order_of_bytes,
        steered=any(_membership(link).get("queue_id") for link in members.values()),
    )


def parse_order(text: str) -> dict[str, tuple[str, ...]]:
    """``grep -H "" /sys/class/net/*/bonding/slaves``: the ports of each bond."""
    found = {}
    for line in text.splitlines():
        path, colon, names = line.partition(":")
        parts = path.split("/")
        if colon and len(parts) > 4 and parts[-1] == "slaves":
            found[parts[4]] = tuple(names.split())
    return found


def parse_speeds(text: str) -> dict[str, int]:
    """``grep -H "" /sys/class/net/*/speed``: megabits per second; a link that is down has none (-1)."""
    found = {}
    for line in text.splitlines():
        path, _, value = line.partition(":")
        parts = path.split("/")
        if len(parts) > 4 and parts[-1] == "speed" and value.strip().isdecimal():
            found[parts[4]] = int(value)
    return found


def _put_in_order(order: Iterable[str], members: Mapping[str, Any]) -> list[str]:
    """Those that joined since the order was read come last, as they do in the kernel."""
    known = [name for name in order if name in members]
    return [*known, *(name for name in members if name not in known)]


def _port(
    name: str, link: Mapping[str, Any], mode: str, active_aggregator: int | None, speed_mbit: int | None
) -> BondPort:
    """``bond_slave_can_tx``, and for LACP the active aggregator (``bond_update_slave_arr``)."""
    member = _membership(link)
    flags = link.get("flags", ())
    aggregator = member.get("ad_aggregator_id")
    # "state" is whether the bond has it active: of LACP, whether it is collecting and distributing.
    can_send = "UP" in flags and member.get("mii_status") == "UP" and member.get("state", "ACTIVE") == "ACTIVE"
    return BondPort(
        name=name,
        usable=can_send and (mode != "802.3ad" or (aggregator is not None and aggregator == active_aggregator)),
        speed_bits_per_s=None if speed_mbit is None else speed_mbit * _MEGABIT,
        aggregator=aggregator,
    )


def _kind(link: Mapping[str, Any]) -> Any:
    return link.get("linkinfo", {}).get("info_kind")


def _data(link: Mapping[str, Any]) -> Mapping[str, Any]:
    data: Mapping[str, Any] = link.get("linkinfo", {}).get("info_data", {})
    return data


def _membership(link: Mapping[str, Any]) -> Mapping[str, Any]:
    data: Mapping[str, Any] = link.get("linkinfo", {}).get("info_slave_data", {})
    return data
