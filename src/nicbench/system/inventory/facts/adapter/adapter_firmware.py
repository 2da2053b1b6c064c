"""Settings in the firmware of NVIDIA (Mellanox) adapters: those that are not the default, and those that wait."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.adapters.device_firmware import parse_mlxconfig, pending
from nicbench.system.adapters.pci import PATTERNS, parse_pci
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.facts._per_interface import ask_interfaces

_VENDOR = "15b3"  # NVIDIA (Mellanox Technologies) in the PCI ID database


class _Settings(TypedDict):
    """Of one adapter: names and values are its firmware's."""

    not_default: dict[str, str]
    after_the_next_reset: dict[str, str]


class AdapterFirmware(Fact):
    """From ``mlxconfig -d ADDRESS -e query``, for each adapter of that vendor on the host's bus."""

    kind = "adapter_firmware"
    shape = dict[str, _Settings]
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        pci = parse_pci(await output_of(host, "sh", "-c", f'grep -sH "" {" ".join(PATTERNS)}; true'))
        # The first function of a card answers for all of it.
        ours = tuple(
            address for address, facts in pci.items() if str(facts["id"]).startswith(_VENDOR) and address.endswith(".0")
        )
        if not ours:
            raise UnknownFactError("no adapter whose firmware has settings that a tool here reads")

        async def ask(address: str) -> Any:
            settings = parse_mlxconfig(await output_of(host, "mlxconfig", "-d", address, "-e", "query"))
            changed = {
                name: values["current"]
                for name, values in settings.items()
                if "current" in values and values["current"] != values.get("default")
            }
            return {"not_default": changed, "after_the_next_reset": pending(settings)}

        return await ask_interfaces(ours, ask)
