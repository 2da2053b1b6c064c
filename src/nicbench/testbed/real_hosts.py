"""Testbeds of real hosts and ports, from a bench file: for workloads, and for frames; nothing of them is changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Protocol

from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.core.frozen import frozen
from nicbench.core.lists import without_none
from nicbench.core.round import EndpointFacts, Vlan
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.testbed.cores import CoreMap, make_core_map, order_by_core, physical_cores, usable_cpus
from nicbench.testbed.interfaces.base import BondOptions
from nicbench.testbed.interfaces.cards import check_address, check_vdev
from nicbench.testbed.interfaces.host_interfaces import check_interface, interfaces_of, rdma_port_of
from nicbench.testbed.labs.base import BondMember, DutPort, Endpoint, EndpointTestbed, Testbed, TesterPort

# Makes a testbed of real hosts for workloads from a bench file; interfaces are checked, nothing is changed.


class EndpointChoice(Protocol):
    """A port in the bench file: a kernel interface, and the address at which workloads reach it."""

    @property
    def host(self) -> str: ...
    @property
    def device(self) -> str | None: ...
    @property
    def bond(self) -> BondOptions | None: ...
    @property
    def own_ip(self) -> IPv4Address | IPv6Address | None: ...


async def make_endpoint_testbed(
    hosts: Mapping[str, Host],
    ports: Mapping[str, EndpointChoice],
    links: Sequence[tuple[str, str]],
    measured: str,
) -> EndpointTestbed:
    """The testbed with ``measured`` as the measured host; NotReadyError where an interface cannot be used."""
    used = {port.host for port in ports.values()}
    leads_to = {}
    for link in links:
        server, client = link if ports[link[0]].host == measured else tuple(reversed(link))
        leads_to[client] = server
    ends = {name: await _endpoint(hosts[port.host], name, port, leads_to.get(name)) for name, port in ports.items()}
    speeds = [end.facts.link_bits_per_s for end in ends.values()]
    silent = [name for name, end in ends.items() if end.facts.link_bits_per_s is None]
    statements = [f"The link speed of {', '.join(silent)} is not known."] if silent else []
    machines = {end.facts.machine for end in ends.values()}
    if len(machines) == 1 and len(used) > 1:
        statements.append("Server and clients are on one machine and share its CPUs.")
    networks = {name: hosts[port.host].network.spec() for name, port in ports.items()}
    looped = [client for client, server in leads_to.items() if networks[client] == networks[server]]
    if looped:
        statements.append(
            f"Between {', '.join(looped)} and the server there is no cable: both are addresses of one network stack, "
            "and what is sent between them goes through its loopback."
        )
    soft = [name for name, end in ends.items() if end.rdma is not None and end.rdma.is_soft]
    if soft:
        statements.append(
            f"RDMA of {', '.join(soft)} is in software (soft RoCE): processors do an adapter's work. It slows down for "
            "no marks of congestion (ECN, CNP); priority flow control is the interface's, if it has any."
        )
    return EndpointTestbed(
        servers=tuple(end for name, end in ends.items() if ports[name].host == measured),
        clients=tuple(end for name, end in ends.items() if ports[name].host != measured),
        link_is_nominal=any(speed is None for speed in speeds),
        statements=tuple(statements),
        facts={"links": [f"{client} <-> {server}" for client, server in leads_to.items()]},
    )


async def _endpoint(host: Host, name: str, port: EndpointChoice, leads_to: str | None) -> Endpoint:
    place = f"{host.name}, port {name}"
    device = str(port.device)
    members = () if port.bond is None else port.bond.of
    network = host.network
    shown = await network.run(("ip", "-d", "-j", "address", "show", "dev", device), check=False)
    if shown.status != 0:
        raise NotReadyError(
            f"there is no interface {device}: {shown.stderr.strip()}",
            place=place,
            next_step="`ip link` on that host lists its interfaces",
        )
    link = (json.loads(shown.stdout) or [{}])[0]
    if "LOWER_UP" not in link.get("flags", ()):
        raise NotReadyError(
            f"the interface {device} is down or has no carrier",
            place=place,
            next_step=f"ip link set dev {device} up, and check the cable",
        )
    facts = EndpointFacts(
        name=name,
        host=host.name,
        machine=outermost(host).name,
        address=_address(link, port.own_ip, device, place),
        device=device,
        port=leads_to,
        link_bits_per_s=await _bits_per_s_of(network, members or (device,)),
        card=await _card(network, device),
        numa_node=await _numa_node(network, device),
        bond_links=len(members) or None,
        vlan=vlan_of(link),
    )
    return Endpoint(
        host,
        facts,
        rdma=await rdma_port_of(network, device, facts.address),
        members=tuple(BondMember(device=member) for member in members),
    )


def vlan_of(link: Mapping[str, Any]) -> Vlan | None:
    """Returns the VLAN that an interface is, as `ip -d -j address show` has it. None: it is not a VLAN, or stands on an
    interface of another namespace.
    """
    info = link.get("linkinfo", {})
    if info.get("info_kind") != "vlan" or "link" not in link:
        return None
    data = info.get("info_data", {})
    return Vlan(number=int(data["id"]), device=str(link["link"])) if data.get("protocol") == "802.1Q" else None


def _address(link: Mapping[str, Any], wanted: IPv4Address | IPv6Address | None, device: str, place: str) -> str:
    """The address that the bench file names, or the interface's first global one."""
    has = [str(entry["local"]) for entry in link.get("addr_info", ()) if entry.get("scope") == "global"]
    if wanted is not None and str(wanted) not in has:
        raise NotReadyError(
            f"the interface {device} has no address {wanted}; it has {', '.join(has) or 'none'}",
            place=place,
            next_step=f"write `ip: {wanted}/24` (with the prefix length) to assign it, or correct `ip`",
        )
    if not has:
        raise NotReadyError(
            f"the interface {device} has no address that workloads could reach it by",
            place=place,
            next_step="write `ip: ADDRESS/24`, with the prefix length, to assign one",
        )
    return str(wanted) if wanted is not None else has[0]


async def _bits_per_s_of(host: Host, devices: Sequence[str]) -> float | None:
    """The speed of an interface, or the sum over all ports of a bond; None where one is unknown."""
    speeds = [await _bits_per_s(host, device) for device in devices]
    known = without_none(speeds)
    return sum(known) if len(known) == len(speeds) else None


async def _bits_per_s(host: Host, device: str) -> float | None:
    """The speed that the driver reports in bit/s; None for a virtual interface, whose figure means nothing."""
    if await _read_text(host, f"/sys/class/net/{device}/device/uevent") is None:
        return None
    speed = await _read_number(host, f"/sys/class/net/{device}/speed")
    return speed * 1e6 if speed is not None and speed > 0 else None


async def _card(host: Host, device: str) -> str | None:
    """The PCI address without its function, which the ports of one card share; None without a PCI device."""
    text = await _read_text(host, f"/sys/class/net/{device}/device/uevent")
    for line in (text or "").splitlines():
        if line.startswith("PCI_SLOT_NAME="):
            return line.removeprefix("PCI_SLOT_NAME=").rpartition(".")[0]
    return None


async def _read_text(host: Host, path: str) -> str | None:
    try:
        return await host.read_file(path)
    except HostError:
        return None


async def _numa_node(host: Host, device: str) -> int | None:
    """The NUMA node of the interface's device; of a virtio device that of the PCI device above it."""
    own = await _read_number(host, f"/sys/class/net/{device}/device/numa_node")
    return await _read_number(host, f"/sys/class/net/{device}/device/../numa_node") if own is None else own


async def _read_number(host: Host, path: str) -> int | None:
    text = (await _read_text(host, path) or "").strip()
    return int(text) if text.lstrip("-").isdigit() and int(text) >= 0 else None


# Makes a testbed of real ports from `hosts`, `ports` and `links` of a bench file; nothing is changed.


# The name, in the bench file, of the host that the engine runs on.
TESTER = "tester"
# The speed of a link where none is known (a virtual device of DPDK); the report says so.
ASSUMED_BITS_PER_S = 10e9


class PortChoice(Protocol):
    """A port in the bench file: a kernel interface, a PCI address, or a virtual device of DPDK."""

    @property
    def host(self) -> str: ...
    @property
    def device(self) -> str | None: ...
    @property
    def address(self) -> str | None: ...
    @property
    def vdev(self) -> str | None: ...
    @property
    def mac(self) -> str | None: ...
    @property
    def driver(self) -> str | None: ...
    @property
    def devargs(self) -> str: ...
    @property
    def queue(self) -> int: ...
    @property
    def lossless(self) -> bool: ...


class TesterChoice(Protocol):
    """The tester's options that matter here: the driver for interfaces that name none, and its second machine."""

    @property
    def driver(self) -> str: ...
    @property
    def peer(self) -> str | None: ...


@frozen
class _PortState:
    """What is known of a port. With ``nominal`` its speed, if any, is the driver's figure and not that of a wire."""

    mac: str | None = None
    bits_per_s: float | None = None
    nominal: bool = False
    veth: bool = False


async def make_wired_testbed(
    hosts: Mapping[str, Host],
    ports: Mapping[str, PortChoice],
    links: Sequence[tuple[str, str]],
    tester: TesterChoice,
) -> Testbed:
    """The testbed, with the ports of the host ``tester``, and of its peer, as the tester's.

    NotReadyError where one cannot be used.
    """
    own = {TESTER, tester.peer}
    joined = [(one, other) if ports[one].host in own else (other, one) for one, other in links]
    loose = [name for name, port in ports.items() if port.host in own and name not in dict(joined)]
    tester_names = [near for near, _ in joined] + loose
    dut_names = [far for _, far in joined]
    peer = None if tester.peer is None else hosts[tester.peer]
    tester_host = _one_host(hosts, ports, [name for name in tester_names if ports[name].host == TESTER], "tester")
    if tester_host is None:
        raise UsageError("the tester has no port", place="ports", next_step="name its ports under `ports`")
    dut_host = _one_host(hosts, ports, dut_names, "DUT")
    near = [await _check_port(hosts[ports[name].host], name, ports[name], for_tester=True) for name in tester_names]
    far = [await _check_port(dut_host, name, ports[name], for_tester=False) for name in dut_names if dut_host]
    speeds = [seen.bits_per_s for seen in (*near, *far) if seen.bits_per_s]
    cores = await make_core_map(tester_host.machine)
    if not _on_one_machine(tester_host, dut_host):
        cores = replace(cores, physical_cores=())
    peer_cpu = None if peer is None else await _cpu_of_peer(peer, tester_host, dut_host)
    return Testbed(
        tester=tester_host,
        dut=dut_host,
        tester_ports=tuple(
            replace(_tester_port(name, ports[name], seen, tester.driver), on_peer=ports[name].host == tester.peer)
            for name, seen in zip(tester_names, near, strict=True)
        ),
        dut_ports=tuple(
            DutPort(name=name, device=ports[name].device, address=ports[name].address, mac=seen.mac)
            for name, seen in zip(dut_names, far, strict=True)
        ),
        cores=cores,
        link_bits_per_s=min(speeds, default=ASSUMED_BITS_PER_S),
        link_is_nominal=not speeds or any(seen.nominal for seen in (*near, *far)),
        statements=_statements((*near, *far), known_speed=bool(speeds)),
        facts={"links": [f"{near_name} <-> {far_name}" for near_name, far_name in joined]},
        peer=peer,
        peer_cpu=peer_cpu,
    )


async def _cpu_of_peer(peer: Host, tester: Host, dut: Host | None) -> int:
    """The CPU of the worker on the second machine: the first; where that is the tester's machine, another if any."""
    cpus = order_by_core(await usable_cpus(peer.machine), await physical_cores(peer.machine))
    if not _on_one_machine(tester, peer):
        return cpus[0]
    # The tester's worker has the first, the DUT the second.
    taken = 2 if _on_one_machine(tester, dut) else 1
    return cpus[min(taken, len(cpus) - 1)]


def _on_one_machine(one: Host, other: Host | None) -> bool:
    return other is not None and one.machine.spec() == other.machine.spec()


def make_testbed_of_own_ports(ports: tuple[TesterPort, ...], host: Host, tester: str) -> Testbed:
    """The testbed of a tester with its own ports; only the tester itself knows the speed of its links, once it runs.

    ``host`` is the machine that nicbench runs on, ``tester`` the kind of the tester.
    """
    return Testbed(
        tester=host,
        dut=None,
        tester_ports=ports,
        dut_ports=(),
        cores=CoreMap(worker=None, dut=(), housekeeping=(), shared=False),
        link_bits_per_s=ASSUMED_BITS_PER_S,
        link_is_nominal=True,
        facts={"ports": f"of the tester {tester}: {', '.join(port.name for port in ports)}"},
    )


def _one_host(
    hosts: Mapping[str, Host], ports: Mapping[str, PortChoice], names: Sequence[str], role: str
) -> Host | None:
    """The one host of all these ports, None without ports; UsageError where there are several."""
    used = sorted({ports[name].host for name in names if name in ports})
    if len(used) > 1:
        raise UsageError(
            f"the ports of the {role} are on several hosts: {', '.join(used)}",
            place="ports",
            next_step=f"put the {role}'s ports on one host",
        )
    if not used:
        return None
    if used[0] not in hosts:
        raise UsageError(f"there is no host {used[0]}", place="ports", next_step="name it under `hosts`")
    return hosts[used[0]]


async def _check_port(host: Host, name: str, port: PortChoice, *, for_tester: bool) -> _PortState:
    """Checks a port's kernel interface and reads its MAC address and speed.

    Those of a PCI or virtual device only the engine knows; the kernel interfaces behind it are checked all the same.
    """
    place = f"{host.name}, port {name}"
    if port.vdev is not None:
        await check_vdev(host, port.vdev, place)
    if port.address is not None:
        await check_address(host, port.address, place)
    if port.device is None:
        return _PortState(mac=port.mac)
    interfaces = await interfaces_of(host)
    link = check_interface(interfaces, port.device, place, for_tester=for_tester)
    kind = link.get("linkinfo", {}).get("info_kind")  # None for hardware
    speed = await _reported_bits_per_s(host, port.device)
    return _PortState(mac=link.get("address"), bits_per_s=speed, nominal=kind is not None, veth=kind == "veth")


async def _reported_bits_per_s(host: Host, device: str) -> float | None:
    """The speed that the driver reports in bit/s; None where it reports none (a tunnel, a link without carrier)."""
    try:
        text = await host.read_file(f"/sys/class/net/{device}/speed")
    except HostError:
        return None  # the driver has no such notion
    return int(text) * 1e6 if text and int(text) > 0 else None


def _tester_port(name: str, port: PortChoice, seen: _PortState, default_driver: str) -> TesterPort:
    engine: dict[str, Any] = {"name": name}
    if port.lossless:
        engine["lossless"] = True
    if port.device is not None:
        if (port.driver or default_driver) == "net_af_packet":
            engine |= {"kind": "af_packet", "device": port.device}
        elif (port.driver or default_driver) == "xdp":
            engine |= {"kind": "xdp", "device": port.device}
        elif (port.driver or default_driver) == "net_pcap":
            engine |= {"kind": "pcap", "device": port.device}
        else:
            engine |= {"kind": "af_xdp", "device": port.device, "queue": port.queue, "xdp_program": None}
    elif port.address is not None:
        engine |= {"kind": "pci", "address": port.address, "devargs": port.devargs}
    elif port.vdev is not None:
        engine |= {"kind": "vdev", "vdev": port.vdev}
    else:
        raise UsageError(
            f"port {name} names no device", place=f"ports, {name}", next_step="give it `device`, `address` or `vdev`"
        )
    return TesterPort(name=name, engine=engine, device=port.device, mac=seen.mac)


def _statements(seen: Sequence[_PortState], *, known_speed: bool) -> tuple[str, ...]:
    sentences = []
    if any(port.veth for port in seen):
        sentences.append(
            "Some of these links are veth pairs: they measure this machine, its CPU and kernel, not a network card."
        )
    if not known_speed:
        sentences.append(f"The speed of the links is not known; {ASSUMED_BITS_PER_S / 1e9:g} Gb/s is assumed.")
    return tuple(sentences)
