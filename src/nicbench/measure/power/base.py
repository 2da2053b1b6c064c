"""One reading of one meter, and what a window of readings comes to: pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.core.machine import PowerOver, PowerPart, PowerSource
from nicbench.core.units import format_digits

LARGEST_WATTS: Final = 1e6
"""No machine of a lab draws more: a larger reading is a fault of the meter."""


@dataclass(frozen=True, slots=True)
class Sensed:
    """What a meter says at one moment: watts, or joules since some time that wrap at ``range_j``.

    ``averaging_s`` is None where the meter does not tell over how long its reading averages.
    """

    method: str
    part: PowerPart
    name: str
    watts: float | None = None
    joules: float | None = None
    range_j: float | None = None
    averaging_s: float | None = None
    resolution_watts: float = 0.0

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells a machine's meters apart."""
        return self.method, self.part.value, self.name

    def source(self, machine: str, assumed_s: float, has_dut: bool = True) -> PowerSource:
        """The meter itself; ``assumed_s`` is its averaging time where it tells none."""
        return PowerSource(
            machine=machine,
            method=self.method,
            part=self.part,
            name=self.name,
            counts_energy=self.joules is not None,
            averaging_s=assumed_s if self.averaging_s is None else self.averaging_s,
            averaging_is_told=self.averaging_s is not None,
            resolution_watts=self.resolution_watts,
            has_dut=has_dut,
        )


@dataclass(frozen=True, slots=True)
class Look:
    """All meters of one machine at one moment (seconds)."""

    at_s: float
    sensed: tuple[Sensed, ...]


def is_plausible(watts: float) -> bool:
    """Whether a meter may say this of a machine."""
    return math.isfinite(watts) and 0.0 <= watts <= LARGEST_WATTS


def over_window(sources: Sequence[PowerSource], looks: Sequence[Look]) -> tuple[PowerOver, ...]:
    """What each source of a machine says of the time between the first look and the last.

    An energy counter is followed from look to look. Of power readings those count that average over nothing before the
    first look.
    """
    return tuple(_over(source, looks) for source in sources)


def _over(source: PowerSource, looks: Sequence[Look]) -> PowerOver:
    key = source.method, source.part.value, source.name
    seen = [(look.at_s, each) for look in looks for each in look.sensed if each.key == key]
    began_s, ended_s = (looks[0].at_s, looks[-1].at_s) if looks else (0.0, 0.0)
    watts, readings, why = (_by_energy if source.counts_energy else _by_power)(source, seen, began_s)
    if watts is not None and not is_plausible(watts):
        watts, why = None, f"{watts:g} W are no power of a machine"
    return PowerOver(
        source=source,
        at_s=(began_s + ended_s) / 2.0,
        window_s=ended_s - began_s,
        readings=readings,
        watts=watts,
        why=why,
    )


_Found = tuple[float | None, int, str | None]


def _by_energy(source: PowerSource, seen: Sequence[tuple[float, Sensed]], began_s: float) -> _Found:
    known = [(at_s, each.joules, each.range_j) for at_s, each in seen if each.joules is not None]
    if len(known) < 2 or known[-1][0] <= known[0][0]:
        return None, len(known), "it was not read at both ends of the window"
    used_j = 0.0
    for (_, before_j, _), (_, after_j, range_j) in itertools.pairwise(known):
        step_j = after_j - before_j
        if step_j < 0.0:
            if not range_j or range_j < before_j:
                fell = f"from {format_digits(before_j, 6)} J to {format_digits(after_j, 6)} J"
                return None, len(known), f"its counter fell {fell} and does not tell where it wraps"
            step_j += range_j
        used_j += step_j
    if used_j == 0.0:
        return None, len(known), "its counter stood still"
    return used_j / (known[-1][0] - known[0][0]), len(known), None


def _by_power(source: PowerSource, seen: Sequence[tuple[float, Sensed]], began_s: float) -> _Found:
    # A little earlier than the averaging time is soon enough: looks are not exactly on time.
    first_s = began_s + 0.95 * source.averaging_s
    known = [each.watts for at_s, each in seen if each.watts is not None and at_s >= first_s]
    if not known:
        return None, 0, f"it said nothing later than its averaging time of {source.averaging_s:g} s"
    return math.fsum(known) / len(known), len(known), None
