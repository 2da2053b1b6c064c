"""NUMA: a card at another processor than the cores that measure. Each frame then crosses the link between processors.

Source: Documentation/ABI/testing/sysfs-bus-pci (numa_node, local_cpulist).
"""

from __future__ import annotations

from collections.abc import Collection

from nicbench.core.machine import cpu_list, parse_cpu_list
from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.doctor.checks._files import measuring_cpus, values
from nicbench.doctor.checks._interfaces import Adapters, Interface, adapters, drop_way_out, interfaces, name_adapter
from nicbench.hosts.base import Host

_NAME = "NUMA"


class Nearness(Examination):
    """From ``/sys/bus/pci`` and ``/sys/devices/system/node``."""

    kind = "nearness"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        nodes = len(await values(host, "/sys/devices/system/node/node*/cpulist"))
        known = await interfaces(host)
        return judge(nodes, drop_way_out(await adapters(host), known), known, await measuring_cpus(host))


def judge(nodes: int, found: Adapters, known: Collection[Interface], measuring: tuple[int, ...]) -> tuple[Check, ...]:
    """One check for each adapter at a known node, where there is more than one."""
    if nodes < 2:
        return (ok(_NAME, "one node: every card is near every core"),)
    placed = {address: adapter for address, adapter in found.items() if adapter["numa_node"] is not None}
    if not placed:
        return (ok(_NAME, f"{nodes} nodes, and no network adapter to measure with tells at which it is"),)
    return tuple(
        _judge_one(name_adapter(address, known), adapter["numa_node"], adapter["local_cpus"], measuring)
        for address, adapter in placed.items()
    )


def _judge_one(who: str, node: int, local: str | None, measuring: tuple[int, ...]) -> Check:
    name = f"{_NAME} of {who}"
    far = sorted(set(measuring) - set(parse_cpu_list(local))) if local else []
    if not far:
        return ok(name, f"at node {node}, as the cores are that measure ({cpu_list(measuring)})")
    text = (
        f"at node {node} (CPUs {local}), and nicbench would measure on {cpu_list(measuring)}: each frame crosses "
        "the link between the processors, which costs rate and latency"
    )
    return warning(name, text, f"taskset --cpu-list {local} nicbench run BENCH.yaml")
