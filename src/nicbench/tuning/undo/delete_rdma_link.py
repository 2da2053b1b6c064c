"""Deletes a soft RDMA device."""

from __future__ import annotations

from typing import Literal

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.tuning.undo.base import Undo


class DeleteRdmaLink(Undo):
    """Delete a soft RDMA device that nicbench made."""

    kind: Literal["delete_rdma_link"] = "delete_rdma_link"
    device: str

    async def undo(self, host: Host) -> str | None:
        # One that is not there any more went with its interface.
        done = await host.run(("rdma", "link", "delete", self.device), check=False)
        still = await host.run(("test", "-e", f"/sys/class/infiniband/{self.device}"), check=False)
        if still.status == 0:
            raise HostError(f"the RDMA device {self.device} cannot be deleted: {done.stderr.strip()}", place=host.name)
        return None
