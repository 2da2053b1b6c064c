"""Before the testbed: the live hosts of a bench file, each once, and what nicbench makes of its ports on them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from nicbench.bench_file.models import BenchFile
from nicbench.hosts import build_hosts
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.kinds.vm import VmHost
from nicbench.testbed.interfaces.base import Making
from nicbench.testbed.interfaces.bond import make_bonds
from nicbench.testbed.interfaces.cards import bind_cards, make_virtual_functions
from nicbench.testbed.interfaces.host_interfaces import make_rdma_devices
from nicbench.testbed.interfaces.namespaces import assign_addresses, make_namespaces, move_interfaces
from nicbench.testbed.vm.booting import boot
from nicbench.tuning.changes import Changes


async def make_hosts(bench: BenchFile, changes: Changes) -> Mapping[str, Host]:
    """Every host by its name; virtual machines are booted. NotReadyError where one does not come up."""
    guests = {name: host.options for name, host in build_hosts(bench.hosts).items() if isinstance(host, VmHost)}
    return build_hosts(bench.hosts, await boot(guests, changes, LocalHost("local")))


def machine_of_lab(bench: BenchFile, hosts: Mapping[str, Host]) -> Host:
    """The host that the lab of a bench file is made on: this machine, or the one that `on` names."""
    return LocalHost("local") if bench.lab is None or bench.lab.on is None else hosts[bench.lab.on]


def disclose_hosts(hosts: Mapping[str, Host]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """What the report says plainly of the hosts, and the fact ``hosts``: how each was made that was not there."""
    statements = dict.fromkeys(sentence for host in hosts.values() for sentence in host.statements())
    made = {name: told for name, host in hosts.items() if (told := host.disclosure())}
    return tuple(statements), {"hosts": made} if made else {}


def describe_making(bench: BenchFile) -> str:
    """``making the testbed``, and what of it takes its time."""
    guests = [name for name, choice in bench.hosts.items() if choice.plugin.made_here]
    return f"making the testbed: {', '.join(guests)} is booting" if guests else "making the testbed"


def starts_hosts(bench: BenchFile) -> bool:
    """Whether a host is named that is not there before it is booting."""
    return any(choice.plugin.made_here for choice in bench.hosts.values())


# A virtual function is an interface before it is moved; a bond is made where its members are; an address is of what is
# made last; an RDMA device is over an interface with its address.
_STEPS: Final[tuple[Callable[[Making], Awaitable[None]], ...]] = (
    make_virtual_functions,
    bind_cards,
    make_namespaces,
    move_interfaces,
    make_bonds,
    assign_addresses,
    make_rdma_devices,
)


async def make_ports(bench: BenchFile, hosts: Mapping[str, Host], changes: Changes) -> Making:
    """The ports as they are then, with facts for the report; NotReadyError where something cannot be made."""
    making = Making(hosts, dict(bench.ports), changes, created=tuple(_created_namespaces(bench, hosts)))
    for step in _STEPS:
        await step(making)
    return making


def makes_ports(bench: BenchFile) -> bool:
    """Whether anything is made for the hosts and ports of a bench file."""
    created = any(getattr(choice.options, "create", False) for choice in bench.hosts.values())
    return created or any(port.is_made for port in bench.ports.values())


def _created_namespaces(bench: BenchFile, hosts: Mapping[str, Host]) -> list[NetnsHost]:
    found = [hosts[name] for name, choice in bench.hosts.items() if getattr(choice.options, "create", False)]
    return [host for host in found if isinstance(host, NetnsHost)]
