"""What a DUT built on DPDK needs before it starts: huge pages, and a way to remove what its EAL leaves in /run."""

from __future__ import annotations

from nicbench.duts._dpdk_options import DpdkOptions
from nicbench.hosts.base import Host
from nicbench.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.huge_pages import raise_huge_pages
from nicbench.tuning.undo import RemovePath

_RUNTIME_FOLDER = "/run/dpdk"


async def prepare(changes: Changes, host: Host, options: DpdkOptions, testbed: Testbed, prefix: str) -> None:
    """Huge pages for the DUT beside those that the tester was promised; the EAL's runtime folder goes with the run."""
    if options.huge_pages:
        await raise_huge_pages(changes, host, options.memory + testbed.promised_bytes, "dut.huge_pages")
    await remove_runtime_files(changes, host, prefix)


async def remove_runtime_files(changes: Changes, host: Host, prefix: str) -> None:
    """EAL makes a folder by the name of its file prefix, whatever its options, and a killed one leaves it."""
    await changes.make(host, RemovePath(path=f"{_RUNTIME_FOLDER}/{prefix}"), _by_the_eal)


async def _by_the_eal() -> None:
    """It will be made when the DUT starts."""
