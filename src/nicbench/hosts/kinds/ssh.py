"""Another machine, reached by ssh with keys or an agent, over jump hosts; host keys are always checked.

The machine needs a shell, util-linux and coreutils, no Python. Nothing there survives the controller: ``ssh_lease``
has the scripts that end its processes when contact is lost.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nicbench.hosts.base import Host, Presence
from nicbench.hosts.channel import ChannelHost
from nicbench.hosts.options import SshOptions
from nicbench.hosts.ssh_pool import Machine, machine

if TYPE_CHECKING:
    from nicbench.hosts.channel import Channel
    from nicbench.hosts.ssh_lease import LeasedConnection


class SshHost(ChannelHost):
    """Runs commands on another machine. They share one connection; beyond eight at once, several."""

    kind = "ssh"
    Options = SshOptions

    def __init__(self, options: SshOptions, name: str | None = None) -> None:
        self.options = options
        self.name = name or options.address

    @classmethod
    def of_spec(cls, spec: Mapping[str, Any], name: str | None, make: Callable[[Mapping[str, Any]], Host]) -> SshHost:
        return cls(SshOptions.model_validate({key: value for key, value in spec.items() if key != "kind"}), name)

    def spec(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.options.model_dump(mode="json", exclude_defaults=True)}

    async def close(self) -> None:
        # A held connection stays until the undo was done over it: its end would make the host restore its settings.
        # So does one with a lease until that is given back: between two turns another run would take the host.
        if not self._machine.held and not self._machine.leases:
            await self._machine.close()

    async def reconnect(self) -> None:
        await self._machine.reconnect(self.name)

    async def when_unheard(self, script: str) -> Presence:
        keeper = (await self._machine.with_room(self.name)).keeper
        self._machine.held = True
        presence = Presence(keeper.pid, keeper.start_ticks, keeper.boot_id)
        await self.write_file(f"{keeper.folder}/guard", f"sh {shlex.quote(script)} {presence.name}\n")
        return presence

    @property
    def _machine(self) -> Machine:
        return machine(self.options)

    async def _start(
        self, command: Sequence[str], environment: Mapping[str, str] | None
    ) -> tuple[LeasedConnection, Channel, int]:
        from nicbench.hosts.ssh_lease import FullError  # loads asyncssh, see ssh_pool

        while True:
            connection = await self._machine.with_room(self.name)
            with contextlib.suppress(FullError):
                return connection, *await connection.start(command, environment)
