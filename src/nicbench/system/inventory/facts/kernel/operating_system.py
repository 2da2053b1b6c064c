"""The distribution, as it names itself."""

from __future__ import annotations

from nicbench.core.described import Facts, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import text_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact


def _tell_operating_system(facts: Facts, write: Write) -> str | None:
    return str(facts["operating_system"]) if facts.get("operating_system") else None


class OperatingSystem(Fact):
    """From ``/etc/os-release``."""

    kind = "operating_system"
    shape = str
    of_machine = True
    subjects = (Subject("Operating system", 40, _tell_operating_system),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> str:
        name = parse_os_release(await text_of(host, "/etc/os-release"))
        if name is None:
            raise UnknownFactError("/etc/os-release has no PRETTY_NAME")
        return name


def parse_os_release(text: str) -> str | None:
    """PRETTY_NAME, unquoted (os-release(5))."""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip().strip("\"'")
    return None
