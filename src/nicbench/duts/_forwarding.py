"""Sets Linux IP forwarding up between ports: settings, addresses, static neighbours, routes; each with its undo."""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from typing import Any

from nicbench.duts._networks import network_behind, port_address
from nicbench.duts._ports import DutDevices
from nicbench.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo import DeleteIpObject

_PREFIX_LENGTH = {4: 24, 6: 64}
_A_DAY_MS = "86400000"

Interface = IPv4Interface | IPv6Interface


@dataclass(frozen=True, slots=True)
class ForwardingPort:
    """A port of the router: its addresses, the tester behind it, and the networks routed there."""

    device: str
    mac: str
    tester_mac: str
    addresses: tuple[str, ...]
    networks: tuple[str, ...]


def forwarding_ports(testbed: Testbed, devices: DutDevices, tester_macs: tuple[str, ...]) -> tuple[ForwardingPort, ...]:
    """From the testbed; a port without an address of its own gets the standard's."""
    ports = []
    count = len(testbed.dut_ports)
    for index, port in enumerate(testbed.dut_ports):
        given = {4: port.ipv4, 6: port.ipv6}
        addresses = [_with_prefix(given[ip] or port_address(ip, index), ip) for ip in (4, 6)]
        ports.append(
            ForwardingPort(
                device=devices.names[index],
                mac=devices.macs[index],
                tester_mac=tester_macs[index],
                addresses=tuple(addresses),
                networks=tuple(network_behind(ip, index, count) for ip in (4, 6)),
            )
        )
    return tuple(ports)


def neighbour_of(address: str) -> str:
    """The tester's address beside a port's: the next one in the subnet, or the one before at its end."""
    interface: Interface = ip_interface(address)
    following = interface.ip + 1
    inside = following in interface.network and following != interface.network.broadcast_address
    return str(following if inside else interface.ip - 1)


def settings_for(ports: tuple[ForwardingPort, ...], *, ipv6: bool) -> tuple[tuple[str, str], ...]:
    """Files and values in the order in which they must be set."""
    devices = [port.device for port in ports]
    ipv4 = "/proc/sys/net/ipv4"
    settings = [(f"{ipv4}/conf/all/rp_filter", "0")]
    # The stricter of `all` and the device's own value counts.
    settings += [(f"{ipv4}/conf/{device}/rp_filter", "0") for device in devices]
    # A frame that leaves by the port it came in at is what was asked for: nobody is to be told of a shorter way.
    settings += [(f"{ipv4}/conf/{device}/send_redirects", "0") for device in ("all", *devices)]
    settings += [(f"{ipv4}/ip_forward", "1")]
    if ipv6:
        conf = "/proc/sys/net/ipv6/conf"
        for device in devices:
            # No link-local address, no duplicate address detection, no solicitations, and the groups that a router is
            # in are told once, at once: a second report would be sent within a trial, and be lost at the DUT's places.
            settings += [
                (f"{conf}/{device}/addr_gen_mode", "1"),
                (f"{conf}/{device}/accept_dad", "0"),
                (f"{conf}/{device}/router_solicitations", "0"),
                (f"{conf}/{device}/mldv1_unsolicited_report_interval", _A_DAY_MS),
                (f"{conf}/{device}/mldv2_unsolicited_report_interval", _A_DAY_MS),
                (f"{conf}/{device}/disable_ipv6", "0"),
            ]
        settings += [(f"{conf}/all/forwarding", "1")]
    return tuple(settings)


async def set_up_forwarding(
    host: Host, changes: Changes, ports: tuple[ForwardingPort, ...], *, ipv6: bool
) -> tuple[dict[str, str], tuple[tuple[str, ...], ...]]:
    """Makes every change; gives the settings and commands for the report."""
    settings = settings_for(ports, ipv6=ipv6)
    for path, value in settings:
        await changes.set_file(host, path, value)
    commands: list[tuple[str, ...]] = []
    for port in ports:
        for address, network in zip(port.addresses, port.networks, strict=True):
            if ":" not in address or ipv6:
                commands += await _join(host, changes, port, address, network)
    return {path.removeprefix("/proc/sys/"): value for path, value in settings}, tuple(commands)


async def _join(
    host: Host, changes: Changes, port: ForwardingPort, address: str, network: str
) -> list[tuple[str, ...]]:
    """One IP version of one port: its address, the tester as a neighbour, the network behind it.

    What is there already as wanted is left alone, now and when undoing; what is there otherwise is somebody's.
    """
    device, neighbour = port.device, neighbour_of(address)
    ip = ("ip", "-6") if ":" in address else ("ip", "-4")
    commands: list[tuple[str, ...]] = []

    async def add(what: str, target: tuple[str, ...], key: tuple[str, ...], *how: str) -> None:
        command = (*ip, what, "add", *target, *how)
        await changes.make(host, DeleteIpObject(arguments=(ip[1], what, "del", *key)), lambda: _run(host, command))
        commands.append(command)

    present = await _shown(host, *ip, "-j", "address", "show", "dev", device)
    if not any(_has_address(entry, address) for entry in present):
        own = (address, "dev", device)
        await add("address", own, own, *(("nodad",) if ip[1] == "-6" else ()))

    known = await _shown(host, *ip, "-j", "neigh", "show", "to", neighbour, "dev", device, "nud", "permanent")
    if not known:
        tester = (neighbour, "lladdr", port.tester_mac, "dev", device)
        await add("neigh", tester, (neighbour, "dev", device), "nud", "permanent")
    elif known[0].get("lladdr") != port.tester_mac:
        raise _taken(host, f"{device} has another neighbour {neighbour}: {known[0].get('lladdr')}")

    routes = await _shown(host, *ip, "-j", "route", "show", "exact", network)
    behind = (network, "via", neighbour, "dev", device)
    if not routes:
        await add("route", behind, behind)
    elif (routes[0].get("gateway"), routes[0].get("dev")) != (neighbour, device):
        raise _taken(host, f"there is another route to {network}, by {routes[0].get('dev')}")
    return commands


async def _run(host: Host, command: tuple[str, ...]) -> None:
    await host.run(command)


async def _shown(host: Host, *command: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((await host.run(command)).stdout or "[]")
    return found


def _has_address(entry: dict[str, Any], address: str) -> bool:
    return any(f"{one.get('local')}/{one.get('prefixlen')}" == address for one in entry.get("addr_info", []))


def _taken(host: Host, what: str) -> NotReadyError:
    return NotReadyError(
        what,
        place=host.name,
        next_step="see `ip route` and `ip neigh`: 198.18.0.0/15 and 2001:2::/48 must be free on that host",
    )


def _with_prefix(address: str, ip: int) -> str:
    return str(ip_interface(address if "/" in address else f"{address}/{_PREFIX_LENGTH[ip]}"))
