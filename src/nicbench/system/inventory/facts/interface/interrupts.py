"""Interrupts of each test interface: number, queue, and the CPUs that may take them and that do."""

from __future__ import annotations

from shlex import quote
from typing import Any, TypedDict

from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import text_of, values_of
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.system.adapters.interrupts import interrupts_of_device, numbers_of, parse_interrupts
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.facts._per_interface import ask_interfaces


class _Interrupt(TypedDict):
    """One interrupt."""

    number: int
    name: str
    queue: int | None
    cpus_allowed: str | None
    cpus: str | None


class Interrupts(Fact):
    """From ``device/msi_irqs``, ``/proc/interrupts`` and ``/proc/irq``."""

    kind = "interrupts"
    shape = dict[str, list[_Interrupt]]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        names = parse_interrupts(await text_of(host, "/proc/interrupts"))

        async def ask(device: str) -> Any:
            base = f"/sys/class/net/{quote(device)}/device"
            try:
                # A virtio device sits on its PCI function.
                msi = numbers_of(await values_of(host, (f"{base}/msi_irqs/*", f"{base}/../msi_irqs/*")))
            except UnknownFactError:
                msi = []
            ours = interrupts_of_device(device, None, msi, names)
            if not ours:
                raise UnknownFactError("no interrupts of its own")
            files = [f"/proc/irq/{irq.number}/{kind}" for irq in ours for kind in _FILES]
            cpus = await values_of(outermost(host), files)
            return [
                {
                    "number": irq.number,
                    "name": irq.name,
                    "queue": irq.queue,
                    **{name: cpus.get(f"/proc/irq/{irq.number}/{kind}") for kind, name in _FILES.items()},
                }
                for irq in ours
            ]

        return await ask_interfaces(devices, ask)


_FILES = {"smp_affinity_list": "cpus_allowed", "effective_affinity_list": "cpus"}
