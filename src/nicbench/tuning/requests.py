"""What the section ``tuning`` of a bench file asks for, and at which places of a testbed. Touches no host."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nicbench.core.base import Frozen
from nicbench.core.controller import Controller
from nicbench.core.errors import UsageError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.tuning.items.base import Item, Place

ALL: Final = "all"
"""The key of the bench file for every host of the test; the others are ``tester``, ``dut`` and names of hosts."""
BENCH_FILE: Final = "bench file"


@dataclass(frozen=True, slots=True)
class TuningRequest:
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
class PlacedRequest:
    """A request at one place. ``place.device`` is None also where an item of a device finds none: it cannot be set."""

    request: TuningRequest
    item: Item
    place: Place

    def __str__(self) -> str:
        return f"{self.item.kind} ({self.place})"


def place_requests(requests: Iterable[TuningRequest], parts: Iterable[Part]) -> tuple[PlacedRequest, ...]:
    """Each request at each of its places, in the order in which they are applied.

    UsageError where two requests of one machine contradict each other.
    """
    found: dict[tuple[str, str, str | None, int], PlacedRequest] = {}
    for part in parts:
        of_host = _of_part(requests, part)
        for number, request in of_host:
            for place in _places(request, part):
                key = (request.item.kind, _key(place.host), place.device, number)
                earlier = found.get(key)
                if earlier is not None and earlier.request.options != request.options:
                    raise UsageError(
                        f"{request.item.kind} is asked for in two ways, by {earlier.request.role!r} and "
                        f"{request.role!r}, and both are of one machine",
                        place=f"tuning, {place}",
                        next_step=f"write it once, under `{ALL}`",
                    )
                found.setdefault(key, PlacedRequest(request, request.item(request.options), place))
    return tuple(sorted(found.values(), key=lambda one: one.item.phase))


def _of_part(requests: Iterable[TuningRequest], part: Part) -> list[tuple[int, TuningRequest]]:
    """The requests for this host, each numbered among those of its kind: what is nearest to it and written wins."""
    levels: Mapping[tuple[bool, bool], dict[str, list[TuningRequest]]] = {
        (written, own): {} for written in (False, True) for own in (False, True)
    }
    for request in requests:
        if request.role in (ALL, part.role, part.host.name):
            levels[request.profile is None, request.role != ALL].setdefault(request.item.kind, []).append(request)
    merged = {kind: of_kind for level in levels.values() for kind, of_kind in level.items()}
    return [pair for of_kind in merged.values() for pair in enumerate(of_kind)]


def _places(request: TuningRequest, part: Part) -> list[Place]:
    if request.item.scope == "machine":
        return [Place(outermost(part.host), controller=part.controller)]
    if request.item.scope == "namespace":
        return [Place(part.host.network)]
    devices = getattr(request.options, "devices", ()) or part.devices
    return [Place(part.host.network, device) for device in devices] or [Place(part.host.network)]


def _key(host: Host) -> str:
    return json.dumps(host.spec(), sort_keys=True)
