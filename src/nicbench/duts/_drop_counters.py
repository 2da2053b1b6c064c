"""Counters of frames that disappear in a Linux DUT: pure parsers, and their reading on a host."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from nicbench.hosts.base import Host

_SOFTNET_DROPPED, _SOFTNET_CPU = 1, 12
# Frames that the IP layer threw away instead of forwarding them (RFC 4293 names).
_IPV4_LOSSES = ("InHdrErrors", "InAddrErrors", "InDiscards", "InNoRoutes", "OutDiscards", "OutNoRoutes")
_IPV6_LOSSES = (
    "Ip6InHdrErrors",
    "Ip6InTooBigErrors",
    "Ip6InNoRoutes",
    "Ip6InAddrErrors",
    "Ip6InTruncatedPkts",
    "Ip6InDiscards",
    "Ip6OutDiscards",
    "Ip6OutNoRoutes",
)
# The others of `struct rtnl_link_stats64` are parts of these.
_DEVICE_LOSSES = {"rx": ("errors", "dropped", "missed_errors"), "tx": ("errors", "dropped")}


def softnet_dropped(text: str) -> dict[int, int]:
    """Frames dropped at the full backlog of each CPU, from ``/proc/net/softnet_stat`` (hex; one line an online CPU)."""
    dropped: dict[int, int] = {}
    for number, line in enumerate(text.splitlines()):
        fields = line.split()
        if len(fields) <= _SOFTNET_DROPPED:
            continue
        # Since Linux 5.14 the line names its CPU; before, only the order did.
        cpu = int(fields[_SOFTNET_CPU], 16) if len(fields) > _SOFTNET_CPU else number
        dropped[cpu] = int(fields[_SOFTNET_DROPPED], 16)
    return dropped


def snmp_table(text: str, table: str) -> dict[str, int]:
    """One table (``Ip``) of ``/proc/net/snmp`` or ``netstat``: a line of names, then a line of values."""
    rows = [line.split()[1:] for line in text.splitlines() if line.startswith(f"{table}:")]
    if len(rows) != 2 or len(rows[0]) != len(rows[1]):
        return {}
    return {name: int(value) for name, value in zip(*rows, strict=True)}


def snmp_ipv6(text: str) -> dict[str, int]:
    """``/proc/net/snmp6``: a name and a value in each line."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}


def device_losses(text: str) -> dict[str, int]:
    """Losses of one device from ``ip -j -s -s link show``, e.g. ``tx_dropped``; absent where the kernel gives none."""
    statistics = json.loads(text)[0].get("stats64", {})
    return {
        f"{side}_{name}": int(statistics[side][name])
        for side, names in _DEVICE_LOSSES.items()
        for name in names
        if name in statistics.get(side, {})
    }


def named(prefix: str, counters: Mapping[str, int], wanted: Iterable[str]) -> dict[str, int]:
    """The wanted counters, each with its place in front."""
    return {f"{prefix} {name}": counters[name] for name in wanted if name in counters}


async def read_ip_layer(host: Host) -> dict[str, int]:
    """IPv4 and IPv6 losses of the host's (namespace's) IP layer."""
    ipv4 = snmp_table(await host.read_file("/proc/net/snmp") or "", "Ip")
    # The kernel keeps this one apart, because RFC 4293 came after the file's format.
    ipv4 |= snmp_table(await host.read_file("/proc/net/netstat") or "", "IpExt")
    ipv6 = snmp_ipv6(await host.read_file("/proc/net/snmp6") or "")
    return named("ipv4", ipv4, _IPV4_LOSSES) | named("ipv6", ipv6, _IPV6_LOSSES)


async def read_devices(host: Host, devices: Iterable[str]) -> dict[str, int]:
    """Losses of the devices themselves."""
    found: dict[str, int] = {}
    for device in devices:
        done = await host.run(("ip", "-j", "-s", "-s", "link", "show", "dev", device))
        losses = device_losses(done.stdout)
        found |= named(device, losses, losses)
    return found
