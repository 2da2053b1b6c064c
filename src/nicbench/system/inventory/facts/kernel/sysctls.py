"""Kernel settings that bear on packet processing, as they are inside the host's namespace."""

from __future__ import annotations

from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.system.inventory.base import Fact

_FOLDER = "/proc/sys/"
# Some are of the whole machine and are not shown in a namespace: they are read outside it.
_NAMES = (
    "kernel/nmi_watchdog",
    "kernel/numa_balancing",
    "kernel/sched_autogroup_enabled",
    "kernel/sched_rt_runtime_us",
    "kernel/timer_migration",
    "kernel/watchdog",
    "net/bridge/bridge-nf-call-iptables",
    "net/core/bpf_jit_enable",
    "net/core/bpf_jit_harden",
    "net/core/busy_poll",
    "net/core/busy_read",
    "net/core/default_qdisc",
    "net/core/dev_weight",
    "net/core/flow_limit_cpu_bitmap",
    "net/core/gro_normal_batch",
    "net/core/netdev_budget",
    "net/core/netdev_budget_usecs",
    "net/core/netdev_max_backlog",
    "net/core/netdev_tstamp_prequeue",
    "net/core/optmem_max",
    "net/core/rmem_default",
    "net/core/rmem_max",
    "net/core/rps_sock_flow_entries",
    "net/core/somaxconn",
    "net/core/wmem_default",
    "net/core/wmem_max",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/fib_multipath_hash_policy",
    "net/ipv4/ip_early_demux",
    "net/ipv4/ip_forward",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_ecn",
    "net/ipv4/tcp_mtu_probing",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_wmem",
    "net/ipv6/conf/all/forwarding",
    "net/netfilter/nf_conntrack_max",
    "vm/dirty_ratio",
    "vm/nr_hugepages",
    "vm/overcommit_memory",
    "vm/stat_interval",
    "vm/swappiness",
    "vm/zone_reclaim_mode",
)


class Sysctls(Fact):
    """From ``/proc/sys``."""

    kind = "sysctls"
    shape = dict[str, str]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str]:
        paths = [_FOLDER + name for name in _NAMES]
        inside = await values_of(host, paths)
        return parse_settings(await values_of(outermost(host), paths) | inside)


def parse_settings(values: dict[str, str]) -> dict[str, str]:
    """Under the names that ``sysctl`` uses."""
    return {path.removeprefix(_FOLDER).replace("/", "."): value for path, value in values.items()}
