"""Asks a host for its network interfaces."""

from __future__ import annotations

from nicbench.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.netns import NetnsHost
from nicbench.labs._interfaces import Interfaces


async def interfaces_of(host: Host) -> Interfaces:
    """Asks a host for its interfaces, and where it is this machine, for those of its other namespaces."""
    links = await host.run(("ip", "-d", "-j", "link", "show"), check=False)
    if links.status != 0:
        raise NotReadyError(
            f"its interfaces cannot be listed: {links.stderr.strip()}",
            place=host.name,
            next_step="check the host's namespace (`ip netns list`), and run as root",
        )
    addresses = await host.run(("ip", "-j", "address", "show"))
    routes = [
        await host.run(("ip", "-j", family, "route", "show", "table", "all"), check=False) for family in ("-4", "-6")
    ]
    elsewhere = await _elsewhere(host.inner if isinstance(host, NetnsHost) else host)
    return Interfaces.parse(links.stdout, addresses.stdout, [route.stdout for route in routes], elsewhere)


async def _elsewhere(outer: Host) -> dict[str, str]:
    """Interfaces in named namespaces, for the hint of an error: what cannot be listed is left out."""
    named = await outer.run(("ip", "netns", "list"), check=False)
    found: dict[str, str] = {}
    for line in named.stdout.splitlines():
        namespace = line.split()[0] if line.strip() else ""
        shown = await outer.run(("ip", "-n", namespace, "-br", "link", "show"), check=False)
        for link in shown.stdout.splitlines():
            found.setdefault(link.split()[0].partition("@")[0], namespace)
    return found
