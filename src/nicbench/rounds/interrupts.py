"""Interrupts moved from round to round: by the tuning item, with its undo, and back to where they were."""

from __future__ import annotations

from nicbench.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.model.cpu_list import cpu_list
from nicbench.model.tuning import Values
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.base import CannotSetError, Place
from nicbench.tuning.items.irq_affinity import IrqAffinity, IrqAffinityOptions


class Interrupts:
    """Remembers where those of each interface were at first."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._first: dict[tuple[str, str], Values] = {}

    async def steer(self, host: Host, device: str, cpus: tuple[int, ...] | None) -> None:
        """To these CPUs, in turn; None: back. NotReadyError where they cannot be moved, or did not."""
        key = (host.name, device)
        if cpus is None and key not in self._first:
            return
        item = IrqAffinity(IrqAffinityOptions(cpus=cpu_list(cpus) if cpus else "spread"))
        place = Place(host, device)
        try:
            now = await item.now(place)
            wanted = item.wanted(now) if cpus else self._first[key]
            self._first.setdefault(key, {name: value for name, value in now.items() if " queue " in name})
            asked = item.differing(wanted, now)
            if asked:
                await item.apply(self._changes, place, {name: now[name] for name in asked}, asked)
            wrong = item.differing(wanted, await item.now(place))
        except (CannotSetError, HostError) as error:
            raise _not_ready(place, str(error)) from error
        if wrong:
            raise _not_ready(place, f"they read {wrong} after they were set")


def _not_ready(place: Place, why: str) -> NotReadyError:
    return NotReadyError(
        f"the interrupts of the port cannot be moved: {why}",
        place=str(place),
        next_step="stop irqbalance (`tuning: {dut: {irqbalance: ..}}`), or write `interrupts: stay`",
    )
