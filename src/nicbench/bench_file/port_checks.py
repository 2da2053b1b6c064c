"""Checks of ports and of the hosts that stand on others: devices, what is made of a port before a run, virtual
functions, the key ``on``, and the ports of virtual machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any, Final

from nicbench.bench_file.models import BenchFile, Choice
from nicbench.bench_file.reader import Node
from nicbench.bench_file.sections import Reading, Step
from nicbench.core.errors import Problem, quote, suggest
from nicbench.core.registry import find
from nicbench.hosts.base import Host
from nicbench.hosts.options import Card, VmOptions, spec_of
from nicbench.testbed.interfaces.base import Port
from nicbench.testbed.interfaces.cards import addresses_of_vdev, interfaces_of_vdev, pci_address

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
    made = []
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
            if earlier != name and not _is_shared(bench, bench.ports[earlier], port):
                way = next(way for way in _WAYS if root.find(("ports", name)).child(way) is not None)
                yield Problem(
                    root.position_of(("ports", name, way)),
                    f"the ports {quote(earlier)} and {quote(name)} are both {thing}",
                    "give each port an interface or a card of its own",
                )
                break


def _is_shared(bench: BenchFile, one: Port, other: Port) -> bool:
    """Whether two ports may be one interface: that of a client, which reaches two ports of the server by one cable."""
    measured = bench.dut.options.model_dump().get("host")
    return bench.measures == "rounds" and all(
        port.host != measured and port.device is not None and port.given_ip is not None and port.bond is None
        for port in (one, other)
    )


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
        is_card = port.address is not None or port.bind is not None
        position = root.position_of_key(("ports", name))
        if bench.dut.plugin.takes_cards and not is_card:
            message = f"the {bench.dut.kind} DUT drives cards by itself, and {quote(name)} is a kernel interface"
            step = "write `bind: vfio-pci`, or `address: 0000:65:00.0` of a card that is bound to it already"
            yield Problem(position, message, step)
        elif is_card and not bench.dut.plugin.takes_cards:
            message = f"the {bench.dut.kind} DUT works on kernel interfaces, and {quote(name)} is not one"
            yield Problem(position, message, "write `device: enp1s0f0`")


# The key ``on``: it names the host of the bench file on which a lab, a namespace or a container is made.


ON: Final = "on"
_LAB: Final = ("lab",)


def resolve_on(
    reading: Reading, lab: Choice | None, hosts: Mapping[str, Choice | None]
) -> tuple[Choice | None, dict[str, Choice]]:
    """The lab and the hosts, each with the name of the host that it is made on; problems go to ``reading``."""
    placed = {name: replace(host, on=_name(reading, ("hosts", name))) for name, host in hosts.items() if host}
    lab = replace(lab, on=_name(reading, _LAB)) if lab is not None else None
    known = _host_names(reading.root)
    problems = [
        *(problem for name in placed for problem in _check_host(reading.root, name, placed, known)),
        *(_check_lab(reading.root, lab, placed, known) if lab is not None else ()),
    ]
    reading.problems += problems
    return lab, placed


def _name(reading: Reading, path: tuple[Step, ...]) -> str | None:
    node = reading.root.find(path).child(ON)
    if node is not None and not isinstance(node.value, str):
        message = f"`on` must be the name of a host, not {quote(node.plain())}"
        reading.problems.append(Problem(node.position, message, "write `on: NAME`, of a host under `hosts`"))
        return None
    return None if node is None else str(node.value)


def _host_names(root: Node) -> list[str]:
    """Every name under ``hosts``, also of hosts with problems of their own."""
    return list(root.find(("hosts",)).entries or {}) if root.child("hosts") is not None else []


def _check_host(root: Node, name: str, hosts: Mapping[str, Choice], known: list[str]) -> Iterator[Problem]:
    host, path = hosts[name], ("hosts", name)
    if host.on is None:
        return
    plugin: type[Host] = host.plugin
    key = root.position_of_key((*path, ON))
    if plugin.stands_on is None:
        step = f"remove `on`; it is for {_kinds(lambda each: each.stands_on is not None)}, and for labs"
        yield Problem(key, f"a host of the kind {quote(host.kind)} is never made on another one", step)
    elif root.find(path).child("inner") is not None:
        message = f"{quote(name)} has both `on` and `inner`, but is made on one host"
        yield Problem(root.position_of_key((*path, "inner")), message, "keep `on`")
    elif host.on not in known:
        yield _report_unknown_host(root, path, host.on, known)
    elif chain := _find_loop(hosts, name):
        yield Problem(
            root.position_of((*path, ON)), f"hosts are made on each other: {chain}", "make one of them on a machine"
        )
    elif host.on in hosts:
        there = hosts[host.on]
        if there.plugin.stands_on is not None and there.kind not in plugin.stands_on:
            machines = _kinds(lambda each: each.stands_on is None or each.kind in (plugin.stands_on or ()))
            message = f"a {host.kind} cannot be made on {quote(host.on)}, which is a {there.kind}"
            yield Problem(root.position_of((*path, ON)), message, f"name a host of the kind {machines}")


def _check_lab(root: Node, lab: Choice, hosts: Mapping[str, Choice], known: list[str]) -> Iterator[Problem]:
    if lab.on is None:
        return
    if not lab.plugin.touches_machine:
        message = f"the {lab.kind} lab needs no machine, so `on` has no effect"
        yield Problem(root.position_of_key((*_LAB, ON)), message, "remove `on`")
    elif lab.on not in known:
        yield _report_unknown_host(root, _LAB, lab.on, known)
    elif lab.on in hosts:
        there = hosts[lab.on]
        if there.plugin.stands_on is not None:
            machines = _kinds(lambda each: each.stands_on is None)
            message = f"a lab is made on a whole machine, and {quote(lab.on)} is a {there.kind}"
            yield Problem(root.position_of((*_LAB, ON)), message, f"name a host of the kind {machines}")
        for name in known:
            if name != lab.on:
                message = f"the lab is made on {quote(lab.on)}, so the host {quote(name)} has no effect"
                yield Problem(root.position_of_key(("hosts", name)), message, f"remove {quote(name)}, or `lab`")


def _report_unknown_host(root: Node, path: tuple[Step, ...], name: str, known: list[str]) -> Problem:
    step = suggest(name, known, "host") if known else f"name it under `hosts`: `{name}: {{kind: ssh, address: ...}}`"
    return Problem(root.position_of((*path, ON)), f"there is no host {quote(name)}", step)


def _find_loop(hosts: Mapping[str, Choice], first: str) -> str | None:
    """A chain of hosts that comes back to one of them, as ``a on b on a``; None without one."""
    chain = [first]
    while (host := hosts.get(chain[-1])) is not None and host.on is not None:
        chain.append(host.on)
        if chain.count(host.on) > 1:
            return " on ".join(map(quote, chain))
    return None


def _kinds(wanted: Any) -> str:
    """The kinds of host that fit ``wanted``, as a list in words."""
    return ", ".join(quote(kind) for kind, each in find("nicbench.hosts.kinds", Host).items() if wanted(each))


# The ports of virtual machines: the bench file says all of their cards, wires and addresses, so all can be checked.


_FUNCTIONS_OF_MODEL: Final = {"igb": 7}
"""Virtual functions of one port by card model; an 82576 has seven (igb_main.c, "Maximum of 7 VFs per PF")."""


def check_guests(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields cards that a guest does not have, links without a common network, and addresses that two guests share."""
    yield from _check_shared(bench, root)
    wrong = dict(_check_cards(bench, root))
    yield from wrong.values()
    for index, ends in enumerate(bench.links):
        if all(end in bench.ports and end not in wrong for end in ends):
            yield from _check_link(bench, root, index)


def _guests(bench: BenchFile) -> dict[str, VmOptions]:
    return {name: host.options for name, host in bench.hosts.items() if isinstance(host.options, VmOptions)}


def guest_of(bench: BenchFile, port: Port) -> str | None:
    """The name of the virtual machine whose card a port uses; None where the port is on another machine."""
    if port.host not in bench.hosts:
        return None
    network = network_of(bench, port.host)
    machine = network.get("inner", network) if network["kind"] in ("netns", "container") else network
    return machine.get("guest") if machine["kind"] == "vm" else None


def _cards_of(port: Port) -> tuple[str, ...]:
    """The names of the guest's cards that a port uses."""
    if port.virtual_function is not None:
        return (port.virtual_function.of,)
    if port.bond is not None:
        return port.bond.of
    return () if port.device is None else (port.device,)


def _check_cards(bench: BenchFile, root: Node) -> Iterator[tuple[str, Problem]]:
    guests = _guests(bench)
    for name, port in bench.ports.items():
        guest = guest_of(bench, port)
        if guest is None:
            continue
        cards = guests[guest].cards
        way = next((way for way in ("virtual_function", "bond", "device") if getattr(port, way) is not None), "host")
        at = root.position_of_key(("ports", name, way))
        unknown = next((card for card in _cards_of(port) if card not in cards), None)
        if unknown is not None:
            message = f"the virtual machine {quote(guest)} has no card {quote(unknown)}"
            step = suggest(unknown, list(cards), "card") if cards else f"write `cards: {{{unknown}: {{}}}}` of {guest}"
            yield name, Problem(at, message, step)
        elif port.virtual_function is not None:
            refusal = _explain_missing_function(port.virtual_function.number, cards[port.virtual_function.of])
            if refusal is not None:
                yield name, Problem(at, *refusal)
        elif (
            bench.measures == "rounds"
            and port.given_ip is None
            and port.rdma is None
            and _is_in_guest_network(bench, port)
        ):
            message = f"{quote(name)} is a card of a virtual machine, and it needs an address there"
            yield name, Problem(at, message, "write `ip: 198.18.0.1/24`, with the length of its prefix")


def _is_in_guest_network(bench: BenchFile, port: Port) -> bool:
    """Whether a port is in the guest's own network stack; ports in namespaces are checked with the namespaces."""
    return bool(network_of(bench, port.host)["kind"] == "vm")


def _explain_missing_function(number: int, card: Card) -> tuple[str, str] | None:
    """Message and next step where the card has no virtual function of this number; None where it has."""
    if card.pci is not None:
        return None
    if card.model not in _FUNCTIONS_OF_MODEL:
        return f"a card {quote(card.model)} has no virtual functions", "write `model: igb` of that card"
    most = _FUNCTIONS_OF_MODEL[card.model]
    if number < most:
        return None
    return f"virtual functions of a card {quote(card.model)} are 0 to {most - 1}", f"write `number: {most - 1}` or less"


def _check_link(bench: BenchFile, root: Node, index: int) -> Iterator[Problem]:
    """Yields a link between two guests whose cards or addresses are not of one network."""
    ends = [bench.ports[end] for end in bench.links[index]]
    guests, at = _guests(bench), root.position_of(("links", index))
    machines = [guest_of(bench, port) for port in ends]
    if None in machines:
        return
    names = " and ".join(map(quote, bench.links[index]))
    wires = [
        {card.network for each in _cards_of(port) if (card := guests[str(guest)].cards[each]).pci is None}
        for port, guest in zip(ends, machines, strict=True)
    ]
    if all(wires) and (None in set.union(*wires) or not wires[0] & wires[1]):
        yield Problem(at, f"no network joins the cards of {names}", "write the same `network` of both cards")
    one, other = (port.given_ip for port in ends)
    if one is not None and other is not None and one.network != other.network:
        message = f"{names} have addresses of two networks, {one.network} and {other.network}"
        yield Problem(at, message, "give both ends of a link addresses of one network")


def _check_shared(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields PCI cards and MAC addresses that two guests claim."""
    first: dict[tuple[str, str], str] = {}
    for guest, options in _guests(bench).items():
        for name, card in options.cards.items():
            path = ("hosts", guest, "cards", name)
            for key, words in _exclusive(card).items():
                earlier = first.setdefault((key, words), guest)
                if earlier != guest:
                    message = f"{quote(earlier)} and {quote(guest)} both have {words}"
                    yield Problem(root.position_of((*path, key)), message, "give each a card and an address of its own")


def _exclusive(card: Card) -> Mapping[str, str]:
    """What no two cards may share, in words, by its key in the bench file."""
    mac = {} if card.mac is None else {"mac": f"a card with the address {card.mac}"}
    return mac if card.pci is None else {**mac, "pci": f"the machine's card {card.pci}"}
