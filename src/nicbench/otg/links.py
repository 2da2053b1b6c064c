"""The links of a session's ports, which clients take down and up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nicbench.otg.flows import ServedPort
from nicbench.otg.model import NOT_IMPLEMENTED, OtgError
from nicbench.stages.served import Bed
from nicbench.tuning.undo.network import SetLinkUp

PATH: Final = "control_state.port.link.port_names"


class Links:
    """Takes links down and up for clients. Links that are down come up with another configuration, and at the end."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._noted: set[int] = set()
        self._down: set[int] = set()

    async def control(self, state: str, ports: Mapping[str, ServedPort], names: Sequence[str]) -> None:
        """Takes the links of the ports of these names ``down`` or ``up``; without names, of all ``ports``.

        OtgError for a name that is not known, or a port that is not an interface of the kernel.
        """
        numbers = []
        for index, name in enumerate(names or list(ports)):
            if name not in ports:
                raise OtgError([f"{PATH}[{index}]: no port of the configuration is called {name[:80]!r}"])
            number = ports[name].number
            if self._bed.testbed.tester_ports[number].device is None:
                why = "is not an interface of the kernel, whose link is set: use another driver or lab"
                raise OtgError([f"{PATH}[{index}]: port {name!r} {why}"], code=NOT_IMPLEMENTED)
            numbers.append(number)
        for number in numbers:
            await self._set(number, state)

    async def bring_up(self) -> None:
        """Brings all links up that were taken down."""
        for number in sorted(self._down):
            await self._set(number, "up")

    async def _set(self, number: int, state: str) -> None:
        port = self._bed.testbed.tester_ports[number]
        host, device = self._bed.testbed.host_of(port), str(port.device)
        if number not in self._noted:  # one undo is enough, however often a link goes down
            await self._bed.changes.make(host, SetLinkUp(device=device))
            self._noted.add(number)
        await host.run(("ip", "link", "set", "dev", device, state))
        (self._down.add if state == "down" else self._down.discard)(number)
