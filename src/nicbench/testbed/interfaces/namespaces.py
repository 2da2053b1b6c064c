"""Makes the network namespaces of hosts with ``create: true``, moves interfaces into them and assigns their addresses.

A move takes an interface down and removes its addresses (network_namespaces(7)). So both are recorded before, and an
interface that is in use is refused; the undo restores it. A port may have an address with a prefix length
(``ip: 198.18.0.1/24``).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from typing import Any, Final

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.core.frozen import frozen
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.interfaces.base import Making, Port, place_of
from nicbench.testbed.interfaces.host_interfaces import (
    Interfaces,
    check_free,
    interfaces_of,
    interfaces_on,
    require_no_owner,
)
from nicbench.tuning.changes import Changes
from nicbench.tuning.setting import cpu_mask, same_value
from nicbench.tuning.undo.network import DeleteIpObject, ReturnLink, SetLinkDown, show_link
from nicbench.tuning.undo.processes import DeleteNamespace

# Makes isolated namespaces that send nothing by themselves, and veth pairs between them.


# In this order: existing devices, then the defaults of new ones. Nothing may send by itself, and only a DUT forwards;
# new namespaces inherit IPv4 settings from the first one, where a container tool may have switched forwarding on.
_QUIET = (
    ("/proc/sys/net/ipv4/ip_forward", "0"),
    ("/proc/sys/net/ipv6/conf/all/forwarding", "0"),
    ("/proc/sys/net/ipv6/conf/all/accept_ra", "0"),
    ("/proc/sys/net/ipv6/conf/default/accept_ra", "0"),
    ("/proc/sys/net/ipv6/conf/default/autoconf", "0"),
    ("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1"),
    ("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"),
)
# The script skips missing files: a kernel without IPv6 has none of its settings.
_BEGIN = """
for setting; do
    path=${setting#*=}
    [ ! -e "$path" ] || echo "${setting%%=*}" >"$path" || exit 1
done
ip link set dev lo up
"""
# Messages of iproute2 and the kernel.
_NO_DRIVER = re.compile(r"unknown device type|not supported", re.IGNORECASE)
# These offloads merge frames, or leave checksums and tags to a card that does not exist (AF_XDP then sees no tag), but
# frames must be on the link what they would be on a wire.
OFFLOADS_OFF = ("tx", "tso", "gso", "txvlan", "tx-vlan-stag-hw-insert")
_LINK_TRIES = 500
_LINK_STEP_S = 0.01
_numbers = itertools.count(1000)


@frozen
class End:
    """One end of a veth pair. The first end of a pair is the tester's."""

    host: NetnsHost
    device: str
    mac: str


async def make_namespace(changes: Changes, host: NetnsHost, holding: tuple[str, ...] = ()) -> None:
    """Makes the namespace, undo first; NotReadyError where one of that name exists already.

    ``holding`` are interfaces that will be moved into it: it is not deleted before they are back outside.
    """
    if await host.exists():
        raise NotReadyError(
            f"the network namespace {host.namespace} exists already",
            place=host.inner.name,
            next_step=f"a run that died left it: nicbench restore {changes.run_id}",
        )

    async def apply() -> None:
        await host.inner.run(("ip", "netns", "add", host.namespace))

    try:
        await changes.make(host.inner, DeleteNamespace(namespace=host.namespace, holding=holding), apply)
    except HostError as error:
        raise NotReadyError(
            f"no network namespace can be made: {error.message}",
            place=host.inner.name,
            next_step="run as root on a kernel with network namespaces; in a container, with CAP_SYS_ADMIN",
        ) from error
    # Not through the undo stack: the settings go with the namespace. In one shell: on a remote host each start is slow.
    try:
        await host.run(("sh", "-c", _BEGIN, "begin", *(f"{value}={path}" for path, value in _QUIET)))
    except HostError as error:
        raise explain_no_entry(error, host.inner) from error


def explain_no_entry(error: HostError, host: Host) -> NicbenchError:
    """NotReadyError for an error that says that / is not a mount point, as in a chroot; any other error unchanged."""
    if "mount --make-rslave /" not in error.message:
        return error
    return NotReadyError(
        "no network namespace can be entered: / of this chroot is not a mount point",
        place=host.name,
        next_step="mount --bind FOLDER FOLDER, before chroot FOLDER",
    )


def explain_no_pair(error: HostError, host: Host) -> NicbenchError:
    """NotReadyError in place of an error that says that the kernel has no veth driver; any other error unchanged."""
    if not _NO_DRIVER.search(error.message):
        return error
    return NotReadyError(
        f"no veth pair can be made: {error.message}",
        place=host.name,
        next_step="the kernel needs the veth driver: modprobe veth",
    )


async def make_pair(ends: tuple[End, End], *, queues: int, mtu: int, txqueuelen: int) -> None:
    """Makes both ends directly in their namespaces, so that no other one ever sees them, and brings them up."""
    near, far = ends
    each = ("numrxqueues", str(queues), "numtxqueues", str(queues), "txqueuelen", str(txqueuelen), "mtu", str(mtu))
    own = ("link", "add", near.device, *index_arguments(), "address", near.mac, *each, "type", "veth")
    peer = ("peer", "name", far.device, *index_arguments(), "address", far.mac, *each, "netns", far.host.namespace)
    try:
        await near.host.inner.run(("ip", "-n", near.host.namespace, *own, *peer))
    except HostError as error:
        raise explain_no_pair(error, near.host.inner) from error
    for end in ends:
        link = ("ip", "link", "set", "dev", end.device)
        await end.host.run((*link, "addrgenmode", "none"))
        await end.host.run(("ethtool", "-K", end.device, *(word for name in OFFLOADS_OFF for word in (name, "off"))))
        await end.host.run((*link, "up"))
    await receive_redirected(near.host, near.device)
    # Segments of TCP that GRO merged would be longer than a packet socket takes. Old versions of ip cannot set it.
    await near.host.run(("ip", "link", "set", "dev", near.device, "gro_max_size", "1"), check=False)
    await far.host.run(("ethtool", "-K", far.device, "gro", "off"))


async def receive_redirected(host: Host, device: str) -> None:
    """Makes a veth accept frames that XDP redirects to its peer: it does where this end polls, which GRO makes it do.

    GRO does not merge test frames: UDP is merged only where a socket or forwarding asks for it.
    """
    await host.run(("ethtool", "-K", device, "gro", "on"))


def index_arguments() -> tuple[str, str]:
    """Arguments of ``ip link add`` that give an interface an index which no other has, nor its peer.

    Otherwise both ends become the first interface of a new namespace. The kernel then takes each for an interface that
    depends on no other, and reports its state a second later (net/core/link_watch.c, linkwatch_urgent_event).
    """
    return ("index", str(next(_numbers)))


async def wait_for_links(host: NetnsHost) -> None:
    """Waits until all veths are up: the kernel reports that with a delay, and routes do not work before."""
    for _ in range(_LINK_TRIES):
        shown = await host.run(("ip", "-j", "link", "show", "type", "veth"))
        states = {link["ifname"]: link["operstate"] for link in json.loads(shown.stdout)}
        if all(state == "UP" for state in states.values()):
            return
        await asyncio.sleep(_LINK_STEP_S)
    raise HostError(f"links did not come up: {states}", place=host.name)


def steering_paths(device: str, queues: int) -> tuple[str, ...]:
    """The files of receive packet steering of every queue (Documentation/networking/scaling.rst of the kernel)."""
    return tuple(f"/sys/class/net/{device}/queues/rx-{queue}/rps_cpus" for queue in range(queues))


async def steer(host: NetnsHost, path: str, cpus: tuple[int, ...]) -> str:
    """Sets the mask of one queue and gives it; it is verified, because a kernel without CONFIG_RPS ignores it."""
    mask = cpu_mask(cpus)
    await host.write_file(path, mask)
    after = await host.read_file(path)
    if after is None or not same_value(path, after, mask):
        raise HostError(f"{path} was set to {mask} and reads {after!r}", place=host.name)
    return mask


async def link_bits_per_s(host: Host, device: str) -> float:
    """The nominal speed of a link, as the veth driver reports it; HostError where it is unknown."""
    text = await host.read_file(f"/sys/class/net/{device}/speed")
    if text is None or int(text) <= 0:
        raise HostError(f"the speed of {device} is not known", place=host.name)
    return int(text) * 1e6


async def interface_index(host: Host, device: str) -> int:
    """The kernel's index of an interface, by which XDP programs name it."""
    shown = await host.run(("ip", "-j", "link", "show", "dev", device))
    return int(json.loads(shown.stdout)[0]["ifindex"])


async def require_no_way_out(host: NetnsHost) -> None:
    """Raises NotReadyError where a namespace has a default route, or interfaces but lo, veths and their bonds."""
    for family in ("-4", "-6"):
        shown = await host.run(("ip", "-j", family, "route", "show", "table", "all"), check=False)
        for route in json.loads(shown.stdout or "[]"):
            if route.get("dst") == "default" and route.get("type") != "unreachable":
                raise NotReadyError(
                    f"the namespace {host.namespace} has a default route: {route}",
                    place=host.name,
                    next_step="find out what adds routes to new namespaces on this machine, and stop it",
                )
    shown = await host.run(("ip", "-d", "-j", "link", "show"))
    for link in json.loads(shown.stdout):
        kind = link.get("linkinfo", {}).get("info_kind")
        if kind not in ("veth", "bond") and "UP" in link["flags"] and link["ifname"] != "lo":
            raise NotReadyError(
                f"the namespace {host.namespace} has an interface not made by nicbench: {link['ifname']} ({kind})",
                place=host.name,
                next_step="find out what puts interfaces into new namespaces on this machine, and stop it",
            )


async def make_namespaces(making: Making) -> None:
    """Makes all of them; NotReadyError where one of that name exists already, for it is somebody else's."""
    for host in making.created:
        if await host.exists():
            raise NotReadyError(
                f"the network namespace {host.namespace} exists already, and `create` asks nicbench to make it",
                place=host.name,
                next_step=f"remove `create`, or delete the namespace: ip netns delete {host.namespace}",
            )
        devices = dict.fromkeys(device for port in making.ports_in(host).values() for device in port.devices)
        await make_namespace(making.changes, host, holding=tuple(devices))
        making.tell("namespaces", host.name, host.namespace)


_CARRIER_TRIES = 80
_CARRIER_STEP_S = 0.25


async def move_interfaces(making: Making) -> None:
    """Checks all interfaces before it moves the first, and waits for carriers last: both ends of a link may move."""
    moves = [
        (namespace, device, place)
        for namespace in making.created
        for device, place in {  # two ports of a client may be one interface
            device: place_of(port, name) for name, port in making.ports_in(namespace).items() for device in port.devices
        }.items()
    ]
    undos = [await _prepare_return(namespace, device, place) for namespace, device, place in moves]
    for (namespace, device, place), undo in zip(moves, undos, strict=True):
        await _move(making, namespace, undo, place)
        making.tell("moved_interfaces", device, f"into the namespace {namespace.namespace}")
    for namespace, device, _ in moves:
        link = ("ip", "link", "set", "dev", device)
        await namespace.run((*link, "addrgenmode", "none"), check=False)  # a kernel without IPv6 has no such mode
        await namespace.run((*link, "up"))
    for namespace in making.created:
        await wait_for_carrier(namespace, [device for where, device, _ in moves if where is namespace])


async def bring_up_interfaces(ports: Mapping[str, Port], hosts: Mapping[str, Host], changes: Changes) -> None:
    """Brings up the interfaces that ports name and that are down, and waits for their carrier.

    An interface that a run makes, moves or must not use is left to the step that does so, or says so.
    """
    brought: list[tuple[Host, str]] = []
    for port in ports.values():
        host = hosts[port.host]
        if port.device is None or port.is_made or (isinstance(host, NetnsHost) and not await host.exists()):
            continue
        link = await show_link(host.network, port.device)
        if link is None or "UP" in link["flags"]:
            continue
        try:
            check_free(await interfaces_of(host.network), port.device, port.device, for_tester=False)
        except NotReadyError:
            continue
        await bring_up(host.network, port.device, changes)
        brought.append((host.network, port.device))
    for host, device in brought:
        await wait_for_carrier(host, [device])


async def bring_up(host: Host, device: str, changes: Changes) -> None:
    """Brings an interface up that is down; it is taken down again afterwards."""
    up = ("ip", "link", "set", "dev", device, "up")
    await changes.make(host, SetLinkDown(device=device), lambda: _run(host, up))


async def wait_for_carrier(host: Host, devices: Sequence[str]) -> None:
    """Waits up to 20 s until the interfaces have a carrier. One without is reported by the step that needs it."""
    for _ in range(_CARRIER_TRIES):
        links = json.loads((await host.run(("ip", "-j", "link", "show"))).stdout or "[]")
        up = {link["ifname"] for link in links if "LOWER_UP" in link.get("flags", ())}
        if up.issuperset(devices):
            return
        await asyncio.sleep(_CARRIER_STEP_S)


async def _prepare_return(namespace: NetnsHost, device: str, place: str) -> ReturnLink:
    """The undo that restores the present state of the interface; NotReadyError where it must not be moved."""
    outside = namespace.inner
    interfaces = await interfaces_of(outside)
    link = check_free(interfaces, device, place, for_tester=False)
    require_no_owner(link, device, place)
    await _require_unused(outside, interfaces, device, place)
    shown = json.loads((await outside.run(("ip", "-j", "address", "show", "dev", device))).stdout or "[{}]")
    addresses = [info for each in shown for info in each.get("addr_info", ())]
    return ReturnLink(
        device=device,
        namespace=namespace.namespace,
        up="UP" in link["flags"],
        addresses=tuple(words for info in addresses if (words := address_words(info)) is not None),
    )


async def _require_unused(host: Host, interfaces: Interfaces, device: str, place: str) -> None:
    above = interfaces_on(interfaces.links, device)
    if above:
        raise NotReadyError(
            f"the interface {device} is in use by {', '.join(above)}",
            place=place,
            next_step=f"use another, or remove what uses it: ip link delete {above[0]}",
        )
    for family in ("-4", "-6"):
        shown = await host.run(("ip", "-j", family, "route", "show", "table", "all", "dev", device), check=False)
        given = [route for route in json.loads(shown.stdout or "[]") if route.get("protocol") not in ("kernel", "ra")]
        if shown.status == 0 and given:
            raise NotReadyError(
                f"the interface {device} is in use: a route to {given[0].get('dst')} leads through it",
                place=place,
                next_step=f"use another, or remove it: ip route delete {given[0].get('dst')} dev {device}",
            )
    for address in interfaces.addresses.get(device, ()):
        own = address.partition("/")[0]
        talks = await host.run(("ss", "--no-header", "--tcp", "--numeric", "state", "established", "src", own))
        if talks.stdout.strip():
            peer = talks.stdout.split()[3]
            raise NotReadyError(
                f"the interface {device} is in use: its address {own} has a connection with {peer}",
                place=place,
                next_step="use another; an interface by which a machine is reached is never moved",
            )


async def _move(making: Making, namespace: NetnsHost, undo: ReturnLink, place: str) -> None:
    async def apply() -> None:
        await namespace.inner.run(("ip", "link", "set", "dev", undo.device, "netns", namespace.namespace))

    try:
        await making.changes.make(namespace.inner, undo, apply)
    except HostError as error:
        raise NotReadyError(
            f"the interface {undo.device} cannot be moved into a namespace: {error.message}",
            place=place,
            next_step="use another interface; some kinds (wireless, bridges) cannot be moved",
        ) from error


def address_words(info: Mapping[str, Any]) -> str | None:
    """The arguments of ``ip address add`` for an address; None for one that the kernel or a router assigns itself."""
    if (
        info.get("scope") == "link"
        or info.get("mngtmpaddr")
        or info.get("temporary")
        or "ra" in str(info.get("protocol"))
    ):
        return None
    words = [f"{info['local']}/{info['prefixlen']}"]
    if "address" in info:  # of a point-to-point link: the other end
        words = [str(info["local"]), "peer", f"{info['address']}/{info['prefixlen']}"]
    if info.get("broadcast"):
        words += ["broadcast", str(info["broadcast"])]
    if info.get("label"):
        words += ["label", str(info["label"])]
    if info.get("dynamic"):
        words += ["valid_lft", str(info["valid_life_time"]), "preferred_lft", str(info["preferred_life_time"])]
    if info.get("family") == "inet6":
        words.append("nodad")
    return " ".join(words)


async def assign_addresses(making: Making) -> None:
    """Assigns the addresses of all ports and waits for their links.

    Where one interface has the addresses of two ports, the others share its network: each then answers for its own.

    NotReadyError where an interface leads out of the machine, or another interface is in the same network.
    """
    waiting: dict[str, tuple[Host, list[str]]] = {}
    for name, port in making.ports.items():
        if port.given_ip is None or port.device is None:
            continue
        network = making.network_of(port)
        if await _assign(making, network, port.device, port.given_ip, place_of(port, name)):
            making.tell("given_addresses", name, str(port.given_ip))
        waiting.setdefault(repr(network.spec()), (network, []))[1].append(port.device)
    for host, devices in waiting.values():
        await wait_for_carrier(host, devices)
    if any(len(set(devices)) < len(devices) for _, devices in waiting.values()):
        for host, devices in waiting.values():
            if len(set(devices)) > 1:
                await _answer_for_own(making, host)


_ARP: Final = {"arp_ignore": "1", "arp_announce": "2"}
"""Only the interface that has an address answers for it, and asks by it (Documentation/networking/ip-sysctl.rst)."""


async def _answer_for_own(making: Making, host: Host) -> None:
    for name, value in _ARP.items():
        await making.changes.set_file(host, f"/proc/sys/net/ipv4/conf/all/{name}", value)


async def _assign(making: Making, host: Host, device: str, wanted: IPv4Interface | IPv6Interface, place: str) -> bool:
    """Assigns the address where the interface does not have it; says whether that was so."""
    interfaces = await interfaces_of(host)
    link = check_free(interfaces, device, place, for_tester=False)
    if "UP" not in link["flags"]:
        await bring_up(host, device, making.changes)
    shown = await host.run(("ip", "-j", "address", "show"))
    if _has_address(json.loads(shown.stdout or "[]"), device, wanted, place):
        return False
    if isinstance(wanted, IPv6Interface):
        disabled = f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6"
        if (await host.read_file(disabled) or "0").strip() != "0":
            await making.changes.set_file(host, disabled, "0")
    words = (str(wanted), "dev", device)
    # This is a link of the test, where no one else has the address: duplicate address detection would only cost time.
    more = ("nodad",) if isinstance(wanted, IPv6Interface) else ("broadcast", "+")
    undo = DeleteIpObject(arguments=("address", "delete", *words))
    await making.changes.make(host, undo, lambda: _run(host, ("ip", "address", "add", *words, *more)))
    return True


def _has_address(
    every: Sequence[Mapping[str, Any]], device: str, wanted: IPv4Interface | IPv6Interface, place: str
) -> bool:
    """Whether the interface has the address; NotReadyError where another interface is in the same network."""
    for entry in every:
        for info in entry.get("addr_info", ()):
            if info.get("scope") == "link" or info.get("local") is None:
                continue
            there = ip_interface(f"{info['local']}/{info['prefixlen']}")
            if entry["ifname"] == device and there == wanted:
                return True
            if there.version == wanted.version and there.network.overlaps(wanted.network):
                raise NotReadyError(
                    f"{wanted} is in the network of {there}, an address of the interface {entry['ifname']}",
                    place=place,
                    next_step="give the port an address of a network of its own, such as 198.18.0.0/24 (RFC 2544)",
                )
    return False


async def _run(host: Host, command: tuple[str, ...]) -> None:
    await host.run(command)
