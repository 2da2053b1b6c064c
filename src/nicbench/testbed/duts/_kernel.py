"""What DUTs in the kernel share: their ports, tables of nftables, proof of passage, and forwarding by routes."""

from __future__ import annotations

import json
from abc import abstractmethod
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from typing import Any, Final

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.core.frozen import frozen
from nicbench.core.pattern import Way
from nicbench.hosts.base import Host
from nicbench.testbed.addressing import (
    MOST_PORTS,
    make_addressing,
    network_behind,
    port_address,
    tester_macs,
    ways_back,
    ways_between,
)
from nicbench.testbed.duts.base import Addressing, FrameDut
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.network import DeleteIpObject, DeleteNftTable

# What every kernel DUT needs of a testbed: its host, and the interfaces of its ports with their indexes.


@frozen
class DutDevices:
    """Interface names and indexes of the DUT's ports, in order."""

    names: tuple[str, ...]
    indexes: tuple[int, ...]
    macs: tuple[str, ...]


def require_host(testbed: Testbed, kind: str) -> Host:
    """The DUT's host; UsageError where the testbed has none to run commands on."""
    if testbed.dut is None:
        raise UsageError(
            f"a DUT of kind {kind} needs a host to be set up on, and this testbed has none for its DUT",
            place="dut",
            next_step="name its host under `hosts` and its ports under `ports`, or use `dut: {kind: external}`",
        )
    return testbed.dut


def require_ports(testbed: Testbed, kind: str, *, fewest: int = 2, most: int = 2) -> None:
    """Raises UsageError unless ``fewest`` to ``most`` ports are there, each with a link to one of the tester's."""
    ports = len(testbed.dut_ports)
    if ports != len(testbed.tester_ports) or not fewest <= ports <= most:
        joins = "two" if most == 2 else f"{fewest} to {most}"
        raise UsageError(
            f"a DUT of kind {kind} joins {joins} ports; this testbed has {ports} on the DUT and "
            f"{len(testbed.tester_ports)} on the tester",
            place="links",
            next_step="give a link for each, e.g. `links: [t0 <-> d0, t1 <-> d1]`",
        )


async def dut_devices(testbed: Testbed, kind: str, *, fewest: int = 2, most: int = 2) -> DutDevices:
    """Looks up the interfaces on the DUT's host; NotReadyError where one is missing or down."""
    host = require_host(testbed, kind)
    require_ports(testbed, kind, fewest=fewest, most=most)
    names = []
    indexes = []
    macs = []
    for port in testbed.dut_ports:
        if port.device is None:
            raise UsageError(
                f"the DUT's port {port.name} has no device", place=f"ports, {port.name}", next_step="name its `device`"
            )
        done = await host.run(("ip", "-j", "link", "show", "dev", port.device), check=False)
        if done.status != 0:
            raise NotReadyError(
                f"there is no interface {port.device}",
                place=f"{host.name}, port {port.name}",
                next_step="see `ip link` on that host, and name an interface that exists",
            )
        link = json.loads(done.stdout)[0]
        if "UP" not in link["flags"]:
            raise NotReadyError(
                f"the interface {port.device} is down",
                place=f"{host.name}, port {port.name}",
                next_step=f"ip link set dev {port.device} up",
            )
        names.append(port.device)
        indexes.append(int(link["ifindex"]))
        macs.append(str(link["address"]))
    return DutDevices(tuple(names), tuple(indexes), tuple(macs))


# Tables of nftables that DUTs put in place.


async def set_up_table(
    host: Host, changes: Changes, family: str, table: str, text: str, *, what: str, option: str = "", needs: str
) -> None:
    """Puts the table of ``text`` in place, undo first.

    ``what`` is what the table is for and ``needs`` what the kernel must have, in messages; ``option`` is the option of
    the DUT that asks for it. NotReadyError where the host has no nftables, or a table of that name.
    """
    shown = await host.run(("nft", "list", "table", family, table), check=False)
    if shown.status == 0:
        raise NotReadyError(
            f"there is a table {family} {table} already",
            place=host.name,
            next_step=f"a run that died left it: nicbench restore RUN, or nft delete table {family} {table}",
        )

    async def apply() -> None:
        await host.run(("nft", "-f", "-"), input_text=text)

    try:
        await changes.make(host, DeleteNftTable(family=family, table=table), apply)
    except HostError as error:
        raise NotReadyError(
            f"{what} cannot be set up: {error.message}",
            place=", ".join(("dut", *([option] if option else []), f"on {host.name}")),
            next_step=f"apt-get install nftables, on a kernel with {needs}",
        ) from error


# Proof that frames pass the layer that a DUT is measured for: its own counters against those of the DUT's ports.


_SLACK_FRAMES: Final = 16
"""Frames of the DUT's own, as neighbour discovery, by all its ports."""
_SLACK_RATIO: Final = 0.01
_ENOUGH_FRAMES: Final = 32
"""The least frames into the layer from which on it is a fault that none comes out."""
_STRAY_FRAMES: Final = 4
"""The frames of the DUT's own that may come out, such as reports of multicast listeners."""


@frozen
class Passed:
    """Cumulative frames: into the layer and out of it, by its own count, and sent by the DUT's ports.

    ``plain`` are frames that crossed a wire within the layer and do not belong to it.
    """

    into: int
    through: int
    sent: int
    plain: int = 0


_WHEN_SILENT: Final = "see whether both ends have the same keys, and whether the wire between them is up"


def check_passage(before: Passed, after: Passed, layer: str, place: str, when_silent: str = _WHEN_SILENT) -> None:
    """HostError where frames went past the layer, or crossed it plain, or where it gives back nothing that it takes.

    ``when_silent`` is the next step of the last.
    """
    plain = after.plain - before.plain
    if plain > _SLACK_FRAMES:
        raise HostError(
            f"{plain} frames went plain between the ends of {layer}",
            place=place,
            next_step="see `ip xfrm policy`, `ip rule` and `ip route` there: frames must be encrypted on the way",
        )
    into, through, sent = after.into - before.into, after.through - before.through, after.sent - before.sent
    if sent > through + _SLACK_FRAMES + _SLACK_RATIO * through:
        raise HostError(
            f"frames go past {layer}: the ports sent {sent}, and only {through} of them came through it",
            place=place,
            next_step="see `ip rule` and `ip route` there: something else forwards between these ports",
        )
    if into > _ENOUGH_FRAMES and through <= _STRAY_FRAMES:
        raise HostError(
            f"{layer} took {into} frames and gave {through or 'none'} back",
            place=place,
            next_step=when_silent,
        )


async def link_packets(host: Host, *devices: str) -> dict[str, tuple[int, int]]:
    """Cumulative packets received and sent of interfaces, by name; HostError where one is gone."""
    shown = json.loads((await host.run(("ip", "-j", "-s", "link", "show"))).stdout or "[]")
    counts = {
        str(link["ifname"]): (int(link["stats64"]["rx"]["packets"]), int(link["stats64"]["tx"]["packets"]))
        for link in shown
        if link.get("ifname") in devices
    }
    if gone := [device for device in devices if device not in counts]:
        raise HostError(f"the interface {gone[0]} of the DUT is gone", place=host.name, next_step="start the run again")
    return counts


class PassageDut(FrameDut):
    """A DUT with a layer that every frame must pass."""

    layer: str
    """What frames pass, in messages."""
    when_silent: str = _WHEN_SILENT
    """What to do where the layer takes frames and gives none back."""
    _before: Passed | None = None

    @abstractmethod
    async def _read_passed(self) -> Passed:
        """Reads what went into the layer, what came out, and what the ports sent."""

    async def mark_passage(self) -> None:
        self._before = await self._read_passed()

    async def check_passage(self) -> None:
        """A process that has ended is left to ``failure``."""
        if self._before is not None and not await self.failure():
            after = await self._read_passed()
            check_passage(self._before, after, self.layer, f"dut of kind {self.kind}", self.when_silent)


# What DUTs share that forward by the kernel's route table (`kernel-forward`, `xdp-forward`): addresses, static
# neighbours, routes and settings of their ports, and the ways of frames through them.
#
# The benchmark networks of RFC 2544 appendix C.2.2 and RFC 5180 section 8 are routed to the tester's ports, whose MAC
# addresses are static neighbours: no ARP or neighbour discovery runs during a trial, unless a test asks for it. Added
# addresses, neighbours and routes are removed afterwards, and settings get their old values back.


_PREFIX_LENGTH = {4: 24, 6: 64}
_A_DAY_MS = "86400000"

Interface = IPv4Interface | IPv6Interface


@frozen
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


def settings_for(
    ports: tuple[ForwardingPort, ...], *, ipv6: bool, neighbour_age_s: float | None = None
) -> tuple[tuple[str, str], ...]:
    """Files below /proc/sys and their values, in the order in which they must be set.

    ``neighbour_age_s``: after this time a neighbour is asked for again; None where neighbours are static.
    """
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
            # No link-local address, unless it is to ask from there (RFC 4861 7.2.2), no duplicate address detection, no
            # solicitations. A router reports its multicast groups once, now: a second report would fall into a trial
            # and count among the losses at the DUT.
            settings += [
                (f"{conf}/{device}/addr_gen_mode", "1" if neighbour_age_s is None else "0"),
                (f"{conf}/{device}/accept_dad", "0"),
                (f"{conf}/{device}/router_solicitations", "0"),
                (f"{conf}/{device}/mldv1_unsolicited_report_interval", _A_DAY_MS),
                (f"{conf}/{device}/mldv2_unsolicited_report_interval", _A_DAY_MS),
                (f"{conf}/{device}/disable_ipv6", "0"),
            ]
        settings += [(f"{conf}/all/forwarding", "1")]
    if neighbour_age_s is not None:
        age_ms = str(round(neighbour_age_s * 1000))
        for version in (4, 6) if ipv6 else (4,):
            for device in devices:
                # An entry that is too old is asked for when it is used, after this many whole seconds (RFC 4861 7.3.3).
                settings += [
                    (f"/proc/sys/net/ipv{version}/neigh/{device}/{name}", value)
                    for name, value in (("base_reachable_time_ms", age_ms), ("delay_first_probe_time", "0"))
                ]
    return tuple(settings)


async def set_up_forwarding(
    host: Host, changes: Changes, ports: tuple[ForwardingPort, ...], *, ipv6: bool, neighbour_age_s: float | None = None
) -> tuple[dict[str, str], tuple[tuple[str, ...], ...]]:
    """Makes every change and gives the settings and commands for the report."""
    settings = settings_for(ports, ipv6=ipv6, neighbour_age_s=neighbour_age_s)
    is_static = neighbour_age_s is None
    for path, value in settings:
        await changes.set_file(host, path, value)
    commands = []
    for port in ports:
        for address, network in zip(port.addresses, port.networks, strict=True):
            if ":" not in address or ipv6:
                commands += await _set_up_address(host, changes, port, address, network, is_static=is_static)
    return {path.removeprefix("/proc/sys/"): value for path, value in settings}, tuple(commands)


async def _set_up_address(
    host: Host, changes: Changes, port: ForwardingPort, address: str, network: str, *, is_static: bool
) -> list[tuple[str, ...]]:
    """Sets up one IP version of one port: its address, the tester as a static neighbour, the network behind it.

    What exists already as wanted is left alone, also by the undo; a different one is somebody else's and refused.
    """
    device, neighbour = port.device, neighbour_of(address)
    ip = ("ip", "-6") if ":" in address else ("ip", "-4")
    commands = []

    async def add(what: str, target: tuple[str, ...], key: tuple[str, ...], *how: str) -> None:
        # Where frames came before the neighbour did, the kernel looked for the tester itself, and keeps what it found.
        command = (*ip, what, "replace" if what == "neigh" else "add", *target, *how)
        await changes.make(host, DeleteIpObject(arguments=(ip[1], what, "del", *key)), lambda: _run(host, command))
        commands.append(command)

    present = await _run_json(host, *ip, "-j", "address", "show", "dev", device)
    if not any(_has_address(entry, address) for entry in present):
        own = (address, "dev", device)
        await add("address", own, own, *(("nodad",) if ip[1] == "-6" else ()))

    known = await _run_json(host, *ip, "-j", "neigh", "show", "to", neighbour, "dev", device, "nud", "permanent")
    if not is_static:
        if known:
            raise _conflict(host, f"{device} has a static neighbour {neighbour}, and is to ask for it")
    elif not known:
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


class ForwardingDut(FrameDut):
    """A DUT whose host forwards IP packets between its ports by the kernel's route table."""

    most_ports = MOST_PORTS
    returns_on_same_port = True
    neighbour_age_s: float | None = None
    """After this time it asks for the tester again; None: it knows the tester as a static neighbour."""

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._ports: tuple[ForwardingPort, ...] = ()
        self._has_ipv6: bool | None = None
        self._commands: tuple[tuple[str, ...], ...] = ()
        self._settings: dict[str, str] = {}
        self._host: Host | None = None
        self._changes: Changes | None = None

    async def _set_up_routes(self, testbed: Testbed, changes: Changes) -> DutDevices:
        """Gives the ports their addresses, neighbours and routes, switches forwarding on, and gives the interfaces."""
        host = require_host(testbed, self.kind)
        devices = await dut_devices(testbed, self.kind, fewest=self.fewest_ports, most=self.most_ports)
        self._has_ipv6 = await host.read_file("/proc/sys/net/ipv6/conf/all/forwarding") is not None
        self._ports = forwarding_ports(testbed, devices, tester_macs(testbed))
        self._settings, self._commands = await set_up_forwarding(
            host, changes, self._ports, ipv6=self._has_ipv6, neighbour_age_s=self.neighbour_age_s
        )
        self._host, self._changes = host, changes
        return devices

    async def mend(self) -> None:
        """Gives the ports their addresses, neighbours and routes again: a link that goes down loses them."""
        if self._host is not None and self._changes is not None:
            for port in self._ports:
                for address, network in zip(port.addresses, port.networks, strict=True):
                    if ":" not in address or self._has_ipv6:
                        is_static = self.neighbour_age_s is None
                        await _set_up_address(self._host, self._changes, port, address, network, is_static=is_static)

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        if not self._ports:
            raise UsageError(f"a DUT of kind {self.kind} is not set up", place="dut", next_step="call up first")
        if ip == 6 and not self._has_ipv6:
            raise UsageError("the DUT's kernel has no IPv6", place="dut", next_step="use `traffic: {ip: 4}`")
        return tuple(self._way(ip, way) for way in ways_between(len(self._ports)))

    def returning(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        return tuple(self._way(ip, way) for way in ways_back(len(self._ports)))

    def neighbours(self, testbed: Testbed) -> tuple[tuple[dict[str, Any], ...], ...]:
        if self.neighbour_age_s is None:
            return super().neighbours(testbed)
        return tuple(
            tuple({"first": neighbour_of(address), "count": 1} for address in port.addresses) for port in self._ports
        )

    def _way(self, ip: int, way: Way) -> Addressing:
        here = self._ports[way[0]]
        return make_addressing(ip, len(self._ports), way, source_mac=here.tester_mac, destination_mac=here.mac)

    def _disclose_routes(self) -> dict[str, Any]:
        """Settings, commands and ports for the report. Those of IPv6 stand apart: few runs use it."""

        def part(*, ipv6: bool) -> dict[str, Any]:
            return {
                "settings": {
                    path: value for path, value in self._settings.items() if path.startswith("net/ipv6/") is ipv6
                },
                "commands": [" ".join(command) for command in self._commands if ("-6" in command) is ipv6],
            }

        return {
            **part(ipv6=False),
            "ports": {
                port.device: {"mac": port.mac, "addresses": list(port.addresses), "tester_mac": port.tester_mac}
                for port in self._ports
            },
            "ipv6": part(ipv6=True) if self._has_ipv6 else self._has_ipv6,
        }
