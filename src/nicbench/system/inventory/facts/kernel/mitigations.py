"""Mitigations of processor vulnerabilities: they cost forwarding speed, so they are disclosed one by one."""

from __future__ import annotations

from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact

_FOLDER = "/sys/devices/system/cpu/vulnerabilities/"
_NOT_AFFECTED = "Not affected"


class Mitigations(Fact):
    """From ``/sys/devices/system/cpu/vulnerabilities``."""

    kind = "mitigations"
    shape = dict[str, str]
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str]:
        return parse_vulnerabilities(await values_of(host, (f"{_FOLDER}*",)))


def parse_vulnerabilities(values: dict[str, str]) -> dict[str, str]:
    """Name and state, without those that this processor does not have."""
    return {path.removeprefix(_FOLDER): state for path, state in values.items() if state != _NOT_AFFECTED}
