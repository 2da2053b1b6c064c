"""Checks of hosts that others stand on: the key ``on``, and the ports of virtual machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from nicbench.bench_file.models import BenchFile, Choice
from nicbench.bench_file.port_checks import network_of
from nicbench.bench_file.problems import Problem, quote, suggest
from nicbench.bench_file.reader import Node
from nicbench.bench_file.sections import Reading, Step
from nicbench.core.registry import find
from nicbench.hosts.base import Host
from nicbench.hosts.options import Card, VmOptions
from nicbench.testbed.interfaces.base import Port

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
