"""Promiscuous mode: DPDK sets it on a kernel interface and takes it back when it ends, but not when it is killed."""

from __future__ import annotations

import json

from nicbench.hosts.base import Host
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.end_promiscuity import EndPromiscuity


async def expect_promiscuity(changes: Changes, host: Host, device: str) -> None:
    """Writes the undo down before the engine sets it; nothing where the interface has it already, or is not there."""
    shown = await host.run(("ip", "-j", "link", "show", "dev", device), check=False)
    links = json.loads(shown.stdout or "[]") if shown.status == 0 else []
    if shown.status == 0 and not (links and "PROMISC" in links[0].get("flags", ())):
        await changes.make(host, EndPromiscuity(device=device), _by_the_engine)


async def _by_the_engine() -> None:
    """What follows is done by another process."""
