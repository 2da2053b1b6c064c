"""Simultaneous multithreading: whether two threads share a core, and whether that can be switched."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import part_of

_FOLDER = "/sys/devices/system/cpu/smt/"


class _Smt(TypedDict):
    """Simultaneous multithreading."""

    active: bool | None
    control: str | None


def _tell_smt(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "smt")
    words = {"notsupported": "not supported", "notimplemented": "not implemented"}
    if found.get("active"):
        return f"on, {part_of(facts, 'cpu').get('threads_per_core') or 'several'} threads a core"
    return words.get(str(found["control"]), str(found["control"])) if found.get("control") else None


class Smt(Fact):
    """From ``/sys/devices/system/cpu/smt``."""

    kind = "smt"
    shape = _Smt
    of_machine = True
    subjects = (Subject("SMT", 140, _tell_smt),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        return parse_smt(await values_of(host, (f"{_FOLDER}active", f"{_FOLDER}control")))


def parse_smt(values: dict[str, str]) -> dict[str, Any]:
    """``control`` is on, off, forceoff, notsupported or notimplemented (sysfs-devices-system-cpu)."""
    active = values.get(f"{_FOLDER}active")
    return {"active": None if active is None else active == "1", "control": values.get(f"{_FOLDER}control")}
