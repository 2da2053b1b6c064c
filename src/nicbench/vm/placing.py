"""A guest's processors and memory on the machine: each processor pinned, the memory in pages of a size and on nodes.

Nothing is assumed: what QEMU was told is read back from /proc (docs/studies.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from nicbench.errors import HostError, NotReadyError
from nicbench.hosts._vm_options import VmOptions
from nicbench.hosts.base import Host
from nicbench.model.cpu_list import cpu_list, parse_cpu_list
from nicbench.tuning.changes import Changes
from nicbench.vm.qmp import ask

_ALLOWED: Final = re.compile(r"^Cpus_allowed_list:\s*(\S+)", re.MULTILINE)
_PAGES_ON_NODE: Final = re.compile(r"^N(\d+)=(\d+)$")


async def raise_pages(changes: Changes, local: Host, options: VmOptions, name: str) -> None:
    """So many pages of the size and on the nodes that a guest's memory needs; NotReadyError where there are too few."""
    if options.huge_pages is None:
        for number in options.memory_nodes:
            if await local.read_file(f"/sys/devices/system/node/node{number}/meminfo") is None:
                raise NotReadyError(
                    f"this machine has no NUMA node {number}",
                    place=f"{name}, memory_nodes",
                    next_step="name another, as `ls /sys/devices/system/node` lists them",
                )
        return
    kib, each = int(options.huge_pages) // 1024, int(options.memory) // options.nodes // int(options.huge_pages)
    wanted: dict[int | None, int] = {}
    for node in options.memory_nodes or (None,) * options.nodes:
        wanted[node] = wanted.get(node, 0) + each
    for node, pages in wanted.items():
        where = "/sys/kernel/mm" if node is None else f"/sys/devices/system/node/node{node}"
        folder = f"{where}/hugepages/hugepages-{kib}kB"
        total, free = [await local.read_file(f"{folder}/{file}") for file in ("nr_hugepages", "free_hugepages")]
        if total is None or free is None:
            raise NotReadyError(
                f"there are no huge pages of {kib // 1024} MiB{'' if node is None else f' on node {node}'}",
                place=f"{local.name}, {name}",
                next_step=f"see {where}/hugepages for the sizes that there are",
            )
        if int(free) >= pages:
            continue
        try:
            await changes.set_file(local, f"{folder}/nr_hugepages", str(int(total) + pages - int(free)))
        except HostError as error:
            raise NotReadyError(
                f"{pages} huge pages of {kib // 1024} MiB are needed, and {int(free)} are free: {error.message}",
                place=f"{local.name}, {name}",
                next_step="reserve them as the machine boots (hugepagesz=1G hugepages=N), or write smaller pages",
            ) from error


async def place(local: Host, options: VmOptions, pid: int, qmp: str, name: str) -> dict[str, Any]:
    """Pins the processors of the running guest, and verifies pins and memory; what a report discloses of both."""
    told: dict[str, Any] = {}
    if options.pin:
        told["pins"] = await _pin(local, options.pin, pid, qmp, name)
    if options.huge_pages is not None or options.memory_nodes:
        told["memory_pages"] = await _memory(local, options, pid, name)
    return told


async def _pin(local: Host, cpus: Sequence[int], pid: int, qmp: str, name: str) -> dict[str, str]:
    """One by one; QEMU's other threads go to the CPUs beside them, where there are any."""
    allowed = parse_cpu_list(_allowed(await local.read_file("/proc/self/status"), name))
    if missing := [cpu for cpu in cpus if cpu not in allowed]:
        raise NotReadyError(
            f"the CPU {missing[0]} is not among those that nicbench may use here: {cpu_list(allowed)}",
            place=f"{name}, pin",
            next_step="name others, as `lscpu -e` lists them",
        )
    if others := [cpu for cpu in allowed if cpu not in cpus]:
        await local.run(("taskset", "--all-tasks", "--cpu-list", "--pid", cpu_list(others), str(pid)))
    told = {}
    threads = {int(each["cpu-index"]): int(each["thread-id"]) for each in await ask(qmp, "query-cpus-fast")}
    for number, cpu in enumerate(cpus):
        thread = threads[number]
        await local.run(("taskset", "--cpu-list", "--pid", str(cpu), str(thread)))
        found = _allowed(await local.read_file(f"/proc/{pid}/task/{thread}/status"), name)
        if found != str(cpu):
            raise HostError(f"CPU {number} of the guest should run on CPU {cpu} alone, and may on {found}", place=name)
        told[f"vCPU {number}"] = f"CPU {cpu}"
    return told


def _allowed(status: str | None, name: str) -> str:
    found = _ALLOWED.search(status or "")
    if found is None:
        raise HostError("where a thread may run is not known: its status is not in /proc", place=name)
    return found[1]


async def _memory(local: Host, options: VmOptions, pid: int, name: str) -> dict[str, str]:
    """By ``numa_maps``, which counts the pages of each mapping on each node."""
    maps = await local.read_file(f"/proc/{pid}/numa_maps")
    if maps is None:
        raise HostError("where the guest's memory lies is not known: the kernel has no numa_maps", place=name)
    found = pages_on_nodes(maps, None if options.huge_pages is None else int(options.huge_pages) // 1024)
    wanted = set(options.memory_nodes) or set(found)
    have = sum(count * kib for by_size in found.values() for kib, count in by_size.items()) * 1024
    if set(found) - wanted or have < int(options.memory):
        raise NotReadyError(
            f"the guest's memory is not where it should be: {_words(found)}",
            place=name,
            next_step="see /proc/PID/numa_maps of its QEMU, and how many pages each node has",
        )
    return {f"node {node}": _words({node: by_size}) for node, by_size in found.items()}


def pages_on_nodes(numa_maps: str, page_kib: int | None) -> dict[int, dict[int, int]]:
    """Pages by node and size [KiB] (Documentation/filesystems/proc.rst): of that size, or of the guest's memory at all.

    Without a size it is the largest mapping; with one every mapping of such pages.
    """
    every: list[dict[int, dict[int, int]]] = []
    for line in numa_maps.splitlines():
        words = line.split()
        size = next((int(word.partition("=")[2]) for word in words if word.startswith("kernelpagesize_kB=")), 4)
        if page_kib is not None and size != page_kib:
            continue
        nodes = {int(match[1]): {size: int(match[2])} for word in words if (match := _PAGES_ON_NODE.match(word))}
        every.append(nodes)
    if page_kib is None:
        return max(every, key=lambda nodes: sum(sum(by.values()) for by in nodes.values()), default={})
    found: dict[int, dict[int, int]] = {}
    for nodes in every:
        for node, by_size in nodes.items():
            there = found.setdefault(node, {})
            for size, count in by_size.items():
                there[size] = there.get(size, 0) + count
    return found


def _words(found: dict[int, dict[int, int]]) -> str:
    said = [
        f"{count} pages of {f'{kib // 1024} MiB' if kib >= 1024 else f'{kib} KiB'} on node {node}"
        for node, by_size in found.items()
        for kib, count in by_size.items()
    ]
    return ", ".join(said) or "no such pages"
