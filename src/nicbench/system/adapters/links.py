"""What ip, tc, dcb, rdma and lldpcli print of interfaces. Pure: text in, plain data out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, ip_address
from typing import Any, Final, Literal

from nicbench.core.bond import Bond, BondPort

# What ip and lldpcli say of interfaces: what they are, what is made of them, what stands at the other end. Pure.  A
# bond is read from ``ip -j -d link show`` and sysfs, its ports in the order that hashing counts by.

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
    found = {}
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

    A chassis of ``json`` is an object under its name, one of ``json0`` a list; a single interface is not a list in
    ``json``.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    root = json.loads(text).get("lldp", {})
    for part in _iterate_items(root):
        for interface in _iterate_items(part.get("interface")):
            named = [(str(interface["name"]), interface)] if "name" in interface else list(interface.items())
            for name, entry in named:
                for one in _iterate_items(entry):
                    found.setdefault(name, []).append(_neighbour(one))
    return found


def _neighbour(entry: Mapping[str, Any]) -> dict[str, Any]:
    chassis, name = _chassis(entry.get("chassis"))
    port = next(_iterate_items(entry.get("port")), {})
    vlan = next(_iterate_items(entry.get("vlan")), {})
    autonegotiation = next(_iterate_items(port.get("auto-negotiation")), {})
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
    one = next(_iterate_items(value), {})
    key = next(iter(one), None)
    if (
        len(one) == 1
        and key is not None
        and key not in ("id", "name", "descr")
        and isinstance(inside := one[key], dict)
    ):
        return inside, str(key)
    return one, None


def _iterate_items(value: Any) -> Iterator[Mapping[str, Any]]:
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
    """Returns the bond that ``device`` is, or that lies under the VLAN that it is; None if it is neither.

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
        steered=any(_data_of_member(link).get("queue_id") for link in members.values()),
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
    member = _data_of_member(link)
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


def _data_of_member(link: Mapping[str, Any]) -> Mapping[str, Any]:
    data: Mapping[str, Any] = link.get("linkinfo", {}).get("info_slave_data", {})
    return data


# What dcb and tc say of how an interface queues frames: priorities, classes, disciplines. Pure.

# ``dcb -j``: priority flow control (IEEE 802.1Qbb), traffic classes (802.1Qaz), and what a port trusts.


PRIORITIES = 8


def parse_pfc(text: str) -> dict[str, Any]:
    """``dcb -j pfc show``: the priorities that are paused on their own, and for how many classes the port can."""
    answer = _object(text)
    switches = answer.get("prio_pfc")
    if not isinstance(switches, list) or len(switches) != PRIORITIES:
        raise ValueError("prio_pfc is not a list of 8")
    return {
        "priorities": [priority for priority, on in enumerate(switches) if on is True or on == "on"],
        "classes_possible": answer.get("pfc_cap"),
        "delay_bits": answer.get("delay"),
    }


def parse_trust(text: str) -> list[str]:
    """``dcb -j apptrust show`` (iproute2 6.3): what a port believes of a frame, in order: ``dscp``, ``pcp``."""
    order = _object(text).get("order")
    if not isinstance(order, list):
        raise ValueError("no order of trust in it")
    return [str(selector) for selector in order]


def parse_dscp(text: str) -> dict[str, int]:
    """``dcb -j app show dscp-prio``: DSCP to priority."""
    pairs = _object(text).get("dscp_prio") or []
    return {str(dscp): int(priority) for dscp, priority in pairs}


def parse_classes(text: str) -> dict[str, Any]:
    """``dcb -j ets show``: traffic class of each priority, share of the bandwidth and algorithm of each class."""
    answer = _object(text)
    return {
        "class_by_priority": answer.get("prio_tc"),
        "bandwidth_percent": answer.get("tc_bw"),
        "algorithms": answer.get("tc_tsa"),
    }


def _object(text: str) -> Mapping[str, Any]:
    answer = json.loads(text)
    if not isinstance(answer, dict):
        raise ValueError("not an object")
    return answer


# ``tc -j qdisc show``: queueing disciplines of an interface.


def parse_qdiscs(text: str) -> list[dict[str, Any]]:
    """Root first, then what hangs under it; parameters in tc's own words."""
    listed = json.loads(text)
    if not isinstance(listed, list):
        raise ValueError("not a list of queueing disciplines")
    return [
        {
            "kind": entry["kind"],
            "handle": entry.get("handle"),
            "parent": "root" if entry.get("root") else entry.get("parent"),
            "parameters": entry.get("options") or {},
        }
        for entry in listed
    ]


# RDMA devices and their GIDs, as ``rdma`` (iproute2) and the kernel's sysfs show them. Pure.  Sources: rdma-link(8);
# Documentation/ABI/stable/sysfs-class-infiniband of the kernel; the GID of an IPv4 address is the address mapped to
# IPv6 (RoCE v2, annex A17 of the InfiniBand specification).

ROCE_V2: Final = "RoCE v2"
GIDS_SCRIPT: Final = (
    "cd /sys/class/infiniband/{device}/ports/{port} && for file in $(grep -lsx {gid} gids/*); do "
    'number=${{file##*/}}; echo "$number $(cat gid_attrs/ndevs/$number) $(cat gid_attrs/types/$number)"; done; '
    "[ -e ../../device ] || echo soft"
)
"""For a shell: number, interface and type of each GID of a port that is ``gid``, for all are up to a thousand.

Then ``soft`` where no device of a bus is beneath the RDMA device.
"""


def parse_rdma_links(text: str) -> list[dict[str, Any]]:
    """Parses ``rdma -j link show``: ``ifname``, ``port``, ``state``, ``netdev``. ValueError if it is not a list."""
    links = json.loads(text or "[]")
    if not isinstance(links, list) or any(not isinstance(link, Mapping) or "ifname" not in link for link in links):
        raise ValueError("not a list of RDMA links")
    return [dict(link) for link in links]


def gid_of(address: str) -> str:
    """An IP address as sysfs writes it among the GIDs."""
    ip = ip_address(address)
    return f"0000:0000:0000:0000:0000:ffff:{_halves(ip)}" if isinstance(ip, IPv4Address) else ip.exploded


def gid_index_of(text: str, interface: str) -> int | None:
    """Returns the first RoCE v2 GID of this interface in the output of the script, or None."""
    for line in text.splitlines():
        number, _, rest = line.partition(" ")
        name, _, kind = rest.partition(" ")
        if number.isdigit() and name == interface and kind.strip() == ROCE_V2:
            return int(number)
    return None


def is_soft(text: str) -> bool:
    """Whether what the script says is of a driver without an adapter (rxe, siw)."""
    return "soft" in text.splitlines()


def _halves(ip: IPv4Address) -> str:
    text = ip.packed.hex()
    return f"{text[:4]}:{text[4:]}"
