"""Simultaneous multithreading: whether two threads share a core, and whether that can be switched."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact

_FOLDER = "/sys/devices/system/cpu/smt/"


class _Smt(TypedDict):
    """Simultaneous multithreading."""

    active: bool | None
    control: str | None


class Smt(Fact):
    """From ``/sys/devices/system/cpu/smt``."""

    kind = "smt"
    shape = _Smt
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        return parse_smt(await values_of(host, (f"{_FOLDER}active", f"{_FOLDER}control")))


def parse_smt(values: dict[str, str]) -> dict[str, Any]:
    """``control`` is on, off, forceoff, notsupported or notimplemented (sysfs-devices-system-cpu)."""
    active = values.get(f"{_FOLDER}active")
    return {"active": None if active is None else active == "1", "control": values.get(f"{_FOLDER}control")}
