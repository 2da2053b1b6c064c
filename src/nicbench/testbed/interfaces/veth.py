"""Makes isolated namespaces that send nothing by themselves, and veth pairs between them."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from dataclasses import dataclass

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.tuning.changes import Changes
from nicbench.tuning.setting import cpu_mask, same_value
from nicbench.tuning.undo.processes import DeleteNamespace

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


@dataclass(frozen=True, slots=True)
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
    await host.run(("sh", "-c", _BEGIN, "begin", *(f"{value}={path}" for path, value in _QUIET)))


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
