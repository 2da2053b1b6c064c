"""The vendor's RDMA stack that takes the place of the kernel's, where one is installed."""

from __future__ import annotations

import re

from nicbench.core.described import Facts, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact

# MLNX_OFED_LINUX-5.8-1.1.2.1: and, since its drivers are part of DOCA, OFED-internal-24.04-0.6.6:
_VERSION = re.compile(r"^\S*OFED\S*-\d[\w.-]{0,60}(?=:?\s*$)", re.MULTILINE)


def _tell_ofed(facts: Facts, write: Write) -> str | None:
    return str(facts["ofed"]) if facts.get("ofed") else None


class Ofed(Fact):
    """From ``ofed_info -s``."""

    kind = "ofed"
    shape = str
    of_machine = True
    subjects = (Subject("OFED", 231, _tell_ofed, is_everywhere=False),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> str:
        version = parse_ofed(await output_of(host, "ofed_info", "-s"))
        if version is None:
            raise UnknownFactError("ofed_info names no version")
        return version


def parse_ofed(text: str) -> str | None:
    """Name and version of the stack, without the colon after it."""
    found = _VERSION.search(text)
    return found[0] if found else None
