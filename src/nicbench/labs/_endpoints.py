"""A testbed of real hosts for workloads, as a bench file names them; checked, not touched."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Protocol

from nicbench.errors import HostError, NotReadyError
from nicbench.hosts import from_spec
from nicbench.hosts.base import Host
from nicbench.hosts.netns import outermost
from nicbench.labs._wired import HostChoice
from nicbench.labs.base import Endpoint, EndpointTestbed
from nicbench.model.endpoint import EndpointFacts


class EndpointChoice(Protocol):
    """A port in the bench file: an interface of the kernel, and where it is to be reached."""

    @property
    def host(self) -> str: ...
    @property
    def device(self) -> str | None: ...
    @property
    def ip(self) -> IPv4Address | IPv6Address | None: ...


async def endpoint_testbed_of(
    hosts: Mapping[str, HostChoice],
    ports: Mapping[str, EndpointChoice],
    links: Sequence[tuple[str, str]],
    measured: str,
) -> EndpointTestbed:
    """The testbed; NotReadyError where an interface cannot be used. ``measured`` is the host whose ports are."""
    used = {port.host for port in ports.values()}
    known = {
        name: from_spec({"kind": choice.kind, **choice.options.model_dump(mode="json")}, name)
        for name, choice in hosts.items()
        if name in used
    }
    leads_to = {}
    for link in links:
        server, client = link if ports[link[0]].host == measured else tuple(reversed(link))
        leads_to[client] = server
    ends = {name: await _endpoint(known[port.host], name, port, leads_to.get(name)) for name, port in ports.items()}
    speeds = [end.facts.link_bits_per_s for end in ends.values()]
    statements = [
        f"The speed of {name}'s link is not known." for name, end in ends.items() if end.facts.link_bits_per_s is None
    ]
    machines = {end.facts.machine for end in ends.values()}
    if len(machines) == 1 and len(used) > 1:
        statements.append("Server and clients are on one machine and share its CPUs.")
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
    network = host.network
    shown = await network.run(("ip", "-j", "address", "show", "dev", device), check=False)
    if shown.status != 0:
        raise NotReadyError(
            f"the interface {device} is not there: {shown.stderr.strip()}",
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
        address=_address(link, port.ip, device, place),
        device=device,
        port=leads_to,
        link_bits_per_s=await _bits_per_s(network, device),
        card=await _card(network, device),
        numa_node=await _number(network, f"/sys/class/net/{device}/device/numa_node"),
    )
    return Endpoint(host, facts, rdma_device=await _rdma_device(network, device))


def _address(link: Mapping[str, Any], wanted: IPv4Address | IPv6Address | None, device: str, place: str) -> str:
    """The first of the interface that leads beyond its link, or the one that the bench file names."""
    has = [str(entry["local"]) for entry in link.get("addr_info", ()) if entry.get("scope") == "global"]
    if wanted is not None and str(wanted) not in has:
        raise NotReadyError(
            f"the interface {device} has no address {wanted}; it has {', '.join(has) or 'none'}",
            place=place,
            next_step=f"ip address add {wanted}/24 dev {device}, or correct `ip`",
        )
    if not has:
        raise NotReadyError(
            f"the interface {device} has no address that workloads could reach it by",
            place=place,
            next_step=f"give it one: ip address add ADDRESS/24 dev {device}",
        )
    return str(wanted) if wanted is not None else has[0]


async def _bits_per_s(host: Host, device: str) -> float | None:
    """As the driver reports it; a virtual one's figure is nobody's speed."""
    if await _text(host, f"/sys/class/net/{device}/device/uevent") is None:
        return None
    speed = await _number(host, f"/sys/class/net/{device}/speed")
    return speed * 1e6 if speed is not None and speed > 0 else None


async def _card(host: Host, device: str) -> str | None:
    """The PCI device without its function: ports of one card share it."""
    text = await _text(host, f"/sys/class/net/{device}/device/uevent")
    for line in (text or "").splitlines():
        if line.startswith("PCI_SLOT_NAME="):
            return line.removeprefix("PCI_SLOT_NAME=").rpartition(".")[0]
    return None


async def _rdma_device(host: Host, device: str) -> str | None:
    """The RDMA device over this interface; None where there is none."""
    shown = await host.run(("sh", "-c", "command -v rdma >/dev/null && rdma -j link show || echo '[]'"), check=False)
    try:
        links = json.loads(shown.stdout or "[]")
    except ValueError:
        return None
    return next((str(each["ifname"]) for each in links if each.get("netdev") == device), None)


async def _text(host: Host, path: str) -> str | None:
    try:
        return await host.read_file(path)
    except HostError:
        return None


async def _number(host: Host, path: str) -> int | None:
    text = (await _text(host, path) or "").strip()
    return int(text) if text.lstrip("-").isdigit() and int(text) >= 0 else None
