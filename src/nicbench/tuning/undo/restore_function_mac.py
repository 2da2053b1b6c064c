"""Puts back the MAC address of a virtual function that somebody else made, on its adapter's port (ip-link(8))."""

from __future__ import annotations

from typing import Literal

from nicbench.hosts.base import Host
from nicbench.system.adapters.links import parse_links, virtual_functions
from nicbench.tuning.undo.base import Undo


class RestoreFunctionMac(Undo):
    """Give a virtual function the address that it had, by its adapter's port, unless it is not ``asked`` any more."""

    kind: Literal["restore_function_mac"] = "restore_function_mac"
    device: str
    number: int
    mac: str
    asked: str

    async def undo(self, host: Host) -> str | None:
        """A sentence where somebody gave it another address since; a function that is gone needs none."""
        shown = await host.run(("ip", "-d", "-j", "link", "show", "dev", self.device), check=False)
        functions = [each for link in parse_links(shown.stdout or "[]") for each in virtual_functions(link)]
        now = next((each["mac"] for each in functions if each["number"] == self.number), None)
        if now is None or now == self.mac:
            return None
        if now != self.asked:
            return (
                f"{host.name}: virtual function {self.number} of {self.device} was left with the address {now}: "
                f"somebody changed it since we set {self.asked}; before the run it was {self.mac}"
            )
        await host.run(("ip", "link", "set", "dev", self.device, "vf", str(self.number), "mac", self.mac))
        return None
