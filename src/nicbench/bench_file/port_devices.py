"""What ports stand on: names that the kernel can have given, and nothing that two ports share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nicbench.bench_file.made_ports import origin_of
from nicbench.bench_file.models import BenchFile, Port
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Problem, quote
from nicbench.labs._vdev import addresses_of_vdev, interfaces_of_vdev, pci_address

LONGEST_NAME: Final = 15
"""Of an interface, in bytes: IFNAMSIZ without its closing zero."""

_WAYS: Final = ("virtual_function", "bond", "device", "address", "vdev")


def device_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Names that no interface has, and interfaces, cards and virtual devices that are given twice."""
    first: dict[tuple[str, str], str] = {}
    for name, port in bench.ports.items():
        if port.device is not None and not is_interface_name(port.device):
            written = root.find(("ports", name)).child("device") is not None
            name_it = "write" if written else "name it by `device`:"
            yield Problem(
                root.position_of(("ports", name, "device" if written else "virtual_function")),
                f"{quote(port.device)} cannot be the name of an interface",
                f"{name_it} 1 to {LONGEST_NAME} characters without `/`, `:` and spaces, as `ip link` shows them",
            )
        for thing in _things(port):
            earlier = first.setdefault((_machine(bench, port), thing), name)
            if earlier != name:
                way = next(way for way in _WAYS if root.find(("ports", name)).child(way) is not None)
                yield Problem(
                    root.position_of(("ports", name, way)),
                    f"the ports {quote(earlier)} and {quote(name)} are both {thing}",
                    "give each port an interface or a card of its own",
                )
                break


def is_interface_name(text: str) -> bool:
    """By the kernel's rule (dev_valid_name)."""
    fits = 0 < len(text.encode()) <= LONGEST_NAME and text not in (".", "..")
    return fits and not any(character in "/:\0" or character.isspace() for character in text)


def _things(port: Port) -> list[str]:
    """Everything that the port takes for itself, in words that are equal where the thing is."""
    things = []
    if port.device is not None:
        things.append(f"the interface {quote(port.device)}")
    if port.bond is not None:
        things += [f"the interface {quote(device)}" for device in port.devices]
    if port.virtual_function is not None:
        function = port.virtual_function
        things.append(f"the virtual function {function.number} of {quote(function.of)}")
    if port.address is not None:
        things.append(f"the card at {quote(pci_address(port.address))}")
    if port.vdev is not None:
        things.append(f"the virtual device {quote(port.vdev.partition(',')[0].strip())}")
        things += [f"the interface {quote(interface)}" for interface in interfaces_of_vdev(port.vdev)]
        things += [f"the card at {quote(address)}" for address in addresses_of_vdev(port.vdev)]
    return things


def _machine(bench: BenchFile, port: Port) -> str:
    """Two hosts of the same kind and options are one: the tester and a DUT that are both `local`.

    An interface that is moved into a namespace is, before that, one of the machine.
    """
    if port.host not in bench.hosts:
        return port.host
    return repr(origin_of(bench, port.host))
