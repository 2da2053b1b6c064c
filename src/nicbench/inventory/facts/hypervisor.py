"""Whether this is a virtual machine, whose, and what the firmware says of the machine."""

from __future__ import annotations

import json
from typing import Any

from nicbench.hosts.base import Host
from nicbench.inventory._asking import output_of, values_of
from nicbench.inventory.base import Fact, UnknownFactError

_DMI = "/sys/class/dmi/id/"
_FIRMWARE = ("sys_vendor", "product_name", "bios_vendor", "bios_version", "bios_date")


class Hypervisor(Fact):
    """From ``lscpu`` and the firmware's tables (DMI)."""

    kind = "hypervisor"

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        facts = parse_virtualization(await output_of(host, "lscpu", "-J"))
        try:
            dmi = await values_of(host, [_DMI + name for name in _FIRMWARE])
        except UnknownFactError:
            dmi = {}
        return facts | {name: dmi.get(_DMI + name) for name in _FIRMWARE}


def parse_virtualization(text: str) -> dict[str, Any]:
    """The processor's own flag tells of a hypervisor even where nobody names it."""
    fields: dict[str, str] = {}

    def walk(entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            fields[str(entry["field"]).rstrip(":")] = str(entry.get("data") or "")
            walk(entry.get("children", []))

    walk(json.loads(text)["lscpu"])
    virtual = "hypervisor" in fields["Flags"].split() if "Flags" in fields else None
    return {"virtual_machine": virtual, "vendor": fields.get("Hypervisor vendor") or None}
