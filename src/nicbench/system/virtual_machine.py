"""Whether a machine is virtual."""

from __future__ import annotations

from nicbench.core.errors import NicbenchError
from nicbench.hosts.base import Host


async def is_virtual_machine(host: Host) -> bool | None:
    """As the flags of an x86 processor tell; those of others have none for it, so that systemd is asked.

    None where neither says.
    """
    virtual = flag_of_hypervisor(await host.read_file("/proc/cpuinfo") or "")
    if virtual is not None:
        return virtual
    try:
        found = await host.run(("systemd-detect-virt", "--vm"), check=False)
    except NicbenchError:
        return None
    kind = found.stdout.strip()  # "none" with the exit status 1
    return kind != "none" if kind else None


def flag_of_hypervisor(cpuinfo: str) -> bool | None:
    """Whether a hypervisor has set its flag in the text of /proc/cpuinfo; None where the processor has no flags."""
    flags = next((line for line in cpuinfo.splitlines() if line.startswith("flags")), None)
    return None if flags is None else "hypervisor" in flags.partition(":")[2].split()
