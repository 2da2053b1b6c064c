"""The kernel driver of an interface of a host."""

from __future__ import annotations

from nicbench.core.errors import NicbenchError
from nicbench.hosts.base import Host
from nicbench.system.adapters.ethtool import parse_driver


async def driver_of(host: Host, device: str) -> str:
    """As ``ethtool -i`` names it; "" where nobody says."""
    try:
        shown = await host.run(("ethtool", "-i", device), check=False)
    except NicbenchError:
        return ""
    return parse_driver(shown.stdout)["name"] or ""
