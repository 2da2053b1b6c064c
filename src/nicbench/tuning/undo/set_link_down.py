"""Takes an interface down again."""

from __future__ import annotations

from typing import Literal

from nicbench.hosts.base import Host
from nicbench.tuning.undo._links import show_link
from nicbench.tuning.undo.base import Undo


class SetLinkDown(Undo):
    """Take an interface down that was down before."""

    kind: Literal["set_link_down"] = "set_link_down"
    device: str

    async def undo(self, host: Host) -> str | None:
        if await show_link(host, self.device) is not None:
            await host.run(("ip", "link", "set", "dev", self.device, "down"))
        return None
