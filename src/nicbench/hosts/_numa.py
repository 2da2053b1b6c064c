"""What /sys and /proc say of NUMA: the nodes of a machine, and where a process and its memory are."""

from __future__ import annotations

import re
from typing import Final

from nicbench.errors import HostError
from nicbench.hosts.base import Host
from nicbench.model.cpu_list import parse_cpu_list
from nicbench.model.numa import NumaNode, RanOn

_NODES: Final = "/sys/devices/system/node"
_ALLOWED = re.compile(r"^Cpus_allowed_list:\s*(\S+)$", re.MULTILINE)
_PAGES = re.compile(r" N(\d+)=(\d+)")


async def numa_nodes(host: Host) -> tuple[NumaNode, ...]:
    """Those of the host's machine that have CPUs; none where the kernel does not tell (built without NUMA)."""
    online = await host.machine.read_file(f"{_NODES}/online")
    if online is None:
        return ()
    found = []
    for number in parse_cpu_list(online.strip()):
        cpus = await host.machine.read_file(f"{_NODES}/node{number}/cpulist")
        if cpus is not None and cpus.strip():
            found.append(NumaNode(number=number, cpus=parse_cpu_list(cpus.strip())))
    return tuple(found)


async def ran_on(host: Host, pid: int) -> RanOn | None:
    """Where the process is now; None where it has ended, or cannot be looked at."""
    try:
        status = await host.read_file(f"/proc/{pid}/status")
        maps = await host.read_file(f"/proc/{pid}/numa_maps")
    except HostError:
        return None
    allowed = _ALLOWED.search(status or "")
    if allowed is None:
        return None
    return RanOn(cpus=parse_cpu_list(allowed[1]), pages=None if maps is None else pages_in(maps))


def pages_in(maps: str) -> dict[int, int]:
    """Anonymous pages by node (numa(7)): those of a program's files are shared with whoever read them first."""
    found: dict[int, int] = {}
    for line in maps.splitlines():
        if " anon=" in line:
            for node, pages in _PAGES.findall(line):
                found[int(node)] = found.get(int(node), 0) + int(pages)
    return found
