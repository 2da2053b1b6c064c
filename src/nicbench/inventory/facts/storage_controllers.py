"""Storage controllers on the PCI bus: vendor, model, revision, driver."""

from __future__ import annotations

from typing import Any

from nicbench.hosts.base import Host
from nicbench.inventory._asking import output_of
from nicbench.inventory.base import Fact
from nicbench.inventory.facts._groups import grouped

_MASS_STORAGE = "01"  # PCI Code and ID Assignment Specification, base class 01h


class StorageControllers(Fact):
    """From ``lspci``."""

    kind = "storage_controllers"
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> list[dict[str, Any]]:
        return parse_controllers(await output_of(host, "lspci", "-Dvmmnnk"))


def parse_controllers(text: str) -> list[dict[str, Any]]:
    """Records of ``lspci -Dvmmnnk``: a field a line, an empty line between, numbers in brackets."""
    found = []
    for record in text.split("\n\n"):
        fields = {name: value.strip() for name, _, value in (line.partition(":") for line in record.splitlines())}
        kind, _, number = fields.get("Class", "").removesuffix("]").rpartition(" [")
        if number[:2] == _MASS_STORAGE:
            found.append(
                {
                    "vendor": _unnumbered(fields.get("Vendor")),
                    "model": _unnumbered(fields.get("Device")),
                    "sold_as": _unnumbered(fields.get("SDevice")),
                    "interface": kind,
                    "revision": fields.get("Rev"),
                    "driver": fields.get("Driver"),
                    "address": fields.get("Slot"),
                }
            )
    return grouped(found, each={"address": "addresses"})


def _unnumbered(name: str | None) -> str | None:
    """``MegaRAID SAS-3 3108 [Invader] [005d]`` without its identifier."""
    return name if name is None else name.rpartition(" [")[0] or name
