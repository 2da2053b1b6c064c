"""Promiscuous mode: DPDK sets it on a kernel interface and takes it back when it ends, but not when it is killed."""

from __future__ import annotations

import json

from nicbench.hosts.base import Host
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo import EndPromiscuity


async def expect_promiscuity(changes: Changes, host: Host, device: str) -> None:
    """Writes the undo down before the engine sets it; nothing where the interface has it already, or is not there."""
    shown = await host.run(("ip", "-j", "link", "show", "dev", device), check=False)
    if shown.status == 0 and not flag_of_link(shown.stdout):
        await changes.make(host, EndPromiscuity(device=device), _by_the_engine)


async def is_promiscuous(host: Host, device: str) -> bool:
    """Whether somebody switched it on for the interface itself; False where there is none of that name."""
    shown = await host.run(("ip", "-j", "link", "show", "dev", device), check=False)
    return shown.status == 0 and flag_of_link(shown.stdout)


def flag_of_link(text: str) -> bool:
    """Of the output of ``ip -j link show dev DEVICE``: IFF_PROMISC, which a bridge's own use does not set."""
    links = json.loads(text or "[]")
    return bool(links) and "PROMISC" in links[0].get("flags", ())


async def _by_the_engine() -> None:
    """What follows is done by another process."""
