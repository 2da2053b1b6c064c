"""What the section ``tuning`` of a bench file asks for, and at which places of a testbed. Touches no host."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nicbench.errors import UsageError
from nicbench.hosts.base import Host
from nicbench.hosts.netns import outermost
from nicbench.model.base import Frozen
from nicbench.model.controller import Controller
from nicbench.tuning.items.base import Item, Place

ALL: Final = "all"
"""The key of the bench file for every host of the test; the others are ``tester``, ``dut`` and names of hosts."""
BENCH_FILE: Final = "bench file"


@dataclass(frozen=True, slots=True)
class Wish:
    """One item with its options, for the hosts of a role. ``profile``: it was not written, but brought along by one."""

    role: str
    item: type[Item]
    options: Frozen
    profile: str | None = None

    @property
    def source(self) -> str:
        """Where it comes from, in the words of tuning.json."""
        return BENCH_FILE if self.profile is None else f"profile {self.profile}"


@dataclass(frozen=True, slots=True)
class Part:
    """A host of the test: its role, and the interfaces that the test uses there."""

    role: str
    host: Host
    devices: tuple[str, ...]
    controller: Controller | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """A wish at one place. ``place.device`` is None as well where an item of a device finds none: it cannot be set."""

    wish: Wish
    item: Item
    place: Place

    def __str__(self) -> str:
        return f"{self.item.kind} ({self.place})"


def placed(wishes: Iterable[Wish], parts: Iterable[Part]) -> tuple[Placed, ...]:
    """Each wish at each of its places, in the order in which they are applied.

    UsageError where two wishes of one machine contradict each other.
    """
    found: dict[tuple[str, str, str | None, int], Placed] = {}
    for part in parts:
        of_host = _of_part(wishes, part)
        for number, wish in of_host:
            for place in _places(wish, part):
                key = (wish.item.kind, _key(place.host), place.device, number)
                earlier = found.get(key)
                if earlier is not None and earlier.wish.options != wish.options:
                    raise UsageError(
                        f"{wish.item.kind} is asked for in two ways, by {earlier.wish.role!r} and {wish.role!r}, and "
                        "both are of one machine",
                        place=f"tuning, {place}",
                        next_step=f"write it once, under `{ALL}`",
                    )
                found.setdefault(key, Placed(wish, wish.item(wish.options), place))
    return tuple(sorted(found.values(), key=lambda one: one.item.phase))


def _of_part(wishes: Iterable[Wish], part: Part) -> list[tuple[int, Wish]]:
    """The wishes for this host, each numbered among those of its kind: what is nearest to the host and written wins."""
    levels: Mapping[tuple[bool, bool], dict[str, list[Wish]]] = {
        (written, own): {} for written in (False, True) for own in (False, True)
    }
    for wish in wishes:
        if wish.role in (ALL, part.role, part.host.name):
            levels[wish.profile is None, wish.role != ALL].setdefault(wish.item.kind, []).append(wish)
    merged = {kind: of_kind for level in levels.values() for kind, of_kind in level.items()}
    return [pair for of_kind in merged.values() for pair in enumerate(of_kind)]


def _places(wish: Wish, part: Part) -> list[Place]:
    if wish.item.scope == "machine":
        return [Place(outermost(part.host), controller=part.controller)]
    if wish.item.scope == "namespace":
        return [Place(part.host.network)]
    devices = getattr(wish.options, "devices", ()) or part.devices
    return [Place(part.host.network, device) for device in devices] or [Place(part.host.network)]


def _key(host: Host) -> str:
    return json.dumps(host.spec(), sort_keys=True)
