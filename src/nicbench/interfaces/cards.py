"""``bind: vfio-pci`` of a port: its card is taken from the kernel and given to DPDK, and comes back as it was."""

from __future__ import annotations

from nicbench.bench_file.models import Port
from nicbench.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.interfaces._vfio import bind_to_vfio
from nicbench.interfaces.base import Making, origin_of, place_of
from nicbench.labs._behind import check_address
from nicbench.labs._host_interfaces import interfaces_of
from nicbench.labs._interfaces import check_free


async def bind_cards(making: Making) -> None:
    """A port that was given by its interface is one by its PCI address then. NotReadyError where it is in use."""
    for name, port in making.ports.items():
        if port.bind is None:
            continue
        place, host = place_of(port, name), origin_of(making, port)
        if port.device is not None:
            port = await _by_address(host, port, port.device, place)
        if port.address is not None:
            await check_address(host, port.address, place)
            await bind_to_vfio(making.changes, host.machine, port.address, place)
            making.tell("bound_cards", name, f"{port.address} to {port.bind}")
        making.ports[name] = port


async def _by_address(host: Host, port: Port, device: str, place: str) -> Port:
    link = check_free(await interfaces_of(host), device, place, for_tester=True)
    done = await host.run(("readlink", f"/sys/class/net/{device}/device"), check=False)
    address = done.stdout.strip().rpartition("/")[2]
    if done.status != 0 or not address.count(":") == 2:
        raise NotReadyError(
            f"the interface {device} is none of a PCI card",
            place=place,
            next_step="remove `bind`, or name a port of a card; `ls -l /sys/class/net` shows what each is of",
        )
    return port.model_copy(update={"device": None, "address": address, "mac": port.mac or str(link["address"])})
