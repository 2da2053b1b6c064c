"""Whether irqbalance runs: it moves interrupts between CPUs in the middle of a trial."""

from __future__ import annotations

from nicbench.core.described import Facts, Subject, Write
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact


def _tell_interrupts(facts: Facts, write: Write) -> str | None:
    running = facts.get("irqbalance_running")
    return None if running is None else "irqbalance runs" if running else "irqbalance does not run"


class Irqbalance(Fact):
    """From the names of the running processes."""

    kind = "irqbalance_running"
    shape = bool
    of_machine = True
    subjects = (Subject("Interrupts", 170, _tell_interrupts),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> bool:
        # A process may end while the shell reads: its file is then missing, which is no failure.
        return is_running(await output_of(host, "sh", "-c", "cat /proc/[0-9]*/comm 2>/dev/null; true"), "irqbalance")


def is_running(names: str, name: str) -> bool:
    """Whether a process of this name is among the lines."""
    return name in names.split("\n")
