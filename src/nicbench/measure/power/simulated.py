"""The meters of a simulated lab. Its time is computed, as that of its frames; windows are read as real ones are."""

from __future__ import annotations

import math
import random
from typing import Final

from nicbench.core.frame_size import mean_bytes
from nicbench.core.machine import PowerFacts, PowerOver, PowerPart
from nicbench.core.trial import Reading, TrialRequest
from nicbench.core.units import l2_bits_per_s
from nicbench.measure.power.base import Look, Sensed, over_window
from nicbench.measure.power.meter import Meter, window_s
from nicbench.testbed.labs.base import SimulatedPower
from nicbench.testbed.testers.base import During

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
        """Draws for so long what the machine draws without frames; no real time passes."""
        return self._draw(number, seconds, 0.0)

    def beside(self, number: int, request: TrialRequest) -> During | None:
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
