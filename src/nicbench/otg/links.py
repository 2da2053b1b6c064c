"""The links of a session's ports, which clients take down and up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nicbench.core.errors import HostError
from nicbench.otg.flows import ServedPort
from nicbench.otg.model import NOT_IMPLEMENTED, OtgError
from nicbench.stages.served import Bed
from nicbench.tuning.undo.network import SetLinkUp

PATH: Final = "control_state.port.link.port_names"
DRIVER: Final = "net_af_packet"
"""Others receive nothing any more when the link of their interface is there again."""


class Links:
    """The links that are down at a client's wish. They come up again with another configuration, and at the end."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._noted: set[int] = set()
        self.down: dict[int, str] = {}
        """The interfaces that were taken down, by the numbers of their ports."""

    async def control(self, action: str, ports: Mapping[str, ServedPort], names: Sequence[str]) -> None:
        """Takes the links of the ports of these names ``down`` or ``up``; without names, of all ``ports``.

        OtgError for a name that is not known, or a port whose link is not set.
        """
        wanted = []
        for index, name in enumerate(names or list(ports)):
            if name not in ports:
                raise OtgError([f"{PATH}[{index}]: no port of the configuration is called {name[:80]!r}"])
            number = ports[name].number
            device = self._bed.testbed.tester_ports[number].device
            if device is None or self._bed.drivers[number] != DRIVER:
                why = f"keeps its link: it is set of interfaces of the kernel with `driver: {DRIVER}`"
                raise OtgError([f"{PATH}[{index}]: port {name!r} {why}"], code=NOT_IMPLEMENTED)
            wanted.append((number, device))
        for number, device in wanted:
            await (self._take_down(number, device) if action == "down" else self._bring_up(number))

    async def bring_up(self) -> None:
        """Brings all links up that were taken down."""
        for number in list(self.down):
            await self._bring_up(number)

    async def _take_down(self, number: int, device: str) -> None:
        if number not in self.down:
            if number not in self._noted:  # one undo is enough, however often a link goes down
                await self._bed.changes.make(self._bed.testbed.tester, SetLinkUp(device=device))
                self._noted.add(number)
            await self._set(device, "down")
            self.down[number] = device

    async def _bring_up(self, number: int) -> None:
        if number in self.down:
            await self._set(self.down[number], "up")
            del self.down[number]

    async def _set(self, device: str, state: str) -> None:
        done = await self._bed.testbed.tester.run(("ip", "link", "set", "dev", device, state))
        if done.status:
            raise HostError(f"the link of {device} cannot be set {state}: {done.reason}", next_step="try again")
