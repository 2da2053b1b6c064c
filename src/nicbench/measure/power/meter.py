"""The meters of a testbed, found once and read over windows; ``Meter`` is what a maker of trials knows of them.

Energy counters are read at both ends of a window, and in long ones between, so that a counter never wraps twice
unseen. Power readings are taken again and again. A controller (Redfish) is asked over its own network; all else is one
short command on the machine itself each time.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from nicbench.core.errors import NicbenchError
from nicbench.core.frame_size import mean_bytes
from nicbench.core.frozen import frozen
from nicbench.core.machine import Controller, PowerFacts, PowerOver, PowerPart, PowerSource
from nicbench.core.trial import Reading, TrialRequest
from nicbench.core.units import l2_bits_per_s
from nicbench.hosts.asking import join_scripts, split_sections
from nicbench.hosts.base import Host
from nicbench.measure.power import base
from nicbench.measure.power.base import Look, Sensed, is_plausible, over_window
from nicbench.system.inventory.base import NOT_UNDERSTOOD
from nicbench.system.redfish.readings import PowerOfSystem
from nicbench.testbed.labs.base import SimulatedPower
from nicbench.testbed.testers.base import During

EDGE_SHARE: Final = 0.05
"""The share of a transmission that is left out at each end, where it may not have begun or may have ended already ...
"""
LONGEST_EDGE_S: Final = 1.0
"""... but no more than this."""
_SHORTEST_STEP_S, _LONGEST_STEP_S = 1.0, 20.0
_TIMEOUT_S: Final = 20.0
REDFISH: Final = "Redfish"
_SCRIPTS: Final = {
    base.RAPL_METHOD: base.RAPL_SCRIPT,
    base.HWMON_METHOD: base.HWMON_SCRIPT,
    base.IPMI_METHOD: base.IPMI_SCRIPT,
}
_PARSERS: Final = {
    base.RAPL_METHOD: base.parse_rapl,
    base.HWMON_METHOD: base.parse_hwmon,
    base.IPMI_METHOD: base.parse_dcmi,
}


def window_s(duration_s: float) -> float:
    """Returns how long a transmission of this duration is read."""
    return duration_s - 2.0 * _edge_s(duration_s)


def _edge_s(duration_s: float) -> float:
    return min(LONGEST_EDGE_S, EDGE_SHARE * duration_s)


class Meter(ABC):
    """Reads all sources of all machines over a window: while nothing is sent, or during a transmission."""

    facts: PowerFacts

    @abstractmethod
    async def idle(self, number: int, seconds: float) -> tuple[PowerOver, ...]:
        """Returns what is drawn over this number of seconds from now."""

    @abstractmethod
    def during(self, number: int, request: TrialRequest) -> During | None:
        """Returns what is to run during the transmission of a trial; None if its time is not that of a clock."""

    @abstractmethod
    def of_trial(self, number: int, request: TrialRequest, reading: Reading) -> tuple[PowerOver, ...]:
        """What was drawn while the frames of the trial passed, which has just been made."""


@frozen
class MeteredMachine:
    """A machine of the testbed: its name in tables, where its commands run, and its management controller."""

    name: str
    host: Host
    controller: Controller | None = None
    has_dut: bool = True


class _Reader:
    """One machine: after ``find`` only what it has is read."""

    def __init__(
        self, machine: MeteredMachine, methods: Collection[str], assumed_s: float, clock: Callable[[], float]
    ) -> None:
        self._machine = machine
        self._clock = clock
        self._assumed_s = assumed_s
        asked = machine.controller if REDFISH.lower() in methods else None
        self._system = None if asked is None else PowerOfSystem(asked)
        self._scripts = {method: script for method, script in _SCRIPTS.items() if method.lower() in methods}
        self.sources: tuple[PowerSource, ...] = ()
        self.unread: tuple[str, ...] = ()

    async def find(self) -> None:
        """Looks once at everything; NicbenchErrors are among ``unread``."""
        unread, sensed = list[str](), list[Sensed]()
        name = self._machine.name
        try:
            printed = await self._print() if self._scripts else {}
        except NicbenchError as error:
            printed = {}
            unread.append(f"{name}: {error.message}")
        for method, text in printed.items():
            try:
                found = _PARSERS[method](text)
            except NOT_UNDERSTOOD as error:
                found = ()
                unread.append(f"{name}: {method} not understood: {type(error).__name__}: {error}")
            if not found:
                del self._scripts[method]
            sensed.extend(found)
        if base.is_refused(printed.get(base.RAPL_METHOD, "")):
            unread.append(f"{name}: it has RAPL, which only root may read")
        if self._system is not None:
            try:
                sensed.append(await self._ask(self._system))
            except NicbenchError as error:
                self._system = None
                unread.append(f"{name}: Redfish: {error.message}")
        self.sources = tuple(each.source(name, self._assumed_s, self._machine.has_dut) for each in sensed)
        self.unread = tuple(unread)

    async def look(self) -> Look:
        """All that was found, read now; what does not answer is not in it, and the next look may have it again."""
        began_s = self._clock()
        of_host, of_system = await asyncio.gather(self._look_at_host(), self._look_at_system())
        return Look((began_s + self._clock()) / 2.0, (*of_host, *of_system))

    async def _look_at_host(self) -> tuple[Sensed, ...]:
        if not self._scripts:
            return ()
        try:
            printed = await self._print()
            return tuple(each for method, text in printed.items() for each in _PARSERS[method](text))
        except (NicbenchError, *NOT_UNDERSTOOD):
            return ()

    async def _look_at_system(self) -> tuple[Sensed, ...]:
        if self._system is None:
            return ()
        try:
            return (await self._ask(self._system),)
        except NicbenchError:
            return ()

    async def _print(self) -> dict[str, str]:
        script = join_scripts(self._scripts)
        done = await self._machine.host.run(("sh", "-c", script), check=False, timeout_s=_TIMEOUT_S)
        printed = split_sections(done.stdout)
        return {method: printed.get(method, "") for method in self._scripts}

    async def _ask(self, system: PowerOfSystem) -> Sensed:
        watts = await system.watts()
        return Sensed(REDFISH, PowerPart.MACHINE, system.resource, watts=watts if is_plausible(watts) else None)


class LiveMeter(Meter):
    """The meters of real machines."""

    def __init__(
        self,
        machines: tuple[MeteredMachine, ...],
        *,
        methods: Collection[str],
        assumed_s: float,
        is_one_machine: bool = False,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        # Seconds since 1970, which go on in a run that is resumed, by a clock that nobody sets meanwhile.
        offset_s = time.time() - time.monotonic()
        clock = clock or (lambda: offset_s + time.monotonic())
        self._readers = tuple(_Reader(machine, methods, assumed_s, clock) for machine in machines)
        self._clock = clock
        self._sleep = sleep
        self._is_one_machine = is_one_machine
        self._seen: tuple[PowerOver, ...] = ()
        self.facts = PowerFacts(is_one_machine=is_one_machine)

    async def find(self) -> PowerFacts:
        """Finds what each machine has; said once, before the first trial."""
        await asyncio.gather(*(reader.find() for reader in self._readers))
        self.facts = PowerFacts(
            sources=tuple(source for reader in self._readers for source in reader.sources),
            unread=tuple(why for reader in self._readers for why in reader.unread),
            is_one_machine=self._is_one_machine,
        )
        self._readers = tuple(reader for reader in self._readers if reader.sources)
        return self.facts

    async def idle(self, number: int, seconds: float) -> tuple[PowerOver, ...]:
        """Reads every machine over this number of seconds."""
        found = await asyncio.gather(*(self._watch(reader, seconds) for reader in self._readers))
        return tuple(each for of_machine in found for each in of_machine)

    def during(self, number: int, request: TrialRequest) -> During:
        """Reads in the midst of the transmission."""
        self._seen = ()

        async def during() -> None:
            await self._sleep(_edge_s(request.duration_s))
            self._seen = await self.idle(number, window_s(request.duration_s))

        return during

    def of_trial(self, number: int, request: TrialRequest, reading: Reading) -> tuple[PowerOver, ...]:
        """Returns what was read during the last transmission."""
        return self._seen

    async def _watch(self, reader: _Reader, seconds: float) -> tuple[PowerOver, ...]:
        slowest_s = max((each.averaging_s for each in reader.sources if not each.counts_energy), default=None)
        step_s = _LONGEST_STEP_S if slowest_s is None else max(_SHORTEST_STEP_S, min(_LONGEST_STEP_S, slowest_s))
        end_s = self._clock() + seconds
        looks = [await reader.look()]
        while (left_s := end_s - self._clock()) > 0.0:
            # The last look ends the window; one shortly before it would add nothing.
            await self._sleep(left_s if left_s < 1.5 * step_s else step_s)
            looks.append(await reader.look())
        return over_window(reader.sources, looks)


# The meters of a simulated lab. Its time is computed, as that of its frames; windows are read as real ones are.

MACHINE: Final = "tester and DUT"
_METHOD: Final = "simulated"
_STEP_S: Final = 1.0


class SimulatedMeter(Meter):
    """Two meters of one machine. ``began_s`` is where its time goes on in a run that is resumed."""

    def __init__(self, power: SimulatedPower, seed: int, began_s: float = 0.0) -> None:
        self._power = power
        self._seed = seed
        self._now_s = round(began_s, 6)
        self._joules = 0.0
        sources = tuple(each.source(MACHINE, power.averaging) for each in self._sense(power.idle_watts))
        self.facts = PowerFacts(sources=sources, is_one_machine=True)

    async def idle(self, number: int, seconds: float) -> tuple[PowerOver, ...]:
        """Simulates what the machine draws over this time without frames; no real time passes."""
        return self._draw(number, seconds, 0.0)

    def during(self, number: int, request: TrialRequest) -> During | None:
        """Nothing: the transmission takes no time."""
        return None

    def of_trial(self, number: int, request: TrialRequest, reading: Reading) -> tuple[PowerOver, ...]:
        """Draws for the time of the trial what its frames cost that came back."""
        forwarded = reading.counts.received * 1e9 / reading.offering_ns
        bits_per_s = l2_bits_per_s(forwarded, mean_bytes(request.size))
        return self._draw(number, window_s(request.duration_s), bits_per_s)

    def _draw(self, number: int, seconds: float, bits_per_s: float) -> tuple[PowerOver, ...]:
        power = self._power
        draws = random.Random(f"{self._seed}/{number}")  # noqa: S311 - noise of a simulation
        load_watts = power.joules_per_gigabit * bits_per_s / 1e9
        # By the time alone, so that a run that is resumed reads what it would have read.
        self._joules = self._now_s * power.idle_watts * power.package
        looks = [Look(self._now_s, self._sense(self._watts(draws, load_watts, _STEP_S)))]
        left_s = seconds
        while left_s > 1e-9:
            step_s = min(_STEP_S, left_s)
            watts = self._watts(draws, load_watts, step_s)
            self._now_s += step_s
            self._joules += watts * step_s * power.package
            looks.append(Look(self._now_s, self._sense(watts)))
            left_s -= step_s
        self._now_s = round(self._now_s, 6)
        return over_window(self.facts.sources, looks)

    def _watts(self, draws: random.Random, load_watts: float, step_s: float) -> float:
        """The mean of a step of time; the noise of a short one averages over less."""
        power = self._power
        noise = draws.gauss(0.0, power.noise_watts / math.sqrt(step_s))
        drift = power.drift_watts_per_hour * self._now_s / 3600.0
        return max(0.0, power.idle_watts + drift + load_watts + noise)

    def _sense(self, watts: float) -> tuple[Sensed, ...]:
        power = self._power
        if power.fault == "still":
            watts, joules = power.idle_watts, 0.0
        else:
            joules = self._joules % power.counter_range_joules
        told_j = None if power.fault == "wraps" else power.counter_range_joules
        return (
            Sensed(_METHOD, PowerPart.MACHINE, "controller", watts=watts, averaging_s=power.averaging),
            Sensed(_METHOD, PowerPart.PACKAGES, "package-0", joules=joules, range_j=told_j, averaging_s=0.001),
        )
