"""Kernel settings that bear on packet processing, as they are inside the host's namespace."""

from __future__ import annotations

from nicbench.hosts.base import Host
from nicbench.inventory._asking import outermost, values_of
from nicbench.inventory.base import Fact

_FOLDER = "/proc/sys/"
# Some are of the whole machine and are not shown in a namespace: they are read outside it.
_NAMES = (
    "kernel/numa_balancing",
    "kernel/sched_rt_runtime_us",
    "kernel/timer_migration",
    "net/core/bpf_jit_enable",
    "net/core/busy_poll",
    "net/core/busy_read",
    "net/core/default_qdisc",
    "net/core/dev_weight",
    "net/core/netdev_budget",
    "net/core/netdev_budget_usecs",
    "net/core/netdev_max_backlog",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/ip_forward",
    "net/ipv6/conf/all/forwarding",
    "vm/nr_hugepages",
    "vm/swappiness",
)


class Sysctls(Fact):
    """From ``/proc/sys``."""

    kind = "sysctls"

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str]:
        paths = [_FOLDER + name for name in _NAMES]
        inside = await values_of(host, paths)
        return parse_settings(await values_of(outermost(host), paths) | inside)


def parse_settings(values: dict[str, str]) -> dict[str, str]:
    """Under the names that ``sysctl`` uses."""
    return {path.removeprefix(_FOLDER).replace("/", "."): value for path, value in values.items()}
