"""Deletes a datapath of Open vSwitch in the kernel."""

from __future__ import annotations

from typing import Literal

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.tuning.undo._links import show_link
from nicbench.tuning.undo.base import Undo


class DeleteDatapath(Undo):
    """Delete a datapath that nicbench had the kernel make: it outlives the switch that uses it."""

    kind: Literal["delete_datapath"] = "delete_datapath"
    datapath: str

    async def undo(self, host: Host) -> str | None:
        done = await host.run(("ovs-dpctl", "del-dp", f"system@{self.datapath}"), check=False)
        if await show_link(host, self.datapath) is not None:
            raise HostError(f"the datapath {self.datapath} cannot be deleted: {done.stderr.strip()}", place=host.name)
        return None
