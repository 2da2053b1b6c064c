"""Checks of ports: the devices that they stand on, what is to be made for them, and virtual functions and cards."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Any, Final

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.problems import Problem, quote
from nicbench.bench_file.reader import Node
from nicbench.hosts.options import spec_of
from nicbench.testbed.interfaces.dpdk_devices import addresses_of_vdev, interfaces_of_vdev, pci_address
from nicbench.testbed.interfaces.options import Port

# What nicbench makes for ports: namespaces (``create``), addresses (``ip`` with a prefix length), bonds, RDMA.


_POINT_TO_POINT: Final = 31
"""From this prefix length on a network has no network and broadcast addresses (RFC 3021)."""


def check_made_ports(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields namespaces made twice, and bonds, addresses and RDMA devices that cannot be made."""
    yield from _check_namespaces(bench, root)
    first: list[tuple[str, Port]] = []
    for name, port in bench.ports.items():
        if port.host not in bench.hosts:
            continue
        given = port.given_ip
        path = ("ports", name)
        if port.bond is not None and bench.measures != "rounds":
            message = f"the tester sends frames on single interfaces, so {quote('bond')} has no effect"
            yield Problem(root.position_of_key((*path, "bond")), message, "write `device`, or a method of workloads")
        if port.rdma is not None:
            yield from _check_rdma(bench, port, root, path)
        if given is None:
            if bench.measures == "rounds" and _is_created(bench, port.host):
                message = f"nicbench makes the namespace of {quote(name)}, and the port needs an address there"
                step = "write `ip: 198.18.0.1/24`, with the length of its prefix"
                yield Problem(root.position_of_key(path), message, step)
            continue
        network = given.network
        is_wide = isinstance(network, IPv4Network) and network.prefixlen < _POINT_TO_POINT
        if is_wide and given.ip in (network.network_address, network.broadcast_address):
            message = f"{quote(str(given))} is the network or the broadcast address of its network"
            yield Problem(root.position_of((*path, "ip")), message, f"write `{network[1]}/{network.prefixlen}`")
            continue
        for other, earlier in first:
            same = network_of(bench, earlier.host) == network_of(bench, port.host)
            if same and earlier.given_ip is not None and earlier.given_ip.network.overlaps(network):
                message = f"{quote(other)} and {quote(name)} are in one network stack, and both in {network}"
                step = "give each a network of its own, or a host with a namespace of its own"
                yield Problem(root.position_of((*path, "ip")), message, f"{step}: the kernel would send by only one")
        first.append((name, port))


def _check_rdma(bench: BenchFile, port: Port, root: Node, path: tuple[str, ...]) -> Iterator[Problem]:
    """Yields wrong soft RoCE: it is for workloads, needs an address, and works only in a machine's first namespace."""
    at = root.position_of_key((*path, "rdma"))
    if bench.measures != "rounds":
        yield Problem(at, f"the tester sends no RDMA, so {quote('rdma')} has no effect", f"remove {quote('rdma')}")
    elif port.ip is None:
        yield Problem(at, "soft RoCE needs the address of its port", "write `ip: 198.18.0.1/24`")
    elif network_of(bench, port.host)["kind"] == "netns":
        message = f"{quote(port.host)} is a network namespace, and soft RoCE works only in the first one of a machine"
        yield Problem(at, message, "give the port a host that is a machine: `{kind: vm}`, `{kind: ssh}`")


def network_of(bench: BenchFile, name: str) -> dict[str, Any]:
    """The spec of the network stack that a host uses; a container mostly uses that of the host it is made on."""
    spec = spec_of(bench.hosts, name)
    while spec["kind"] == "container" and spec.get("network") == "host":
        spec = spec["inner"]
    if spec["kind"] == "container" and str(spec.get("network")).startswith("ns:"):
        inside = spec["inner"]
        machine = inside.get("inner", {"kind": "local"}) if inside["kind"] == "netns" else inside
        return {"kind": "netns", "namespace": str(spec["network"]).rpartition("/")[2], "inner": machine}
    if spec["kind"] == "netns":
        return {"kind": "netns", "namespace": spec["namespace"], "inner": spec.get("inner", {"kind": "local"})}
    return spec


def origin_of(bench: BenchFile, name: str) -> dict[str, Any]:
    """The spec of the network stack in which the interfaces of a host's ports are before a run."""
    network = network_of(bench, name)
    machine: dict[str, Any] = network["inner"] if _is_created(bench, name) else network
    return machine


def _is_created(bench: BenchFile, name: str) -> bool:
    """Whether nicbench makes the network namespace that a host is in."""
    network = network_of(bench, name)
    return any(network_of(bench, other) == network for other in _creators(bench))


def _creators(bench: BenchFile) -> list[str]:
    return [name for name, host in bench.hosts.items() if getattr(host.options, "create", False)]


def _check_namespaces(bench: BenchFile, root: Node) -> Iterator[Problem]:
    made: list[dict[str, Any]] = []
    for name in _creators(bench):
        network = network_of(bench, name)
        if network in made:
            message = f"the namespace {quote(network['namespace'])} is made by two hosts"
            yield Problem(root.position_of_key(("hosts", name, "create")), message, "give each a namespace of its own")
        made.append(network)


# The devices of ports: names that the kernel accepts, and no device that two ports share.


LONGEST_NAME: Final = 15
"""The longest name of an interface in bytes: IFNAMSIZ without its closing zero."""

_WAYS: Final = ("virtual_function", "bond", "device", "address", "vdev")


def check_devices(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields names that no interface can have, and interfaces, cards and virtual devices that are given twice."""
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
        for thing in _list_devices(port):
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
    """Whether the kernel accepts the text as the name of an interface (its function dev_valid_name)."""
    fits = 0 < len(text.encode()) <= LONGEST_NAME and text not in (".", "..")
    return fits and not any(character in "/:\0" or character.isspace() for character in text)


def _list_devices(port: Port) -> list[str]:
    """Everything that the port uses alone, in words; two ports with an equal entry use the same thing."""
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
    """A key of the machine that a port's device is on; hosts of one kind and options are one machine, as two `local`.

    An interface that is moved into a namespace is, before that, one of the machine.
    """
    if port.host not in bench.hosts:
        return port.host
    return repr(origin_of(bench, port.host))


# Ports that are virtual functions (``virtual_function``), and cards that a DPDK DUT drives.


def check_virtual_functions(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields bad virtual functions: nicbench makes them on the machine and moves them only into its own namespaces."""
    for name, port in bench.ports.items():
        function = port.virtual_function
        if function is None:
            continue
        path = ("ports", name)
        for key in ("address", "vdev", "bond", "mac"):
            if root.find(path).child(key) is not None:
                message = f"{quote(name)} is a virtual function, so {quote(key)} has no effect"
                step = "write `mac` under `virtual_function`" if key == "mac" else f"remove `{key}`"
                yield Problem(root.position_of_key((*path, key)), message, step)
        if port.bind is not None and port.device is not None:
            message = "a virtual function that is bound to DPDK has no kernel interface"
            yield Problem(root.position_of_key((*path, "device")), message, "remove `device`, or `bind`")
        if port.host not in bench.hosts:
            continue
        network = network_of(bench, port.host)
        if network["kind"] == "netns" and origin_of(bench, port.host) == network:
            message = f"virtual functions come up outside {quote(port.host)}, a namespace that exists already"
            step = "write `create: true` of that host: nicbench makes the namespace and moves the function there"
            yield Problem(root.position_of_key((*path, "virtual_function")), message, step)


def check_dut_cards(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields ports that the DUT cannot drive: a DPDK DUT needs cards, a kernel DUT needs kernel interfaces."""
    if bench.lab is not None or not bench.dut.plugin.is_set_up:
        return
    linked = {end for link in bench.links for end in link}
    for name, port in bench.ports.items():
        if name not in linked or port.host == "tester":
            continue
        is_card = _is_card(port)
        position = root.position_of_key(("ports", name))
        if bench.dut.plugin.takes_cards and not is_card:
            message = f"the {bench.dut.kind} DUT drives cards by itself, and {quote(name)} is a kernel interface"
            step = "write `bind: vfio-pci`, or `address: 0000:65:00.0` of a card that is bound to it already"
            yield Problem(position, message, step)
        elif is_card and not bench.dut.plugin.takes_cards:
            message = f"the {bench.dut.kind} DUT works on kernel interfaces, and {quote(name)} is not one"
            yield Problem(position, message, "write `device: enp1s0f0`")


def _is_card(port: Port) -> bool:
    return port.address is not None or port.bind is not None
