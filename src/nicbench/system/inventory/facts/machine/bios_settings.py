"""BIOS settings, as the management controller tells them: what no file of the machine says."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of
from nicbench.system.redfish.answers import group_of
from nicbench.system.redfish.bios import bios_settings


class _Settings(TypedDict):
    """Names and values are the BIOS maker's; ``pending`` are set at the next start."""

    attributes: dict[str, Any]
    pending: dict[str, Any]


def _tell_bios_settings(facts: Facts, write: Write) -> str | None:
    """Those that change network results, by what they do; the others stand below the table."""
    found = part_of(facts, "bios_settings")
    groups: dict[str, list[str]] = {}
    others = 0
    for name, value in part_of(found, "attributes").items():
        group = group_of(str(name))
        if group is None:
            others += 1
        else:
            groups.setdefault(group, []).append(f"{name} {write('', value)}")
    waiting = [f"{name} {write('', value)}" for name, value in part_of(found, "pending").items()]
    return join_texts(
        *(f"{group}: {', '.join(told)}" for group, told in groups.items()),
        f"pending until a reboot: {', '.join(waiting)}" if waiting else None,
        f"{others} others, below" if others else None,
        by="; ",
    )


class BiosSettings(Fact):
    """From Redfish's ComputerSystem and Bios resources (DSP0268)."""

    kind = "bios_settings"
    shape = _Settings
    of_machine = True
    subjects = (Subject("BIOS settings", 30, _tell_bios_settings),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        if self.controller is None:
            raise UnknownFactError("the bench file names no management controller of it (`redfish`)")
        return await bios_settings(self.controller)
