"""The interfaces of a host, and which of them a test may use: none that leads out of the machine, serves somebody,
or reaches one that does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self

from nicbench.core.errors import HostError, NotReadyError, nearest_name
from nicbench.core.frozen import frozen
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.system.adapters.links import GIDS_SCRIPT, gid_index_of, gid_of, is_soft, parse_rdma_links
from nicbench.testbed.interfaces.base import Making, Port, place_of
from nicbench.tuning.bpf import program_of_link
from nicbench.tuning.undo.adapters import DeleteRdmaLink

Links = Mapping[str, Mapping[str, Any]]

# `ip` gives as the link of these kinds the other end of their wire; of all others the interface that they are made on.
_PAIRS = frozenset({"veth", "netkit", "vxcan"})


def carriers(routes: Sequence[Mapping[str, Any]], links: Links) -> frozenset[str]:
    """The devices of default routes, and those below them: members of a bridge or bond, the parent of a VLAN."""
    found = set()
    waiting = [device for route in routes if route.get("dst") == "default" for device in _route_devices(route)]
    while waiting:
        device = waiting.pop()
        if device in found:
            continue
        found.add(device)
        waiting += [name for name, link in links.items() if link.get("master") == device]
        link = links.get(device, {})
        if not _is_pair(link):
            waiting += _link_names(link, links)
    return frozenset(found)


def reachable_from(links: Links, device: str) -> frozenset[str]:
    """Every interface that frames of ``device`` can reach: parents, children, peers, bridges and their members."""
    neighbours: dict[str, set[str]] = {name: set() for name in links}
    for name, link in links.items():
        master = link.get("master")
        for other in [*_link_names(link, links), *([master] if master else [])]:
            neighbours[name].add(other)
            neighbours.setdefault(other, set()).add(name)
    found: set[str] = set()
    waiting = [device]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += neighbours.get(name, ())
    return frozenset(found - {device})


def interfaces_on(links: Links, device: str) -> list[str]:
    """Interfaces that are made on this one (a VLAN, a macvlan); moving it to another namespace would destroy them."""
    return [name for name, link in links.items() if not _is_pair(link) and device in _link_names(link, links)]


def is_on_another_namespace(link: Mapping[str, Any]) -> bool:
    """Whether the interface below this one is in another namespace. The peer of a veth is not below it."""
    return "link_netnsid" in link and not _is_pair(link)


def _is_pair(link: Mapping[str, Any]) -> bool:
    return link.get("linkinfo", {}).get("info_kind") in _PAIRS


def _link_names(link: Mapping[str, Any], links: Links) -> list[str]:
    """The interface that ``ip`` names as the link of this one, by name or number; none in another namespace."""
    if "link_netnsid" in link:
        return []
    if link.get("link"):
        return [str(link["link"])]
    number = link.get("link_index")
    return [name for name, other in links.items() if number is not None and other.get("ifindex") == number]


def _route_devices(route: Mapping[str, Any]) -> list[str]:
    """The devices of a route: one, or several of a multipath route."""
    hops = [hop["dev"] for hop in route.get("nexthops", ()) if "dev" in hop]
    return hops + ([route["dev"]] if "dev" in route else [])


@frozen
class Interfaces:
    """The interfaces of a host; ``elsewhere`` maps names of interfaces in other namespaces to these namespaces."""

    links: Mapping[str, Mapping[str, Any]]
    addresses: Mapping[str, Sequence[str]]
    default_route_devices: frozenset[str]
    elsewhere: Mapping[str, str]

    @classmethod
    def parse(
        cls, links: str, addresses: str, routes: Iterable[str], elsewhere: Mapping[str, str] | None = None
    ) -> Self:
        """Parses ``ip -d -j link show``, ``ip -j address show`` and ``ip -j [-4|-6] route show table all``."""
        by_name = {link["ifname"]: link for link in json.loads(links or "[]")}
        return cls(
            links=by_name,
            addresses={entry["ifname"]: _addresses_of(entry) for entry in json.loads(addresses or "[]") if entry},
            default_route_devices=carriers([route for text in routes for route in json.loads(text or "[]")], by_name),
            elsewhere=elsewhere or {},
        )

    def name_of(self, text: str) -> str | None:
        """The interface that the kernel finds by ``text`` (a name, an alternative name, `eth0:1`); None without one."""
        name = text.partition(":")[0]
        if name in self.links:
            return name
        return next((own for own, link in self.links.items() if name in link.get("altnames", ())), None)


def check_interface(interfaces: Interfaces, device: str, place: str, *, for_tester: bool) -> Mapping[str, Any]:
    """The interface's object of ``ip -j link``; NotReadyError where it must not be used or has no carrier.

    A DUT's interface may have addresses and an XDP program; the tester's must have neither.
    """
    link = check_free(interfaces, device, place, for_tester=for_tester)
    if "UP" not in link["flags"]:
        raise NotReadyError(f"the interface {device} is down", place=place, next_step=f"ip link set dev {device} up")
    if "LOWER_UP" not in link["flags"]:
        raise NotReadyError(
            f"the interface {device} is up but has no carrier",
            place=place,
            next_step="check the cable, and that the interface at the other end is up",
        )
    return link


def check_free(interfaces: Interfaces, device: str, place: str, *, for_tester: bool) -> Mapping[str, Any]:
    """As ``check_interface``, but the interface may be down."""
    link = interfaces.links.get(device)
    if link is None:
        raise _missing(interfaces, device, place)
    # This check comes first: no test may ever disconnect this machine from the network.
    _require_no_way_out(interfaces, device, place)
    if "LOOPBACK" in link["flags"]:
        raise NotReadyError(f"{device} is the loopback interface", place=place, next_step="use a port with a link")
    if for_tester:
        _require_unused(interfaces, link, device, place)
    return link


def _require_no_way_out(interfaces: Interfaces, device: str, place: str) -> None:
    """Raises NotReadyError where the interface, or one that its frames can reach, carries a default route."""
    never = "use another interface; nicbench never sends test traffic through the default route"
    if device in interfaces.default_route_devices:
        raise NotReadyError(
            f"the interface {device} carries the default route of this machine", place=place, next_step=never
        )
    joined = reachable_from(interfaces.links, device)
    ways_out = sorted(joined & interfaces.default_route_devices)
    if ways_out:
        raise NotReadyError(
            f"the interface {device} is joined with {ways_out[0]}, which carries the default route of this machine",
            place=place,
            next_step=never,
        )
    for name in sorted({device, *joined}):
        if is_on_another_namespace(interfaces.links.get(name, {})):
            raise NotReadyError(
                f"the interface {device} is made on one in another network namespace, and nicbench cannot see whether "
                "that one carries a default route",
                place=place,
                next_step="use an interface of its own: a port of a card, or one end of a veth pair",
            )


def require_no_owner(link: Mapping[str, Any], device: str, place: str) -> None:
    """Raises NotReadyError where the interface is a member of another, or has an XDP program."""
    master = link.get("master")
    if master is not None:
        kind = link.get("linkinfo", {}).get("info_slave_kind", "group")
        raise NotReadyError(
            f"the interface {device} is in use: it is a member of the {kind} {master}",
            place=place,
            next_step=f"use another, or remove it from there: ip link set dev {device} nomaster",
        )
    program = program_of_link(link)
    if program is not None:
        raise NotReadyError(
            f"the interface {device} is in use: it has an XDP program (id {program})",
            place=place,
            next_step=f"see whose it is: bpftool prog show id {program}; detach it: ip link set dev {device} xdp off",
        )


def _require_unused(interfaces: Interfaces, link: Mapping[str, Any], device: str, place: str) -> None:
    require_no_owner(link, device, place)
    addresses = interfaces.addresses.get(device, ())
    if addresses:
        raise NotReadyError(
            f"the interface {device} is in use: it has the address {addresses[0]}",
            place=place,
            next_step=f"use another, or remove its addresses: ip address flush dev {device}",
        )


def _missing(interfaces: Interfaces, device: str, place: str) -> NotReadyError:
    namespace = interfaces.elsewhere.get(device)
    if namespace is not None:
        return NotReadyError(
            f"there is no interface {device} here; one is in the network namespace {namespace}",
            place=place,
            next_step=f"give its host as `{{kind: netns, namespace: {namespace}}}` in the bench file",
        )
    return NotReadyError(f"there is no interface {device}", place=place, next_step=_instead(interfaces, device))


def _instead(interfaces: Interfaces, device: str) -> str:
    """The next step after a name that no interface has. What a test would be refused anyway is not proposed."""
    usable = sorted(
        name
        for name, link in interfaces.links.items()
        if "LOOPBACK" not in link.get("flags", ())
        and not ({name, *reachable_from(interfaces.links, name)} & interfaces.default_route_devices)
    )
    if not usable:
        return "connect a port, or make an interface: no other than those of the default route and lo is there"
    close = nearest_name(device, usable)
    if close is None:
        return f"choose one of those that a test may use: {', '.join(usable)}"
    others = [name for name in usable if name != close]
    return f"did you mean {close}?" + (f" There are also: {', '.join(others)}" if others else "")


def _addresses_of(entry: Mapping[str, Any]) -> list[str]:
    """The addresses of an interface, without link-local ones, which the kernel assigns by itself."""
    given = (info for info in entry.get("addr_info", ()) if info.get("scope") != "link")
    return [f"{info['local']}/{info['prefixlen']}" for info in given]


async def interfaces_of(host: Host) -> Interfaces:
    """The interfaces of a host, and the names of those in the machine's other namespaces."""
    links = await host.run(("ip", "-d", "-j", "link", "show"), check=False)
    if links.status != 0:
        raise NotReadyError(
            f"its interfaces cannot be listed: {links.stderr.strip()}",
            place=host.name,
            next_step="check the host's namespace (`ip netns list`), and run as root",
        )
    addresses = await host.run(("ip", "-j", "address", "show"))
    routes = [
        await host.run(("ip", "-j", family, "route", "show", "table", "all"), check=False) for family in ("-4", "-6")
    ]
    elsewhere = await _interfaces_elsewhere(host.inner if isinstance(host, NetnsHost) else host)
    return Interfaces.parse(links.stdout, addresses.stdout, [route.stdout for route in routes], elsewhere)


async def _interfaces_elsewhere(outer: Host) -> dict[str, str]:
    """The namespaces of interfaces in named namespaces, for hints in errors; what cannot be listed is left out."""
    named = await outer.run(("ip", "netns", "list"), check=False)
    found: dict[str, str] = {}
    for line in named.stdout.splitlines():
        namespace = line.split()[0] if line.strip() else ""
        shown = await outer.run(("ip", "-n", namespace, "-br", "link", "show"), check=False)
        for link in shown.stdout.splitlines():
            found.setdefault(link.split()[0].partition("@")[0], namespace)
    return found


# RDMA devices of interfaces: finds a card's own, and makes soft RoCE (RoCE v2 in software) for ports with ``rdma:
# rxe``.
#
# The kernel's driver ``rdma_rxe`` sends RDMA as UDP packets from any interface. Up to Linux 6.1 at least it works only
# in the first network namespace of a machine, so that a receiver and its senders must be different machines.


_LIST_COMMAND: Final = ("sh", "-c", "command -v rdma >/dev/null && rdma -j link show || echo '[]'")


@frozen
class RdmaPort:
    """A port of an RDMA device; ``gid_index`` is of a RoCE v2 GID, None without one (InfiniBand, RoCE v1)."""

    device: str
    port: int
    state: str
    gid_index: int | None = None
    is_soft: bool = False


async def rdma_port_of(host: Host, interface: str, address: str) -> RdmaPort | None:
    """The RDMA port of an interface in the network namespace of ``host``; None where it has none."""
    shown = await host.run(_LIST_COMMAND, check=False)
    try:
        links = parse_rdma_links(shown.stdout)
    except ValueError:
        return None
    link = next((link for link in links if link.get("netdev") == interface), None)
    if link is None:
        return None
    device, port = str(link["ifname"]), int(link.get("port", 1))
    script = GIDS_SCRIPT.format(device=device, port=port, gid=gid_of(address))
    gids = await host.run(("sh", "-c", script), check=False)
    return RdmaPort(
        device, port, str(link.get("state", "")), gid_index_of(gids.stdout, interface), is_soft(gids.stdout)
    )


_TRIES: Final = 40
_STEP_S: Final = 0.25
_MADE: Final = "rxe"
_NO_DRIVER: Final = ("Operation not supported", "not supported", "Invalid argument", "No such file")


async def make_rdma_devices(making: Making) -> None:
    """Makes the devices of all ports; NotReadyError where a kernel has no soft RoCE or a device does not come up."""
    for name, port in making.ports.items():
        if port.rdma is not None:
            made = await _make(making, port, place_of(port, name))
            making.tell("rdma_devices", name, made)


async def _make(making: Making, port: Port, place: str) -> str:
    """Makes and verifies one device; gives what a report discloses of it."""
    host, device, address = making.network_of(port), str(port.device), str(port.own_ip)
    if isinstance(host, NetnsHost):
        raise NotReadyError(
            "soft RoCE works only in the first network namespace of a machine",
            place=place,
            next_step="give the port a host that is a machine: `{kind: vm}`, `{kind: ssh}`",
        )
    there = await rdma_port_of(host, device, address)
    if there is not None and not there.is_soft:
        raise NotReadyError(
            f"the interface {device} has RDMA of its own: {there.device}",
            place=place,
            next_step="remove `rdma`: the card's own device is used then",
        )
    if there is None:
        link = f"{_MADE}_{device}"
        await making.changes.make(host, DeleteRdmaLink(device=link), lambda: _add(host, link, device, place))
    found = await _wait_until_active(host, device, address, place)
    return f"{found.device}, soft RoCE over {device}, GID {found.gid_index}"


async def _add(host: Host, link: str, device: str, place: str) -> None:
    # The kernel loads rdma_rxe on demand, but nothing loads ib_uverbs, which programs need.
    await host.run(("modprobe", "-a", "rdma_rxe", "ib_uverbs"), check=False)
    done = await host.run(("rdma", "link", "add", link, "type", "rxe", "netdev", device), check=False)
    if done.status == 0:
        return
    message = (done.stderr or done.stdout).strip()
    if any(words in message for words in _NO_DRIVER):
        raise NotReadyError(
            f"the kernel of this host has no soft RoCE (rdma_rxe): {message}",
            place=place,
            next_step="modprobe rdma_rxe; Debian's kernel has it, in a host `{kind: vm}` too; `rdma` is of iproute2",
        )
    raise HostError(f"soft RoCE cannot be made over {device}: {message}", place=place)


async def _wait_until_active(host: Host, device: str, address: str, place: str) -> RdmaPort:
    """Waits until the device's port is active and has a GID of the address; both come by events."""
    found = None
    for _ in range(_TRIES):
        found = await rdma_port_of(host, device, address)
        if found is not None and found.state == "ACTIVE" and found.gid_index is not None:
            return found
        await asyncio.sleep(_STEP_S)
    if found is None:
        lacking = "does not exist"
    elif found.state != "ACTIVE":
        lacking = f"is {found.state or 'in no known state'}, not ACTIVE"
    else:
        lacking = f"has no RoCE v2 GID of the address {address}"
    raise NotReadyError(
        f"the soft RoCE device over {device} {lacking}, {_TRIES * _STEP_S:g} s after it was made",
        place=place,
        next_step="check that the interface has a link and that address; see `rdma link` and `ibv_devinfo -v`",
    )
