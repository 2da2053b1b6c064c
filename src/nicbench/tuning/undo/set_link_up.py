"""Brings an interface up again."""

from __future__ import annotations

from typing import Literal

from nicbench.hosts.base import Host
from nicbench.tuning.undo._links import show_link
from nicbench.tuning.undo.base import Undo


class SetLinkUp(Undo):
    """Bring an interface up that nicbench took down."""

    kind: Literal["set_link_up"] = "set_link_up"
    device: str

    async def undo(self, host: Host) -> str | None:
        if await show_link(host, self.device) is not None:
            await host.run(("ip", "link", "set", "dev", self.device, "up"))
        return None
