"""Ports that are virtual functions (``virtual_function``), or cards that a DUT of DPDK drives: that they can be."""

from __future__ import annotations

from collections.abc import Iterator

from nicbench.bench_file.made_ports import network_of, origin_of
from nicbench.bench_file.models import BenchFile, Port
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Problem, quote


def function_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """A function is made on the machine, and moved only into a namespace that nicbench makes."""
    for name, port in bench.ports.items():
        function = port.virtual_function
        if function is None:
            continue
        path = ("ports", name)
        for key in ("address", "vdev", "bond", "mac"):
            if root.find(path).child(key) is not None:
                message = f"{quote(name)} is a virtual function, so {quote(key)} has no meaning"
                step = "write `mac` under `virtual_function`" if key == "mac" else f"remove `{key}`"
                yield Problem(root.position_of_key((*path, key)), message, step)
        if port.bind is not None and port.device is not None:
            message = "a virtual function of DPDK has no interface of the kernel"
            yield Problem(root.position_of_key((*path, "device")), message, "remove `device`, or `bind`")
        if port.host not in bench.hosts:
            continue
        network = network_of(bench, port.host)
        if network["kind"] == "netns" and origin_of(bench, port.host) == network:
            message = f"virtual functions come up outside of {quote(port.host)}, a namespace that is there already"
            step = "write `create: true` of that host: nicbench makes the namespace and moves the function there"
            yield Problem(root.position_of_key((*path, "virtual_function")), message, step)


def card_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """A DUT of DPDK needs cards, one of the kernel interfaces."""
    if bench.lab is not None or not bench.dut.plugin.is_set_up:
        return
    linked = {end for link in bench.links for end in link}
    for name, port in bench.ports.items():
        if name not in linked or port.host == "tester":
            continue
        is_card = _is_card(port)
        position = root.position_of_key(("ports", name))
        if bench.dut.plugin.takes_cards and not is_card:
            message = (
                f"the {bench.dut.kind} DUT drives cards by itself, and {quote(name)} is an interface of the kernel"
            )
            step = "write `bind: vfio-pci`, or `address: 0000:65:00.0` of a card that is bound to it already"
            yield Problem(position, message, step)
        elif is_card and not bench.dut.plugin.takes_cards:
            message = f"the {bench.dut.kind} DUT works on interfaces of the kernel, and {quote(name)} is none"
            yield Problem(position, message, "write `device: enp1s0f0`")


def _is_card(port: Port) -> bool:
    return port.address is not None or port.bind is not None
