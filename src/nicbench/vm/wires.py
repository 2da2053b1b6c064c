"""Networks between cards of virtual machines: a hub of QEMU in each guest, joined by sockets of this machine. Pure.

No interface of this machine is used: what is on such a wire is nowhere else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from nicbench.hosts._vm_options import VmOptions
from nicbench.vm.command import Wire


def wires_of(guests: Mapping[str, VmOptions], folders: Mapping[str, str]) -> dict[str, tuple[Wire, ...]]:
    """Of each guest. The first guest with a card on a network listens for the others, which are started after it."""
    members: dict[str, dict[str, list[str]]] = {}
    for guest, options in guests.items():
        for name, card in options.cards.items():
            if card.network is not None:
                members.setdefault(card.network, {}).setdefault(guest, []).append(name)
    found: dict[str, list[Wire]] = {guest: [] for guest in guests}
    for network, cards in members.items():
        first, *others = cards
        paths = {other: f"{folders[first]}/wire-{network}-{number}" for number, other in enumerate(others)}
        found[first].append(Wire(network, tuple(cards[first]), listens=tuple(paths.values())))
        for other, path in paths.items():
            found[other].append(Wire(network, tuple(cards[other]), goes_to=path))
    return {guest: tuple(wires) for guest, wires in found.items()}


def macs_of(guest: str, options: VmOptions, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Locally administered, and the same in every run; those that the bench file gives stay, and those of cards."""
    begin = hashlib.sha256(guest.encode()).digest()[0]
    return {
        name: card.mac or (given or {}).get(name) or f"02:6e:62:10:{begin:02x}:{number:02x}"
        for number, (name, card) in enumerate(options.cards.items())
    }
