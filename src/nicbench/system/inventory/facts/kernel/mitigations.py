"""Mitigations of processor vulnerabilities: they cost forwarding speed, so they are disclosed one by one."""

from __future__ import annotations

from nicbench.core.described import Facts, Subject, Write
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of

_FOLDER = "/sys/devices/system/cpu/vulnerabilities/"
_NOT_AFFECTED = "Not affected"


def _tell_mitigations(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "mitigations")
    if facts.get("mitigations") is None:
        return None
    open_ones = [name for name, state in found.items() if str(state).startswith("Vulnerable")]
    working = [name for name in found if name not in open_ones]
    return join_texts(
        ", ".join(working) if working else "none at work",
        f"vulnerable: {', '.join(open_ones)}" if open_ones else None,
        by="; ",
    )


class Mitigations(Fact):
    """From ``/sys/devices/system/cpu/vulnerabilities``."""

    kind = "mitigations"
    shape = dict[str, str]
    of_machine = True
    subjects = (Subject("Mitigations", 280, _tell_mitigations),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str]:
        return parse_vulnerabilities(await values_of(host, (f"{_FOLDER}*",)))


def parse_vulnerabilities(values: dict[str, str]) -> dict[str, str]:
    """Name and state, without those that this processor does not have."""
    return {path.removeprefix(_FOLDER): state for path, state in values.items() if state != _NOT_AFFECTED}
