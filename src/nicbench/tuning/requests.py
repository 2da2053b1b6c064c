"""What the section ``tuning`` of a bench file asks for, and at which places of a testbed. Touches no host.

A named profile is what a machine is commonly set to for one aim; what it lacks is skipped, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nicbench.core.base import Frozen
from nicbench.core.errors import UsageError
from nicbench.core.machine import Controller
from nicbench.core.registry import find
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
        of_host = _requests_of_part(requests, part)
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


def _requests_of_part(requests: Iterable[TuningRequest], part: Part) -> list[tuple[int, TuningRequest]]:
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


@dataclass(frozen=True, slots=True)
class Step:
    """An item of a profile, its options, and why it is there; docs/tuning.md prints the reason."""

    item: str
    options: dict[str, Any]
    why: str


_UNDISTURBED: Final = (
    Step("irqbalance", {"on": False}, "it would move interrupts, and with them the load, in the middle of a trial"),
    Step(
        "cpu_frequency",
        {"governor": "performance", "energy_preference": "performance"},
        "a frequency that follows the load makes the rate depend on what was measured before",
    ),
    Step("numa_balancing", {"on": False}, "moving pages between nodes costs page faults, which are seen as latency"),
    Step("page_merging", {"on": False}, "looking for equal pages takes CPU time, and a merged page is slow to write"),
    Step("watchdog", {"on": False}, "its interrupts reach every CPU, the measuring ones too"),
)

PROFILES: Final[dict[str, tuple[Step, ...]]] = {
    "low-latency": (
        *_UNDISTURBED,
        Step("idle_states", {"most_exit_latency_us": 1}, "waking from a deep idle state takes up to 200 µs"),
        Step("wakeup_latency", {"us": 0}, "the same for idle states that cannot be switched off one by one"),
        Step("timer_migration", {"on": False}, "timers of idle CPUs would run on the measuring ones"),
        Step(
            "transparent_huge_pages",
            {"enabled": "madvise", "defrag": "never"},
            "compacting memory for a huge page holds the program up that asked",
        ),
        Step("busy_polling", {"us": 50}, "a reader that polls takes a packet without an interrupt and a wake-up"),
        Step(
            "coalescing",
            {"adaptive_rx": False, "rx_usecs": 0},
            "a frame that waits for others before its interrupt waits for nothing",
        ),
        Step(
            "energy_efficient_ethernet", {"on": False}, "a link that slept takes up to 30 µs to carry the first frame"
        ),
        Step("irq_affinity", {"cpus": "local"}, "a frame that crosses to another NUMA node arrives later"),
    ),
    "throughput": (
        *_UNDISTURBED,
        Step("rings", {"rx": "maximum", "tx": "maximum"}, "a burst is held until the CPU comes to it"),
        Step(
            "irq_affinity",
            {"cpus": "local"},
            "frames are taken where their memory is, and no CPU has several queues' share",
        ),
        Step("transparent_huge_pages", {"enabled": "always"}, "fewer TLB misses over large buffers"),
        Step(
            "sysctls",
            {
                "values": {
                    "net.core.rmem_max": 268_435_456,
                    "net.core.wmem_max": 268_435_456,
                    "net.ipv4.tcp_rmem": "4096 131072 268435456",
                    "net.ipv4.tcp_wmem": "4096 65536 268435456",
                    "net.core.netdev_max_backlog": 250_000,
                }
            },
            "windows and queues that hold bandwidth times delay: 200 Gb/s over 10 ms are 250 MB",
        ),
    ),
    "dpdk": (
        *_UNDISTURBED,
        Step(
            "idle_states", {"most_exit_latency_us": 1}, "a sleeping sibling changes the frequency of the polling core"
        ),
        Step("timer_migration", {"on": False}, "timers of idle CPUs would run on the polling ones"),
        Step(
            "realtime_throttling",
            {"on": False},
            "a polling program with real-time priority would lose its CPU for 50 ms of each second",
        ),
        Step(
            "transparent_huge_pages", {"enabled": "never"}, "DPDK has huge pages of its own; khugepaged only disturbs"
        ),
        Step("flow_control", {"rx": False, "tx": False}, "a paused sender hides what the device would have lost"),
        Step("irq_affinity", {"cpus": "far"}, "what is left of interrupts comes where nobody polls"),
    ),
}


def requests_of(profile: str, role: str) -> tuple[TuningRequest, ...]:
    """The items of a profile for the hosts of a role."""
    return tuple(_requests(PROFILES[profile], profile, role))


def _requests(steps: Iterable[Step], profile: str, role: str) -> Iterable[TuningRequest]:
    kinds = find("nicbench.tuning.items", Item)
    for step in steps:
        item = kinds[step.item]
        yield TuningRequest(role=role, item=item, options=item.Options.model_validate(step.options), profile=profile)
