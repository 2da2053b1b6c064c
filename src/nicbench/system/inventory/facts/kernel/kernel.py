"""The kernel: release, version, command line."""

from __future__ import annotations

from typing import TypedDict

from nicbench.hosts.asking import output_of, text_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact


class _Kernel(TypedDict):
    """As ``uname`` says."""

    release: str
    version: str
    machine: str
    command_line: str


class Kernel(Fact):
    """From ``uname`` and ``/proc/cmdline``; the host's name is not a fact of the measurement."""

    kind = "kernel"
    shape = _Kernel
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str]:
        return {
            "release": (await output_of(host, "uname", "-r")).strip(),
            "version": (await output_of(host, "uname", "-v")).strip(),
            "machine": (await output_of(host, "uname", "-m")).strip(),
            "command_line": parse_command_line(await text_of(host, "/proc/cmdline")),
        }


def parse_command_line(text: str) -> str:
    """The kernel's own part: what follows `--` is for the first process (kernel-parameters.rst)."""
    return text.strip().partition(" -- ")[0]
