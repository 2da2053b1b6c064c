"""Ends a server in the background."""

from __future__ import annotations

from typing import Literal

from nicbench.hosts.base import Host
from nicbench.tuning import detached
from nicbench.tuning.undo.base import Undo


class EndServer(Undo):
    """End a server that nicbench put into the background; ``known_by`` is the file with its pid and start time."""

    kind: Literal["end_server"] = "end_server"
    known_by: str

    async def undo(self, host: Host) -> str | None:
        await detached.end_server(host, self.known_by)
        return None
