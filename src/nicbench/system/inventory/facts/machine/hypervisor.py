"""Whether this is a virtual machine, and whose."""

from __future__ import annotations

import json
import re
from typing import Any, TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of
from nicbench.system.virtual_machine import is_virtual_machine

_X86 = re.compile(r"x86_64|i[3-6]86")


class _Hypervisor(TypedDict):
    """Whether there is one beneath, and whose it is."""

    virtual_machine: bool | None
    vendor: str | None


def _tell_hypervisor(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "hypervisor")
    if found.get("virtual_machine") is None:
        return None
    return join_texts("virtual machine", found.get("vendor")) if found["virtual_machine"] else "none: this is hardware"


class Hypervisor(Fact):
    """From ``lscpu``; where the processor has no flag for it, as on arm64, from ``systemd-detect-virt``."""

    kind = "hypervisor"
    shape = _Hypervisor
    of_machine = True
    subjects = (Subject("Hypervisor", 80, _tell_hypervisor),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = parse_virtualization(await output_of(host, "lscpu", "-J"))
        if found["virtual_machine"] is None:
            found["virtual_machine"] = await is_virtual_machine(host)
        return found


def parse_virtualization(text: str) -> dict[str, Any]:
    """An x86 processor's own flag tells of a hypervisor even where nobody names it; others have none."""
    fields: dict[str, str] = {}

    def walk(entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            fields[str(entry["field"]).rstrip(":")] = str(entry.get("data") or "")
            walk(entry.get("children", []))

    walk(json.loads(text)["lscpu"])
    vendor = fields.get("Hypervisor vendor") or None
    virtual = True if vendor is not None else None
    if "Flags" in fields and _X86.fullmatch(fields.get("Architecture", "")):
        virtual = "hypervisor" in fields["Flags"].split()
    return {"virtual_machine": virtual, "vendor": vendor}
