"""The program that moves interrupts between CPUs as it thinks best, and so undoes every placement of them.

It is paused (SIGSTOP) and goes on afterwards as the same process, whoever started it and in whatever way. A paused
one does nothing, which is all that a test needs; one that is stopped and started again has forgotten what it knew.
"""

from __future__ import annotations

import asyncio

from nicbench.core.errors import HostError
from nicbench.core.plan import Values
from nicbench.hosts.owner import start_ticks_of_stat
from nicbench.tuning.items._files import SwitchOptions
from nicbench.tuning.items.base import Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_RUNNING, _PAUSED = "running", "paused"
_TRIES, _STEP_S = 100, 0.02


class Irqbalance(Item):
    """A value for each process, by its id and its start: one that was started since is not ours to pause or wake."""

    kind = "irqbalance"
    Options = SwitchOptions
    options: SwitchOptions
    scope = "machine"
    phase = Phase.SERVICE
    alone = "on"

    async def read(self, place: Place) -> Values:
        found = await place.host.run(("pgrep", "-x", "irqbalance"), check=False)
        values: Values = {}
        for pid in found.stdout.split():
            stat = await place.host.read_file(f"/proc/{pid}/stat")
            ticks = start_ticks_of_stat(stat) if stat else None
            if stat is not None and ticks is not None:
                values[f"process {pid}, start {ticks}"] = state_of_stat(stat)
        return values

    def target_values(self, now: Values) -> Values:
        if self.options.on and not now:
            raise CannotSetError("irqbalance does not run here; nicbench does not start it")
        return dict.fromkeys(now, _RUNNING if self.options.on else _PAUSED)

    async def write(self, place: Place, values: Values) -> None:
        for key, state in values.items():
            pid = key.split(",")[0].removeprefix("process ")
            await place.host.run(("sh", "-c", 'kill "$1" "$2"', "kill", "-STOP" if state == _PAUSED else "-CONT", pid))
            for _ in range(_TRIES):
                if (await self.read(place)).get(key) in (state, None):
                    break
                await asyncio.sleep(_STEP_S)
            else:
                raise HostError(f"irqbalance ({key}) is not {state}", place=place.host.name)


def state_of_stat(text: str) -> str:
    """Whether a process goes on, of /proc/PID/stat (proc(5)): T is stopped by a signal, t by a debugger."""
    return _PAUSED if text.rpartition(")")[2].split()[0] in ("T", "t") else _RUNNING
