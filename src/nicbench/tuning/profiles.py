"""Named profiles: what a machine is commonly set to for one aim; what it lacks is skipped, with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from nicbench.core.registry import find
from nicbench.tuning.items.base import Item
from nicbench.tuning.requests import TuningRequest


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
        Step("idle_states", {"most_exit_latency_us": 1}, "waking from a deep idle state takes up to 200 us"),
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
            "energy_efficient_ethernet", {"on": False}, "a link that slept takes up to 30 us to carry the first frame"
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
