"""The MAC address of a virtual function that somebody else made, put back on its adapter's port (ip-link(8))."""

from __future__ import annotations

from nicbench.adapters.links import parse_links, virtual_functions
from nicbench.hosts.base import Host
from nicbench.tuning.undo import RestoreFunctionMac


async def restore_function_mac(host: Host, undo: RestoreFunctionMac) -> str | None:
    """A sentence where somebody gave it another since; a function that is gone needs none."""
    shown = await host.run(("ip", "-d", "-j", "link", "show", "dev", undo.device), check=False)
    functions = [each for link in parse_links(shown.stdout or "[]") for each in virtual_functions(link)]
    now = next((each["mac"] for each in functions if each["number"] == undo.number), None)
    if now is None or now == undo.mac:
        return None
    if now != undo.asked:
        return (
            f"{host.name}: virtual function {undo.number} of {undo.device} was left with the address {now}: somebody "
            f"changed it since we set {undo.asked}; before the run it was {undo.mac}"
        )
    await host.run(("ip", "link", "set", "dev", undo.device, "vf", str(undo.number), "mac", undo.mac))
    return None
