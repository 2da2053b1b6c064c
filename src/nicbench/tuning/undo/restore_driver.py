"""Gives a PCI device back to the driver that it had."""

from __future__ import annotations

from typing import Literal

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.tuning.drivers import bound_driver, folder_of, interface_of, set_driver
from nicbench.tuning.undo.base import Undo


class RestoreDriver(Undo):
    """Give a PCI device back to the ``driver`` that it had ("": none), unless another than ``asked`` has it by now.

    Its interface is then called ``device`` again, and is up if it was.
    """

    kind: Literal["restore_driver"] = "restore_driver"
    address: str
    driver: str
    override: str
    asked: str
    device: str | None = None
    up: bool = False

    async def undo(self, host: Host) -> str | None:
        """A sentence where somebody gave it to another driver since; a device that is gone needs nothing."""
        if (await host.run(("test", "-e", folder_of(self.address)), check=False)).status != 0:
            return None
        now = await bound_driver(host, self.address)
        if now not in (self.asked, self.driver, ""):
            return (
                f"{host.name}: the PCI device {self.address} was left with the driver {now}: somebody changed it since "
                f"we set {self.asked}; before the run it was {self.driver or 'none'}"
            )
        await set_driver(host, self.address, self.driver, override=self.override)
        if self.device is not None:
            await self._restore_interface(host, self.device)
        return None

    async def _restore_interface(self, host: Host, device: str) -> None:
        found = await interface_of(host, self.address)
        if found is None:
            message = f"the card {self.address} should have the interface {device} again, and has none"
            raise HostError(message, place=host.name)
        if found != device:
            await host.run(("ip", "link", "set", "dev", found, "down"))
            await host.run(("ip", "link", "set", "dev", found, "name", device))
        if self.up:
            await host.run(("ip", "link", "set", "dev", device, "up"))
