"""Firmware versions and parameters of adapters as devlink knows them."""

from __future__ import annotations

from typing import Any

from nicbench.core.described import Facts, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.adapters.device_firmware import parse_info, parse_parameters
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of

# Documentation/networking/devlink/devlink-info.rst: of all, of management, of RoCE, of the package, of its settings.
_TOLD = ("fw.version", "fw", "fw.mgmt", "fw.roce", "fw.bundle_id", "fw.psid", "fw.psid.api")


def _tell_versions(facts: Facts, handle: str) -> str | None:
    adapter = part_of(part_of(facts, "devlink"), handle)
    running, stored = part_of(adapter, "running"), part_of(adapter, "stored")
    known = {**part_of(adapter, "fixed"), **running}
    names = [name for name in _TOLD if known.get(name) and not (name == "fw" and known.get("fw.version"))]
    waits = [name for name in names if name in running and stored.get(name, running[name]) != running[name]]
    said = join_texts(
        *(f"{name} {known[name]}" + (f" (after a reset {stored[name]})" if name in waits else "") for name in names)
    )
    return join_texts(handle.partition("/")[2] or handle, said, by=": ") if said else None


def _tell_firmware(facts: Facts, write: Write) -> str | None:
    return join_texts(*(_tell_versions(facts, handle) for handle in part_of(facts, "devlink")), by="; ")


class Devlink(Fact):
    """From ``devlink -j dev info`` and ``dev param show``."""

    kind = "devlink"
    shape = dict[str, dict[str, Any]]
    of_machine = True
    subjects = (Subject("Adapter firmware", 233, _tell_firmware, is_everywhere=False),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = parse_info(await output_of(host, "devlink", "-j", "dev", "info"))
        if not found:
            raise UnknownFactError("devlink knows no adapter")
        try:
            parameters = parse_parameters(await output_of(host, "devlink", "-j", "dev", "param", "show"))
        except UnknownFactError:
            parameters = {}
        return {handle: {**facts, "parameters": parameters.get(handle)} for handle, facts in found.items()}
