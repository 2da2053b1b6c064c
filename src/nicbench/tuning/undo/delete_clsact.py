"""Deletes the hook of an interface for filters."""

from __future__ import annotations

import json
from typing import Literal

from nicbench.hosts.base import Host
from nicbench.tuning.undo.base import Undo


class DeleteClsact(Undo):
    """Delete the queueing discipline ``clsact`` that nicbench added to an interface, with the filters in it."""

    kind: Literal["delete_clsact"] = "delete_clsact"
    device: str

    async def undo(self, host: Host) -> str | None:
        shown = await host.run(("tc", "-j", "qdisc", "show", "dev", self.device), check=False)
        if shown.status == 0 and any(one.get("kind") == "clsact" for one in json.loads(shown.stdout or "[]")):
            await host.run(("tc", "qdisc", "del", "dev", self.device, "clsact"))
        return None
