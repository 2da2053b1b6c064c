"""Takes promiscuous mode from an interface."""

from __future__ import annotations

from typing import Literal

from nicbench.hosts.base import Host
from nicbench.tuning.undo._links import show_link
from nicbench.tuning.undo.base import Undo


class EndPromiscuity(Undo):
    """Take the promiscuous mode from an interface that did not have it: a killed engine leaves it there."""

    kind: Literal["end_promiscuity"] = "end_promiscuity"
    device: str

    async def undo(self, host: Host) -> str | None:
        # IFF_PROMISC is what somebody switched on for the interface itself; a bridge's own use does not set it.
        if "PROMISC" in (await show_link(host, self.device) or {}).get("flags", ()):
            await host.run(("ip", "link", "set", "dev", self.device, "promisc", "off"))
        return None
