"""Deletes a network namespace."""

from __future__ import annotations

import json
from typing import Literal

from nicbench.core.errors import HostError
from nicbench.hosts import close_connections
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NAMESPACE_FOLDER
from nicbench.hosts.owner import start_ticks_of_stat
from nicbench.tuning.undo._processes import kill
from nicbench.tuning.undo.base import Undo


class DeleteNamespace(Undo):
    """Kill what still runs in the namespace and delete it; its interfaces go with it.

    Not while it still holds one of ``holding``: those were moved there, and come back before.
    """

    kind: Literal["delete_namespace"] = "delete_namespace"
    namespace: str
    holding: tuple[str, ...] = ()

    async def undo(self, host: Host) -> str | None:
        # What came into a lab by ssh lets go first, and tidies up: the namespace takes its processes along.
        await close_connections(through=self.namespace)
        path = f"{NAMESPACE_FOLDER}/{self.namespace}"
        if (await host.run(("test", "-e", path), check=False)).status != 0:
            return None
        if held := await self._find_held(host):
            raise HostError(
                f"namespace {self.namespace} still holds {', '.join(held)}, which did not come back", place=host.name
            )
        # A process inside would keep the namespace alive without a name.
        inside = await host.run(("ip", "netns", "pids", self.namespace), check=False)
        for pid in map(int, inside.stdout.split()):
            stat = await host.read_file(f"/proc/{pid}/stat")
            ticks = start_ticks_of_stat(stat) if stat else None
            if ticks is not None:
                await kill(host, pid, ticks)
        deleted = await host.run(("ip", "netns", "delete", self.namespace), check=False)
        if (await host.run(("test", "-e", path), check=False)).status == 0:
            raise HostError(f"namespace {self.namespace} cannot be deleted: {deleted.stderr.strip()}", place=host.name)
        return None

    async def _find_held(self, host: Host) -> list[str]:
        """Which of the interfaces that were moved there are still in the namespace."""
        shown = await host.run(("ip", "-j", "-n", self.namespace, "link", "show"), check=False)
        there = {str(link.get("ifname")) for link in json.loads(shown.stdout or "[]")} if shown.status == 0 else set()
        return [device for device in self.holding if device in there]
