"""Unmounts a file system."""

from __future__ import annotations

from typing import Literal

from nicbench.hosts.base import Host
from nicbench.tuning import detached
from nicbench.tuning.undo.base import Undo


class Unmount(Undo):
    """Unmount what nicbench mounted at ``path``, lazily where its server is gone or somebody is in it."""

    kind: Literal["unmount"] = "unmount"
    path: str

    async def undo(self, host: Host) -> str | None:
        await detached.unmount(host, self.path)
        return None
