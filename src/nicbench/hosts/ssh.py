"""Another machine, by ssh: keys and agent, host keys always checked, jump hosts; nothing there survives the controller.

It needs a shell and util-linux there, no Python. What ends its processes when nobody hears of nicbench any more is in
``_ssh_scripts``.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nicbench.hosts._channel_host import ChannelHost
from nicbench.hosts._ssh_options import SshOptions
from nicbench.hosts._ssh_pool import Machine, machine
from nicbench.hosts.base import Host, Presence

if TYPE_CHECKING:
    from nicbench.hosts._channel import Channel
    from nicbench.hosts._ssh_lease import LeasedConnection


class SshHost(ChannelHost):
    """Runs commands on another machine; all its commands share one connection (several, beyond eight at once)."""

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
        # Its end would be the sign to put the host's settings back: then it stays until the undo was done over it.
        if not self._machine.held:
            await self._machine.close()

    async def reconnect(self) -> None:
        await self._machine.reconnect(self.name)

    async def when_unheard(self, script: str) -> Presence:
        keeper = (await self._machine.with_room(self.name)).keeper
        self._machine.held = True
        await self.write_file(f"{keeper.folder}/guard", f"sh {shlex.quote(script)}\n")
        return Presence(keeper.pid, keeper.start_ticks, keeper.boot_id)

    @property
    def _machine(self) -> Machine:
        return machine(self.options)

    async def _start(
        self, command: Sequence[str], environment: Mapping[str, str] | None
    ) -> tuple[LeasedConnection, Channel, int]:
        from nicbench.hosts._ssh_lease import FullError  # as in _ssh_pool

        while True:
            connection = await self._machine.with_room(self.name)
            with contextlib.suppress(FullError):
                return connection, *await connection.start(command, environment)
