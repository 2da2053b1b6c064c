"""Stops the kernel's NFS server of a network namespace."""

from __future__ import annotations

from typing import Literal

from nicbench.hosts.base import Host
from nicbench.tuning.detached import STOP_NFS_SERVER
from nicbench.tuning.undo.base import Undo


class StopNfsServer(Undo):
    """Stop the kernel's NFS server of a network namespace; there was none before."""

    kind: Literal["stop_nfs_server"] = "stop_nfs_server"

    async def undo(self, host: Host) -> str | None:
        await host.run(STOP_NFS_SERVER)
        return None
