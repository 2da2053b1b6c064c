"""Between hosts and testbed: what a bench file has nicbench make of its ports, in the order in which it is needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.hosts.base import Host
from nicbench.hosts.netns import NetnsHost
from nicbench.interfaces.addresses import give_addresses
from nicbench.interfaces.base import Making
from nicbench.interfaces.bond import make_bonds
from nicbench.interfaces.cards import bind_cards
from nicbench.interfaces.moves import move_interfaces
from nicbench.interfaces.namespaces import make_namespaces
from nicbench.interfaces.rdma import make_rdma_devices
from nicbench.interfaces.virtual_function import make_virtual_functions
from nicbench.tuning.changes import Changes

# A virtual function is an interface before it is moved; a bond is made where its members are; an address is of what is
# made last; an RDMA device is over an interface with its address.
_STEPS: Final[tuple[Callable[[Making], Awaitable[None]], ...]] = (
    make_virtual_functions,
    bind_cards,
    make_namespaces,
    move_interfaces,
    make_bonds,
    give_addresses,
    make_rdma_devices,
)


async def make_ports(bench: BenchFile, hosts: Mapping[str, Host], changes: Changes) -> Making:
    """The ports as they are then, with facts for the report; NotReadyError where something cannot be made."""
    making = Making(hosts, dict(bench.ports), changes, created=tuple(_created(bench, hosts)))
    for step in _STEPS:
        await step(making)
    return making


def makes_ports(bench: BenchFile) -> bool:
    """Whether anything is made for the hosts and ports of a bench file."""
    created = any(getattr(choice.options, "create", False) for choice in bench.hosts.values())
    return created or any(port.is_made for port in bench.ports.values())


def _created(bench: BenchFile, hosts: Mapping[str, Host]) -> list[NetnsHost]:
    found = [hosts[name] for name, choice in bench.hosts.items() if getattr(choice.options, "create", False)]
    return [host for host in found if isinstance(host, NetnsHost)]
