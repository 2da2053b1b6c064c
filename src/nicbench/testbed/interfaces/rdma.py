"""RDMA devices of interfaces: finds a card's own, and makes soft RoCE (RoCE v2 in software) for ports with ``rdma:
rxe``.

The kernel's driver ``rdma_rxe`` sends RDMA as UDP packets from any interface. Up to Linux 6.1 at least it works only
in the first network namespace of a machine, so that a receiver and its senders must be different machines.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.system.adapters.links import GIDS_SCRIPT, gid_index_of, gid_of, is_soft, parse_rdma_links
from nicbench.testbed.interfaces.base import Making, place_of
from nicbench.testbed.interfaces.options import Port
from nicbench.tuning.undo.adapters import DeleteRdmaLink

_LIST_COMMAND: Final = ("sh", "-c", "command -v rdma >/dev/null && rdma -j link show || echo '[]'")


@dataclass(frozen=True, slots=True)
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
