"""Which CPUs take an adapter's interrupts: ``/proc/irq/N/smp_affinity_list`` (core-api/irq/irq-affinity.rst)."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from nicbench.core.errors import HostError, UnknownFactError
from nicbench.core.machine import parse_cpu_list
from nicbench.core.plan import Values
from nicbench.hosts.asking import text_of, values_of
from nicbench.hosts.kinds.netns import outermost
from nicbench.system.adapters.interrupts import interrupts_of_device, numbers_of, parse_interrupts
from nicbench.tuning.items._adapter import answer_of, assign_in_turn, device_of
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_ONLINE = "/sys/devices/system/cpu/online"
_KNOWN = {"local": "cpus_local", "far": "cpus_far", "spread": "cpus_online"}
Where = Annotated[str, StringConstraints(pattern=r"^(local|far|spread|\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*)$")]


class IrqAffinityOptions(DeviceOptions):
    """``local``: CPUs of the adapter's NUMA node; ``far``: those of the others; ``spread``: all; or a list, as ``2-5``.

    Each queue gets one CPU, in turn; interrupts of several queues of a number the same.
    """

    cpus: Where


class IrqAffinity(Item):
    """Interrupts that are of no queue (link changes) stay where they are."""

    kind = "irq_affinity"
    Options = IrqAffinityOptions
    options: IrqAffinityOptions
    scope = "device"
    phase = Phase.STEERING
    alone = "cpus"

    async def read(self, place: Place) -> Values:
        device = device_of(place)
        names = await answer_of(place, parse_interrupts, "cat", "/proc/interrupts")
        base = f"/sys/class/net/{device}/device"
        ours = [
            irq for irq in interrupts_of_device(device, None, await _msi(place, base), names) if irq.queue is not None
        ]
        if not ours:
            raise CannotSetError("it has no interrupts of queues")
        machine = outermost(place.host)
        paths = {f"/proc/irq/{irq.number}/smp_affinity_list": f"{irq.number} queue {irq.queue}" for irq in ours}
        try:
            found = await values_of(machine, paths)
            online = (await text_of(machine, _ONLINE)).strip()
        except UnknownFactError as error:
            raise CannotSetError(str(error)) from error
        local = await _local(place, base)
        far = sorted(set(parse_cpu_list(online)) - set(parse_cpu_list(local))) if local else []
        known: Values = {"cpus_online": online, "cpus_local": local, "cpus_far": ",".join(map(str, far)) or None}
        return {**known, **{paths[path]: value for path, value in found.items() if path in paths}}

    def target_values(self, now: Values) -> Values:
        where = self.options.cpus
        chosen = now[_KNOWN[where]] if where in _KNOWN else where
        if not isinstance(chosen, str) or not chosen:
            raise CannotSetError(f"it has no CPUs that are {where}: the machine has one NUMA node, or does not tell")
        cpus, online = parse_cpu_list(chosen), parse_cpu_list(str(now["cpus_online"]))
        if lacking := [cpu for cpu in cpus if cpu not in online]:
            raise CannotSetError(f"the CPUs {', '.join(map(str, lacking))} are not online")
        queues = sorted({_queue(key) for key in now if " queue " in key})
        cpu_of_queue = dict(zip(queues, assign_in_turn(cpus, len(queues)), strict=True))
        return {key: str(cpu_of_queue[_queue(key)]) for key in now if " queue " in key}

    async def write(self, place: Place, values: Values) -> None:
        machine = outermost(place.host)
        for key, cpus in values.items():
            number = key.partition(" ")[0]
            try:
                await machine.write_file(f"/proc/irq/{number}/smp_affinity_list", str(cpus))
            except HostError as error:
                # EIO: the kernel itself spreads the interrupts of this driver, and lets nobody else.
                raise HostError(f"interrupt {number} cannot be moved to CPU {cpus}: {error.message}") from error

    def is_same(self, key: str, one: object, other: object) -> bool:
        if isinstance(one, str) and isinstance(other, str):
            return set(parse_cpu_list(one)) == set(parse_cpu_list(other))
        return one == other


async def _msi(place: Place, base: str) -> list[int]:
    try:
        return numbers_of(await values_of(place.host, (f"{base}/msi_irqs/*", f"{base}/../msi_irqs/*")))
    except UnknownFactError:
        return []


async def _local(place: Place, base: str) -> str | None:
    """CPUs of its node; None where the machine has one node, for then none is nearer than others."""
    node = await place.host.read_file(f"{base}/numa_node")
    cpus = await place.host.read_file(f"{base}/local_cpulist")
    return cpus.strip() if cpus and cpus.strip() and (node or "-1").strip() != "-1" else None


def _queue(key: str) -> int:
    return int(key.rpartition(" ")[2])
