"""What an inventory says by which runs are looked for: cards under test, kernels, drivers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json

from nicbench.errors import NicbenchError
from nicbench.store import reading

INVENTORY: Final = "inventory.json"


@dataclass(frozen=True, slots=True)
class Machines:
    """Of all machines of a run, each name once."""

    cards: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()


def machines_of(folder: Path) -> Machines:
    """Of a run folder; nothing where it has no inventory, or none that can be read."""
    try:
        return machines(from_json(reading.content(folder / INVENTORY), allow_inf_nan=False))
    except (OSError, ValueError, RecursionError, NicbenchError):
        return Machines()


def machines(inventory: Any) -> Machines:
    """Of an inventory. A card is that of an interface under test; where no interface is known (DPDK took it), every
    card of the machine.
    """
    each = [_mapping(facts) for facts in _mapping(inventory).values()]
    cards = [card for facts in each for card in _cards(facts)]
    return Machines(
        cards=_once(" ".join(_words(card, "vendor", "model", "id")) for card in cards),
        kernels=_once(release for facts in each for release in _words(_mapping(facts.get("kernel")), "release")),
        drivers=_once(name for facts in each for name in _drivers(facts)),
    )


def _cards(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    adapters = _mapping(facts.get("pci_adapters"))
    drivers = _mapping(facts.get("drivers"))
    buses = [str(_mapping(drivers.get(name)).get("bus")) for name in _mapping(facts.get("interfaces"))]
    known = [bus for bus in buses if bus in adapters]
    return [_mapping(adapters[bus]) for bus in known or adapters]


def _drivers(facts: Mapping[str, Any]) -> Iterator[str]:
    """Of the interfaces under test; a virtual one has its kind (veth) in the driver's place."""
    for name, link in _mapping(facts.get("interfaces")).items():
        named = _words(_mapping(_mapping(facts.get("drivers")).get(name)), "name")
        yield from named or _words(_mapping(link), "kind")
    for card in _cards(facts):
        yield from _words(card, "driver")


def _words(found: Mapping[str, Any], *names: str) -> list[str]:
    return [value for name in names if isinstance(value := found.get(name), str) and value]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))
