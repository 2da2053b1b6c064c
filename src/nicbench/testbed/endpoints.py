"""Makes a testbed of real hosts for workloads from a bench file; interfaces are checked, nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Protocol

from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.round import EndpointFacts
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.testbed.interfaces.options import BondOptions
from nicbench.testbed.interfaces.rdma import rdma_port_of
from nicbench.testbed.labs.base import BondMember, Endpoint, EndpointTestbed


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
    shown = await network.run(("ip", "-j", "address", "show", "dev", device), check=False)
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
    )
    return Endpoint(
        host,
        facts,
        rdma=await rdma_port_of(network, device, facts.address),
        members=tuple(BondMember(device=member) for member in members),
    )


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
    known = [speed for speed in speeds if speed is not None]
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
