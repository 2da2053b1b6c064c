"""Linux IP forwarding between ports (`kernel-forward`), IPv4 and IPv6, if asked for behind a packet filter.

The benchmark networks of RFC 2544 appendix C.2.2 and RFC 5180 section 8 are routed to the tester's ports, whose MAC
addresses are static neighbours: no ARP or neighbour discovery runs during a trial. Forwarding is switched on only by
this kind of DUT and the router. Added addresses, neighbours and routes are removed afterwards, and settings get their
old values back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_interface
from typing import Any

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.core.pattern import Way
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.addressing import (
    MOST_PORTS,
    make_addressing,
    network_behind,
    port_address,
    tester_macs,
    ways_back,
    ways_between,
)
from nicbench.testbed.duts._ports import DutDevices, dut_devices, require_host
from nicbench.testbed.duts.base import Addressing, FrameDut
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.delete_ip_object import DeleteIpObject
from nicbench.tuning.undo.delete_nft_table import DeleteNftTable

MAXIMUM_RULES = 100_000
TABLE = "nicbench_filter"
# No frame has these sources: IPv4's reserved block (RFC 1112 section 4), IPv6's for documentation (RFC 3849).
_FIRST_SOURCE = {"ip": IPv4Address("240.0.0.1"), "ip6": IPv6Address("2001:db8::1")}


def filter_ruleset(family: str, rules: int) -> str:
    """The text for nft of one table of ``family`` (``ip`` or ``ip6``) with ``rules`` rules."""
    first = _FIRST_SOURCE[family]
    lines = [f"    {family} saddr {first + number} drop" for number in range(rules)]
    return "\n".join(
        [
            f"table {family} {TABLE} {{",
            "  chain forward {",
            "    type filter hook forward priority filter; policy accept;",
            *lines,
            "  }",
            "}",
            "",
        ]
    )


async def set_up_filter(host: Host, changes: Changes, rules: int, *, ipv6: bool) -> None:
    """Puts the rules in place, undo first; NotReadyError where the host has no nftables or a table of that name."""
    for family in ("ip", "ip6") if ipv6 else ("ip",):
        await _require_no_table(host, family)
        text = filter_ruleset(family, rules)

        async def apply(text: str = text) -> None:
            await host.run(("nft", "-f", "-"), input_text=text)

        try:
            await changes.make(host, DeleteNftTable(family=family, table=TABLE), apply)
        except HostError as error:
            raise NotReadyError(
                f"no packet filter can be set up: {error.message}",
                place=f"dut, filter_rules, on {host.name}",
                next_step="apt-get install nftables, on a kernel with nf_tables; or leave filter_rules out",
            ) from error


async def _require_no_table(host: Host, family: str) -> None:
    shown = await host.run(("nft", "list", "table", family, TABLE), check=False)
    if shown.status == 0:
        raise NotReadyError(
            f"there is a table {family} {TABLE} already",
            place=host.name,
            next_step=f"a run that died left it: nicbench restore RUN, or nft delete table {family} {TABLE}",
        )


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
    """The router's ports from the testbed; a port without an address of its own gets that of the standard."""
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
    """The tester's address in a port's subnet: the one after the port's, or the one before at the subnet's end."""
    interface: Interface = ip_interface(address)
    following = interface.ip + 1
    inside = following in interface.network and following != interface.network.broadcast_address
    return str(following if inside else interface.ip - 1)


def settings_for(ports: tuple[ForwardingPort, ...], *, ipv6: bool) -> tuple[tuple[str, str], ...]:
    """Files below /proc/sys and their values, in the order in which they must be set."""
    devices = [port.device for port in ports]
    ipv4 = "/proc/sys/net/ipv4"
    settings = [(f"{ipv4}/conf/all/rp_filter", "0")]
    # The kernel uses the stricter of `all` and the device's own value.
    settings += [(f"{ipv4}/conf/{device}/rp_filter", "0") for device in devices]
    # Frames may leave by the port that they came in on, and redirects would be frames of the DUT's own.
    settings += [(f"{ipv4}/conf/{device}/send_redirects", "0") for device in ("all", *devices)]
    settings += [(f"{ipv4}/ip_forward", "1")]
    if ipv6:
        conf = "/proc/sys/net/ipv6/conf"
        for device in devices:
            # No link-local address, no duplicate address detection, no solicitations. A router reports its multicast
            # groups once, now: a second report would fall into a trial and count among the losses at the DUT.
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
    """Makes every change and gives the settings and commands for the report."""
    settings = settings_for(ports, ipv6=ipv6)
    for path, value in settings:
        await changes.set_file(host, path, value)
    commands: list[tuple[str, ...]] = []
    for port in ports:
        for address, network in zip(port.addresses, port.networks, strict=True):
            if ":" not in address or ipv6:
                commands += await _set_up_address(host, changes, port, address, network)
    return {path.removeprefix("/proc/sys/"): value for path, value in settings}, tuple(commands)


async def _set_up_address(
    host: Host, changes: Changes, port: ForwardingPort, address: str, network: str
) -> list[tuple[str, ...]]:
    """Sets up one IP version of one port: its address, the tester as a neighbour, the network behind it.

    What exists already as wanted is left alone, also by the undo; a different one is somebody else's and refused.
    """
    device, neighbour = port.device, neighbour_of(address)
    ip = ("ip", "-6") if ":" in address else ("ip", "-4")
    commands: list[tuple[str, ...]] = []

    async def add(what: str, target: tuple[str, ...], key: tuple[str, ...], *how: str) -> None:
        command = (*ip, what, "add", *target, *how)
        await changes.make(host, DeleteIpObject(arguments=(ip[1], what, "del", *key)), lambda: _run(host, command))
        commands.append(command)

    present = await _run_json(host, *ip, "-j", "address", "show", "dev", device)
    if not any(_has_address(entry, address) for entry in present):
        own = (address, "dev", device)
        await add("address", own, own, *(("nodad",) if ip[1] == "-6" else ()))

    known = await _run_json(host, *ip, "-j", "neigh", "show", "to", neighbour, "dev", device, "nud", "permanent")
    if not known:
        tester = (neighbour, "lladdr", port.tester_mac, "dev", device)
        await add("neigh", tester, (neighbour, "dev", device), "nud", "permanent")
    elif known[0].get("lladdr") != port.tester_mac:
        raise _conflict(host, f"{device} has another neighbour {neighbour}: {known[0].get('lladdr')}")

    routes = await _run_json(host, *ip, "-j", "route", "show", "exact", network)
    behind = (network, "via", neighbour, "dev", device)
    if not routes:
        await add("route", behind, behind)
    elif (routes[0].get("gateway"), routes[0].get("dev")) != (neighbour, device):
        raise _conflict(host, f"there is another route to {network}, by {routes[0].get('dev')}")
    return commands


async def _run(host: Host, command: tuple[str, ...]) -> None:
    await host.run(command)


async def _run_json(host: Host, *command: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((await host.run(command)).stdout or "[]")
    return found


def _has_address(entry: dict[str, Any], address: str) -> bool:
    return any(f"{one.get('local')}/{one.get('prefixlen')}" == address for one in entry.get("addr_info", []))


def _conflict(host: Host, what: str) -> NotReadyError:
    return NotReadyError(
        what,
        place=host.name,
        next_step="see `ip route` and `ip neigh`: 198.18.0.0/15 and 2001:2::/48 must be free on that host",
    )


def _with_prefix(address: str, ip: int) -> str:
    return str(ip_interface(address if "/" in address else f"{address}/{_PREFIX_LENGTH[ip]}"))


# The backlog is a setting of the whole machine, and its file does not exist in a namespace.
_BACKLOG_PATH = "/proc/sys/net/core/netdev_max_backlog"


class KernelForwardOptions(Frozen):
    """``dut: {kind: kernel-forward}``.

    ``backlog_frames`` is net.core.netdev_max_backlog, the queue in front of a CPU that RPS sends frames to; None leaves
    it unchanged. ``filter_rules`` is the number of nftables rules before forwarding, which never match.
    """

    backlog_frames: int | None = Field(default=None, ge=1, le=10_000_000)
    filter_rules: int = Field(default=0, ge=0, le=MAXIMUM_RULES)


class KernelForward(FrameDut):
    """The DUT's host forwards between its ports."""

    kind = "kernel-forward"
    Options = KernelForwardOptions
    most_ports = MOST_PORTS
    returns_on_same_port = True
    options: KernelForwardOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._ports: tuple[ForwardingPort, ...] = ()
        self._has_ipv6: bool | None = None
        self._commands: tuple[tuple[str, ...], ...] = ()
        self._settings: dict[str, str] = {}
        self._backlog: str | None = None
        self._rps: dict[str, str | None] = {}

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        devices = await dut_devices(testbed, self.kind, fewest=self.fewest_ports, most=self.most_ports)
        self._has_ipv6 = await host.read_file("/proc/sys/net/ipv6/conf/all/forwarding") is not None
        self._ports = forwarding_ports(testbed, devices, tester_macs(testbed))
        self._settings, self._commands = await set_up_forwarding(host, changes, self._ports, ipv6=self._has_ipv6)
        if self.options.filter_rules:
            await set_up_filter(host, changes, self.options.filter_rules, ipv6=self._has_ipv6)
        outer = _outermost(host)
        if self.options.backlog_frames is not None:
            await changes.set_file(outer, _BACKLOG_PATH, str(self.options.backlog_frames))
        self._backlog = await outer.read_file(_BACKLOG_PATH)
        for device in devices.names:
            self._rps[device] = await host.read_file(f"/sys/class/net/{device}/queues/rx-0/rps_cpus")

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        if not self._ports:
            raise UsageError("kernel forwarding is not set up", place="dut", next_step="call up first")
        if ip == 6 and not self._has_ipv6:
            raise UsageError("the DUT's kernel has no IPv6", place="dut", next_step="use `traffic: {ip: 4}`")
        return tuple(self._way(ip, way) for way in ways_between(len(self._ports)))

    def returning(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return tuple(self._way(ip, way) for way in ways_back(len(self._ports)))

    def _way(self, ip: int, way: Way) -> Addressing:
        here = self._ports[way[0]]
        return make_addressing(ip, len(self._ports), way, source_mac=here.tester_mac, destination_mac=here.mac)

    async def drops(self) -> dict[str, int]:
        """No counters of its own: those of the kernel are read on every host (``nicbench.measure.ledger``)."""
        return {}

    def disclosure(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "settings": dict(self._settings),
            "commands": [" ".join(command) for command in self._commands],
            "ports": {
                port.device: {"mac": port.mac, "addresses": list(port.addresses), "tester_mac": port.tester_mac}
                for port in self._ports
            },
            "ipv6": self._has_ipv6,
            "filter_rules": self.options.filter_rules,
            "backlog_frames": None if self._backlog is None else int(self._backlog),
            "rps_cpus": {device: None if mask is None else mask.strip() for device, mask in self._rps.items()},
        }


def _outermost(host: Host) -> Host:
    """The host outside all namespaces, for settings of the whole machine."""
    while isinstance(host, NetnsHost):
        host = host.inner
    return host
