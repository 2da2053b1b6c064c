"""Where interrupts go that nobody placed."""

from __future__ import annotations

from typing import Annotated

from nicbench.core.described import Label, Unit
from nicbench.hosts.asking import text_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact


class InterruptDefaults(Fact):
    """From ``/proc/irq/default_smp_affinity``."""

    kind = "default_interrupt_cpu_mask"
    shape = Annotated[str, Label("Default interrupt CPU mask"), Unit.CPU_MASK]
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> str:
        return parse_mask(await text_of(host, "/proc/irq/default_smp_affinity"))


def parse_mask(text: str) -> str:
    """A mask of CPUs, hexadecimal in groups of eight digits; ValueError where it is none."""
    mask = text.strip()
    int(mask.replace(",", ""), 16)
    return mask
