"""Taking an interface out of a bond again: the undo of joining it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nicbench.errors import HostError
from nicbench.hosts.base import Host
from nicbench.tuning.undo import ReleasePort


async def release_port(host: Host, undo: ReleasePort) -> str | None:
    """Out of the bond, with its state, MAC address and MTU as before; a sentence where somebody has it by now.

    The driver gives MAC address and MTU back by itself where nobody changed them, and leaves the port down.
    """
    link = await _link(host, undo.device)
    if link is None:
        return None  # its card went, or its namespace
    master = link.get("master")
    if master is not None and master != undo.bond:
        return f"{host.name}: {undo.device} was left alone: somebody made it a member of {master} since"
    wanted = (("address", undo.mac), ("mtu", str(undo.mtu_bytes)), ("up" if undo.is_up else "down",))
    if master is not None:
        now: tuple[tuple[str, ...], ...] = ()
        await host.run(("ip", "link", "set", "dev", undo.device, "nomaster"))
    else:
        now = (("address", str(link.get("address"))), ("mtu", str(link.get("mtu"))), (_state(link),))
    for words in wanted:
        if words not in now:
            await host.run(("ip", "link", "set", "dev", undo.device, *words))
    after = await _link(host, undo.device) or {}
    found = (after.get("master"), after.get("address"), after.get("mtu"), _state(after))
    if found != (None, undo.mac, undo.mtu_bytes, "up" if undo.is_up else "down"):
        raise HostError(
            f"{undo.device} should be out of {undo.bond}, {'up' if undo.is_up else 'down'}, with {undo.mac} and an MTU "
            f"of {undo.mtu_bytes} again; it is in {found[0] or 'none'}, {found[3]}, with {found[1]} and {found[2]}",
            place=host.name,
        )
    return None


def _state(link: Mapping[str, Any]) -> str:
    return "up" if "UP" in link.get("flags", ()) else "down"


async def _link(host: Host, device: str) -> dict[str, Any] | None:
    """None where there is none of that name."""
    shown = await host.run(("ip", "-j", "-d", "link", "show", "dev", device), check=False)
    links: list[dict[str, Any]] = json.loads(shown.stdout or "[]") if shown.status == 0 else []
    return links[0] if links else None
