"""The kernel: release, version, command line."""

from __future__ import annotations

from typing import TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.hosts.asking import output_of, text_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of


class _Kernel(TypedDict):
    """As ``uname`` says."""

    release: str
    version: str
    machine: str
    command_line: str


def _tell_kernel(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "kernel")
    return join_texts(found.get("release"), found.get("version"))


def _tell_command_line(facts: Facts, write: Write) -> str | None:
    return part_of(facts, "kernel").get("command_line")


class Kernel(Fact):
    """From ``uname`` and ``/proc/cmdline``; the host's name is not a fact of the measurement."""

    kind = "kernel"
    shape = _Kernel
    of_machine = True
    subjects = (
        Subject("Kernel", 50, _tell_kernel),
        Subject("Kernel command line", 60, _tell_command_line),
    )

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
