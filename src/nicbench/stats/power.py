"""Power above idle, and what it is worth: from windows with and without frames, as pure functions.

A pass is an idle window, the loads, and another idle window. What a load adds is its power less the idle power at its
time, on the line between the two; passes share no window, so that what they give is independent, and Student's interval
of their mean holds (``intervals.mean_interval``). A meter that shows whole steps may be wrong by half a step in each of
the two: the interval is that much wider at each end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped, without_none
from nicbench.core.machine import PowerOver, PowerPart, PowerSource
from nicbench.stats.intervals import mean_interval

_BOTH: Final = (PowerPart.PACKAGES, PowerPart.MEMORY)
_WIDTH: Final = tuple(PowerPart)
_PREFERRED: Final = ("Redfish", "IPMI", "hwmon")
"""Of several readings of one part the first counts; of a machine, the one that costs it nothing."""


@frozen
class Meters:
    """Meters of one machine that make a row: disjoint ones of one method, whose readings add up."""

    machine: str
    row: str
    method: str
    part: PowerPart
    sources: tuple[PowerSource, ...]

    @property
    def has_dut(self) -> bool:
        """Whether the DUT is on this machine."""
        return any(source.has_dut for source in self.sources)

    @property
    def resolution_watts(self) -> float:
        """The step of their sum."""
        return math.fsum(source.resolution_watts for source in self.sources)

    def read(self, window: Iterable[PowerOver]) -> Drawn:
        """The sum of a window; unknown where one of them said nothing."""
        known = {over.source: over for over in window}
        mine = [known[source] for source in self.sources if source in known]
        lacking = [f"{over.source.name}: {over.why}" for over in mine if over.watts is None]
        if len(mine) < len(self.sources):
            lacking.append("it was not read")
        watts = None if lacking else math.fsum(over.watts for over in mine if over.watts is not None)
        return Drawn(mine[0].at_s if mine else 0.0, watts, "; ".join(lacking) or None)


@frozen
class Drawn:
    """What a row of meters says of a window, whose middle is at ``at_s``."""

    at_s: float
    watts: float | None
    why: str | None = None


def rows_of(sources: Iterable[PowerSource]) -> tuple[Meters, ...]:
    """The rows of all machines, the widest first. Nothing is added up that contains the other."""
    members_of = grouped(((source.machine, source.row), source) for source in sources)
    rows = [
        Meters(machine, row, members[0].method, members[0].part, tuple(members))
        for (machine, row), members in members_of.items()
    ]
    for packages in [row for row in rows if row.part is PowerPart.PACKAGES]:
        memory = [row for row in rows if row.part is PowerPart.MEMORY and _are_alike(row, packages)]
        for other in memory:
            words = f"{packages.part.words} and {other.part.words} ({packages.method})"
            both = (*packages.sources, *other.sources)
            rows.append(Meters(packages.machine, words, packages.method, packages.part, both))
    machines = list(dict.fromkeys(row.machine for row in rows))
    return tuple(sorted(rows, key=lambda row: (not row.has_dut, machines.index(row.machine), _order(row))))


def _are_alike(one: Meters, other: Meters) -> bool:
    return (one.machine, one.method) == (other.machine, other.method)


def _order(row: Meters) -> tuple[int, int, int]:
    preferred = _PREFERRED.index(row.method) if row.method in _PREFERRED else len(_PREFERRED)
    return _WIDTH.index(row.part), -len({source.part for source in row.sources}), preferred


def widest(rows: Sequence[Meters]) -> Mapping[str, Meters]:
    """Picks of each machine the row that measures most of it; a component alone does not count."""
    found: dict[str, Meters] = {}
    for row in rows:
        if row.part is not PowerPart.COMPONENT:
            found.setdefault(row.machine, row)
    return found


@frozen
class Pass:
    """One load of one pass, between its two idle windows."""

    before: Drawn
    load: Drawn
    after: Drawn

    @property
    def drift_watts(self) -> float | None:
        """By how much the idle power changed over the pass."""
        if self.before.watts is None or self.after.watts is None:
            return None
        return self.after.watts - self.before.watts

    @property
    def idle_watts(self) -> float | None:
        """The idle power at the time of the load, on the line between the two windows."""
        drift = self.drift_watts
        if self.before.watts is None or drift is None:
            return None
        span_s = self.after.at_s - self.before.at_s
        share = (self.load.at_s - self.before.at_s) / span_s if span_s > 0.0 else 0.5
        return self.before.watts + drift * share

    @property
    def above_watts(self) -> float | None:
        """What the load added."""
        idle = self.idle_watts
        return None if idle is None or self.load.watts is None else self.load.watts - idle


@frozen
class Estimate:
    """A mean with its interval; bounds are ``None`` where one pass alone is known."""

    value: float
    lower: float | None
    upper: float | None

    def divide(self, divisor: float) -> Estimate:
        """The same of a smaller unit; ``divisor`` is greater than 0."""
        lower = None if self.lower is None else self.lower / divisor
        return Estimate(self.value / divisor, lower, None if self.upper is None else self.upper / divisor)


@frozen
class LoadPower:
    """What a load drew over all passes; ``drift_watts`` is the largest drift of the idle power over one of them."""

    total: Estimate
    idle_watts: float
    above: Estimate
    drift_watts: float


def load_power(passes: Sequence[Pass], confidence: float, resolution_watts: float) -> LoadPower | None:
    """None where a window of a pass is not known."""
    above = [each.above_watts for each in passes]
    total = [each.load.watts for each in passes]
    idle = [each.idle_watts for each in passes]
    drift = [each.drift_watts for each in passes]
    known = without_none((*above, *total, *idle, *drift))
    if not passes or len(known) < 4 * len(passes):
        return None
    return LoadPower(
        total=_estimate(total, confidence, resolution_watts / 2.0),
        idle_watts=_mean(idle),
        above=_estimate(above, confidence, resolution_watts),
        drift_watts=max(without_none(drift), key=abs),
    )


def _mean(values: Sequence[float | None]) -> float:
    known = without_none(values)
    return math.fsum(known) / len(known)


def _estimate(values: Sequence[float | None], confidence: float, either_side: float) -> Estimate:
    found = mean_interval(without_none(values), confidence, 0.0)
    lower = None if found.lower is None else found.lower - either_side
    return Estimate(found.mean, lower, None if found.upper is None else found.upper + either_side)


def is_still(windows: Sequence[Drawn]) -> bool:
    """Whether a meter showed the same in every window, idle or not, of which there are at least three."""
    return len(windows) >= 3 and all(each.watts is not None and each.watts == windows[0].watts for each in windows)
