"""Deletes an interface."""

from __future__ import annotations

from typing import Literal

from nicbench.hosts.base import Host
from nicbench.tuning.undo._links import show_link
from nicbench.tuning.undo.base import Undo


class DeleteLink(Undo):
    """Delete an interface that nicbench made."""

    kind: Literal["delete_link"] = "delete_link"
    device: str

    async def undo(self, host: Host) -> str | None:
        if await show_link(host, self.device) is not None:
            await host.run(("ip", "link", "delete", "dev", self.device))
        return None
