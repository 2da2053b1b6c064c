"""Releases ports of a TRex server that a run held which was killed."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from nicbench.engine.trex import TrexClient, TrexError
from nicbench.hosts.base import Host
from nicbench.tuning.undo.base import Undo


class FreeTrexPorts(Undo):
    """Take ports from ``owner``, the name under which one run held them, and release them, not promiscuous.

    Ports that others hold by now are left alone. A server that does not answer holds none that could be freed.
    """

    kind: Literal["free_trex_ports"] = "free_trex_ports"
    client: str
    python: str
    server: str
    sync_port: int
    async_port: int
    owner: str
    ports: tuple[int, ...]
    promiscuous: tuple[int, ...]
    """Of these ports those that were not promiscuous before."""

    outlasts_reboot: ClassVar[bool] = True
    can_be_scripted: ClassVar[bool] = False

    async def undo(self, host: Host) -> str | None:
        place = f"TRex at {self.server}:{self.sync_port}"
        client = await TrexClient.start(host, self.python, self.client, place)
        try:
            # Under a name of its own: TRex gives a port to whoever has its owner's name without asking.
            address: dict[str, Any] = {
                "server": self.server,
                "sync_port": self.sync_port,
                "async_port": self.async_port,
            }
            await client.ask("connect", **address, owner="nicbench restore")
            told = await client.ask("free", ports=self.ports, promiscuous=self.promiscuous, owner=self.owner)
        except TrexError as error:
            if error.kind != "unreachable":
                raise
            return f"{place} does not answer: if it runs, {self.owner} still holds its ports; `force: true` takes them"
        finally:
            await client.close()
        return f"{place}: ports that {', '.join(told['others'])} took since were left alone" if told["others"] else None

    def describe(self) -> str:
        return f"ports {', '.join(map(str, self.ports))} of TRex at {self.server}:{self.sync_port}"
