"""Ports of virtual machines: their cards, wires and addresses are all in the bench file, so what cannot be is seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from nicbench.bench_file.made_ports import network_of
from nicbench.bench_file.models import BenchFile, Port
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Problem, quote, suggest
from nicbench.hosts._vm_options import Card, VmOptions

_FUNCTIONS: Final = {"igb": 7}
"""Of a port of an 82576: as many as the kernel's driver has (igb_main.c, "Maximum of 7 VFs per PF")."""


def guest_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Cards that a guest has not, wires that lead elsewhere, addresses that two have."""
    yield from _shared_problems(bench, root)
    wrong = dict(_card_problems(bench, root))
    yield from wrong.values()
    for index, ends in enumerate(bench.links):
        if all(end in bench.ports and end not in wrong for end in ends):
            yield from _link_problems(bench, root, index)


def _guests(bench: BenchFile) -> dict[str, VmOptions]:
    return {name: host.options for name, host in bench.hosts.items() if isinstance(host.options, VmOptions)}


def guest_of(bench: BenchFile, port: Port) -> str | None:
    """The virtual machine whose cards a port stands on; None where it is on another machine."""
    if port.host not in bench.hosts:
        return None
    network = network_of(bench, port.host)
    machine = network.get("inner", network) if network["kind"] in ("netns", "container") else network
    return machine.get("guest") if machine["kind"] == "vm" else None


def _cards_of(port: Port) -> tuple[str, ...]:
    """By name, where the port says them."""
    if port.virtual_function is not None:
        return (port.virtual_function.of,)
    if port.bond is not None:
        return port.bond.of
    return () if port.device is None else (port.device,)


def _card_problems(bench: BenchFile, root: Node) -> Iterator[tuple[str, Problem]]:
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
            if (said := _function(port.virtual_function.number, cards[port.virtual_function.of])) is not None:
                yield name, Problem(at, *said)
        elif bench.measures == "rounds" and port.given_ip is None and port.rdma is None and _is_first(bench, port):
            message = f"{quote(name)} is a card of a virtual machine, and nothing gives it an address there"
            yield name, Problem(at, message, "write `ip: 198.18.0.1/24`, with the length of its prefix")


def _is_first(bench: BenchFile, port: Port) -> bool:
    """Whether it is in the guest's own network stack: what is made of namespaces is checked where they are."""
    return bool(network_of(bench, port.host)["kind"] == "vm")


def _function(number: int, card: Card) -> tuple[str, str] | None:
    if card.pci is not None:
        return None
    if card.model not in _FUNCTIONS:
        return f"a card {quote(card.model)} has no virtual functions", "write `model: igb` of that card"
    most = _FUNCTIONS[card.model]
    if number < most:
        return None
    return f"virtual functions of a card {quote(card.model)} are 0 to {most - 1}", f"write `number: {most - 1}` or less"


def _link_problems(bench: BenchFile, root: Node, index: int) -> Iterator[Problem]:
    """A link between two guests is of one network, and both its ends have addresses of one."""
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


def _shared_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Cards of the machine, and addresses on a network, that two guests have."""
    first: dict[tuple[str, str], str] = {}
    for guest, options in _guests(bench).items():
        for name, card in options.cards.items():
            path = ("hosts", guest, "cards", name)
            for key, words in _own(card).items():
                earlier = first.setdefault((key, words), guest)
                if earlier != guest:
                    message = f"{quote(earlier)} and {quote(guest)} have both {words}"
                    yield Problem(root.position_of((*path, key)), message, "give each a card and an address of its own")


def _own(card: Card) -> Mapping[str, str]:
    """What no two cards have, by the key that says it."""
    mac = {} if card.mac is None else {"mac": f"a card with the address {card.mac}"}
    return mac if card.pci is None else {**mac, "pci": f"the machine's card {card.pci}"}
