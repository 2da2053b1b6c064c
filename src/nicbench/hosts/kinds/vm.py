"""A virtual machine (`vm`): a guest of QEMU on this machine, reached over a serial port and not over a network.

Once booted (``nicbench.testbed.vm.booting``) it is a machine like any other, whose agent runs commands. Everything in
it is discarded with it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nicbench.core.errors import HostError, NicbenchError
from nicbench.hosts.base import Completed, Host
from nicbench.hosts.channel import Channel, ChannelHost, Connection
from nicbench.hosts.options import VmOptions
from nicbench.hosts.owner import start_ticks

if TYPE_CHECKING:
    from nicbench.hosts.agent import AgentConnection


KNOWN_BY: Final = "qemu.pid"
CHANNEL: Final = "channel"
_CONSOLE: Final = "console.log"
LOG: Final = "qemu.log"
_TELLING: Final = ("Kernel panic", "Out of memory", "BUG:", "nicbench: no ", "cannot be loaded")
_WELL: Final = "nicbench: ready"
_ANSWER_S: Final = 60.0
_DYING_TRIES: Final = 60
_DYING_STEP_S: Final = 0.05
"""With the tries above three seconds: QEMU frees gigabytes of memory before it is gone."""
_STATEMENT: Final = (
    "What runs in a virtual machine of the lab shows what is done and in which order, not how fast: its cards are "
    "emulated, and so, without KVM, are its processors."
)


class VmHost(ChannelHost):
    """A virtual machine. ``folder`` holds the running guest's sockets; None before it is booted."""

    kind = "vm"
    Options = VmOptions
    made_here = True

    def __init__(
        self,
        options: VmOptions,
        name: str | None = None,
        folder: str | None = None,
        made_of: Mapping[str, Any] | None = None,
    ) -> None:
        self.options = options
        self.name = name or self.kind
        self.folder = folder
        self._made_of = made_of or {}

    @classmethod
    def of_spec(cls, spec: Mapping[str, Any], name: str | None, make: Callable[[Mapping[str, Any]], Host]) -> VmHost:
        given = {key: value for key, value in spec.items() if key not in ("kind", "folder", "guest")}
        return cls(VmOptions.model_validate(given), name, spec.get("folder"))

    def spec(self) -> dict[str, Any]:
        chosen = self.options.model_dump(mode="json", exclude_defaults=True)
        return {"kind": self.kind, **chosen, **({} if self.folder is None else {"folder": self.folder})}

    def statements(self) -> tuple[str, ...]:
        cards = self.options.cards.values()
        is_real = bool(cards) and all(card.pci is not None for card in cards)
        return () if is_real and self._made_of.get("accelerator") == "kvm" else (_STATEMENT,)

    def disclosure(self) -> dict[str, Any]:
        return dict(self._made_of)

    async def is_gone(self) -> bool:
        return self._has_ended()

    async def answers(self, timeout_s: float) -> None:
        """Waits until the guest's agent answers. HostError with the end of its console output where it does not."""
        async with self._report_death():
            await self._connection(timeout_s)

    async def run(
        self,
        command: Sequence[str],
        *,
        input_text: str | None = None,
        timeout_s: float = 30.0,
        check: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> Completed:
        async with self._report_death():
            return await super().run(
                command, input_text=input_text, timeout_s=timeout_s, check=check, environment=environment
            )

    async def read_file(self, path: str) -> str | None:
        async with self._report_death():
            content = await (await self._connection()).read_file(path)
        return None if content is None else content.decode(errors="replace")

    async def write_file(self, path: str, text: str) -> None:
        async with self._report_death():
            await (await self._connection()).write_file(path, text.encode())

    async def put(self, local: Path, remote: str, mode: int = 0o644) -> None:
        async with self._report_death():
            await super().put(local, remote, mode)

    async def get(self, remote: str, local: Path) -> None:
        async with self._report_death():
            await super().get(remote, local)

    async def close(self) -> None:
        if self.folder is not None:
            from nicbench.hosts.agent import port

            await port(self._path).close()

    async def reconnect(self) -> None:
        if self.folder is not None and not self._has_ended():
            from nicbench.hosts.agent import port

            await port(self._path).reopen()

    async def _start(
        self, command: Sequence[str], environment: Mapping[str, str] | None
    ) -> tuple[Connection, Channel, int]:
        connection = await self._connection()
        return connection, *await connection.start(command, environment)

    @property
    def _path(self) -> str:
        return f"{self.folder}/{CHANNEL}"

    async def _connection(self, timeout_s: float = _ANSWER_S) -> AgentConnection:
        if self.folder is None:
            raise HostError("the virtual machine is not started", place=self.name)
        from nicbench.hosts.agent import port  # here: every command loads the module of every kind of host

        return await port(self._path).connection(self.name, self._has_ended, timeout_s)

    def _has_ended(self) -> bool:
        """Whether its QEMU has ended, by pid and start time."""
        try:
            pid, started = Path(str(self.folder), KNOWN_BY).read_text(encoding="utf-8").split()
            return start_ticks(int(pid)) != int(started)
        except (OSError, ValueError):
            return True

    async def _has_died(self, error: NicbenchError) -> bool:
        """Whether the guest has died. Its port is closed first, and QEMU is gone a moment later."""
        from nicbench.hosts.agent import PortLostError

        for _ in range(_DYING_TRIES if isinstance(error, PortLostError) else 0):
            if self._has_ended():
                break
            await asyncio.sleep(_DYING_STEP_S)
        return self._has_ended()

    @contextlib.asynccontextmanager
    async def _report_death(self) -> AsyncIterator[None]:
        """Turns the error of a connection that was lost because the guest died into one that says so."""
        try:
            yield
        except NicbenchError as error:
            if self.folder is None or not await self._has_died(error):
                raise
            raise HostError(
                f"the virtual machine has died{last_words(self.folder)}",
                place=self.name,
                next_step="go on with `nicbench resume RUN`: it boots another, and what was measured is kept",
            ) from error


def last_words(folder: str | None) -> str:
    """Quotes the end of the guest's console output, or of QEMU's log where that is empty, as the end of a sentence."""
    for name, who in ((_CONSOLE, "its console"), (LOG, "QEMU")):
        try:
            text = Path(str(folder), name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(_WELL)]
        telling = [line for line in lines if any(word in line for word in _TELLING)] or lines
        if telling:
            return f"; {who} says: {' / '.join(telling[-3:])[-600:]}"
    return ""
