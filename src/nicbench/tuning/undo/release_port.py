"""Takes an interface out of a bond again: the undo of joining it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.tuning.undo._links import show_link
from nicbench.tuning.undo.base import Undo


class ReleasePort(Undo):
    """Take an interface out of a bond that nicbench made, and give it its state, MAC address and MTU back.

    One that is in another group by now, or in none and changed since, was taken by somebody: it is left alone.
    """

    kind: Literal["release_port"] = "release_port"
    device: str
    bond: str
    is_up: bool
    mac: str
    mtu_bytes: int

    async def undo(self, host: Host) -> str | None:
        """The driver gives MAC address and MTU back by itself where nobody changed them, and leaves the port down."""
        link = await show_link(host, self.device, "-d")
        if link is None:
            return None  # its card went, or its namespace
        master = link.get("master")
        if master is not None and master != self.bond:
            return f"{host.name}: {self.device} was left alone: somebody made it a member of {master} since"
        state = "up" if self.is_up else "down"
        wanted = (("address", self.mac), ("mtu", str(self.mtu_bytes)), (state,))
        if master is not None:
            now: tuple[tuple[str, ...], ...] = ()
            await host.run(("ip", "link", "set", "dev", self.device, "nomaster"))
        else:
            now = (("address", str(link.get("address"))), ("mtu", str(link.get("mtu"))), (_state_of(link),))
        for words in wanted:
            if words not in now:
                await host.run(("ip", "link", "set", "dev", self.device, *words))
        after = await show_link(host, self.device, "-d") or {}
        found = (after.get("master"), after.get("address"), after.get("mtu"), _state_of(after))
        if found != (None, self.mac, self.mtu_bytes, state):
            raise HostError(
                f"{self.device} should be out of {self.bond}, {state}, with {self.mac} and an MTU of "
                f"{self.mtu_bytes} again; it is in {found[0] or 'none'}, {found[3]}, with {found[1]} and {found[2]}",
                place=host.name,
            )
        return None


def _state_of(link: Mapping[str, Any]) -> str:
    return "up" if "UP" in link.get("flags", ()) else "down"
