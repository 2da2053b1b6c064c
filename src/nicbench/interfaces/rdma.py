"""``rdma: rxe`` of a port: soft RoCE (RoCE v2 in software) over its interface, made, verified, and removed again.

The kernel's driver ``rdma_rxe`` sends RDMA as UDP packets from any interface. Up to Linux 6.1 at least it knows the
first network namespace of a machine alone, so that a receiver and its senders are machines of their own.
"""

from __future__ import annotations

import asyncio
from typing import Final

from nicbench.bench_file.models import Port
from nicbench.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.netns import NetnsHost
from nicbench.interfaces.base import Making, place_of
from nicbench.labs._rdma import RdmaPort, rdma_port_of
from nicbench.tuning.undo import DeleteRdmaLink

_TRIES: Final = 40
_STEP_S: Final = 0.25
_MADE: Final = "rxe"
_NO_DRIVER: Final = ("Operation not supported", "not supported", "Invalid argument", "No such file")


async def make_rdma_devices(making: Making) -> None:
    """Those of all ports; NotReadyError where a kernel has no soft RoCE or it does not come up."""
    for name, port in making.ports.items():
        if port.rdma is not None:
            made = await _make(making, port, place_of(port, name))
            making.tell("rdma_devices", name, made)


async def _make(making: Making, port: Port, place: str) -> str:
    """Gives what of it a report discloses."""
    host, device, address = making.network_of(port), str(port.device), str(port.own_ip)
    if isinstance(host, NetnsHost):
        raise NotReadyError(
            "soft RoCE knows the first network namespace of a machine alone",
            place=place,
            next_step="give the port a host that is a machine: `{kind: vm}`, `{kind: ssh}`",
        )
    there = await rdma_port_of(host, device, address)
    if there is not None and not there.is_soft:
        raise NotReadyError(
            f"the interface {device} has RDMA of its own: {there.device}",
            place=place,
            next_step="remove `rdma`: the card's is used where there is one",
        )
    if there is None:
        link = f"{_MADE}_{device}"
        await making.changes.make(host, DeleteRdmaLink(device=link), lambda: _add(host, link, device, place))
    found = await _up(host, device, address, place)
    return f"{found.device}, soft RoCE over {device}, GID {found.gid_index}"


async def _add(host: Host, link: str, device: str, place: str) -> None:
    # The kernel asks for the driver by itself where somebody loads it on demand; what programs need, nobody asks for.
    await host.run(("modprobe", "-a", "rdma_rxe", "ib_uverbs"), check=False)
    done = await host.run(("rdma", "link", "add", link, "type", "rxe", "netdev", device), check=False)
    if done.status == 0:
        return
    said = (done.stderr or done.stdout).strip()
    if any(words in said for words in _NO_DRIVER):
        raise NotReadyError(
            f"the kernel of this host has no soft RoCE (rdma_rxe): {said}",
            place=place,
            next_step="modprobe rdma_rxe; Debian's kernel has it, in a host `{kind: vm}` too; `rdma` is of iproute2",
        )
    raise HostError(f"soft RoCE cannot be made over {device}: {said}", place=place)


async def _up(host: Host, device: str, address: str, place: str) -> RdmaPort:
    """Until its port is active and has a GID of the address, which come by events."""
    found = None
    for _ in range(_TRIES):
        found = await rdma_port_of(host, device, address)
        if found is not None and found.state == "ACTIVE" and found.gid_index is not None:
            return found
        await asyncio.sleep(_STEP_S)
    if found is None:
        lacking = "is not there"
    elif found.state != "ACTIVE":
        lacking = f"is {found.state or 'in no known state'}, not ACTIVE"
    else:
        lacking = f"has no RoCE v2 GID of the address {address}"
    raise NotReadyError(
        f"the soft RoCE device over {device} {lacking}, {_TRIES * _STEP_S:g} s after it was made",
        place=place,
        next_step="check that the interface has a link and that address; `rdma link`, `ibv_devinfo -v` show the rest",
    )
