"""The longest time that any CPU may take to wake up, asked of the kernel as long as the test runs.

Source: Documentation/power/pm_qos_interface.rst: /dev/cpu_dma_latency keeps a request for as long as a process holds
the file open. So a process of ours holds it; it ends with us, by SIGKILL too, and the request with it. The least of all
requests holds: where somebody asks for less already, nothing is asked.
"""

from __future__ import annotations

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError
from nicbench.core.plan import Values
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.base import Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_DEVICE = "/dev/cpu_dma_latency"
_HELD = "held"
_TIMEOUT_S = 10.0
# Eight hexadecimal digits, so that the kernel does not take them for the four bytes of a number. Ends with its stdin.
_HOLD = f'exec 3>{_DEVICE} && printf %s "$1" >&3 && echo {_HELD} && read -r _'


class WakeupLatencyOptions(Frozen):
    """``wakeup_latency: 0``: CPUs do not sleep at all, they poll."""

    us: int = Field(ge=0, le=1_000_000)


class WakeupLatency(Item):
    """What all requests together come to, in microseconds."""

    kind = "wakeup_latency"
    Options = WakeupLatencyOptions
    options: WakeupLatencyOptions
    scope = "machine"
    phase = Phase.MACHINE
    alone = "us"

    async def read(self, place: Place) -> Values:
        done = await place.host.run(("od", "-An", "-td4", "-N4", _DEVICE), check=False)
        if done.status != 0 or not done.stdout.strip():
            reason = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
            raise CannotSetError(f"{_DEVICE} cannot be read: {reason}")
        return {"us": int(done.stdout)}

    def target_values(self, now: Values) -> Values:
        return {"us": min(self.options.us, int(str(now["us"])))}

    async def apply(self, changes: Changes, place: Place, before: Values, asked: Values) -> None:
        holder = await place.host.start(("sh", "-c", _HOLD, "hold", f"{int(str(asked['us'])):08x}"))

        async def end() -> None:
            await holder.close_stdin()
            await holder.wait(_TIMEOUT_S)

        changes.before_undoing(end)
        if await holder.read_line(_TIMEOUT_S) != _HELD:
            raise HostError(f"{_DEVICE} cannot be held: {holder.stderr_tail()}", place=place.host.name)
