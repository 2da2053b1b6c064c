"""Where interrupts go that nobody placed."""

from __future__ import annotations

from nicbench.hosts.base import Host
from nicbench.inventory._asking import text_of
from nicbench.inventory.base import Fact


class InterruptDefaults(Fact):
    """From ``/proc/irq/default_smp_affinity``."""

    kind = "default_interrupt_cpu_mask"
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> str:
        return parse_mask(await text_of(host, "/proc/irq/default_smp_affinity"))


def parse_mask(text: str) -> str:
    """A mask of CPUs, hexadecimal in groups of eight digits; ValueError where it is none."""
    mask = text.strip()
    int(mask.replace(",", ""), 16)
    return mask
