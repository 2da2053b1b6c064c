"""What several checks read: many small files at once, and the CPUs that nicbench would measure on."""

from __future__ import annotations

from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.testbed.cores import make_core_map


async def values(host: Host, *patterns: str) -> dict[str, str]:
    """Path and value of each that can be read; none of them is no error here."""
    try:
        return await values_of(host, patterns)
    except UnknownFactError:
        return {}


async def measuring_cpus(host: Host) -> tuple[int, ...]:
    """Those of tester and DUT in a lab that nicbench would make in this process."""
    cores = await make_core_map(host)
    return tuple(dict.fromkeys(cpu for cpu in (cores.worker, *cores.dut) if cpu is not None))
