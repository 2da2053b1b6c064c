"""Power against load: watts of each machine and meter, what a load adds to idle, joules for each gigabit forwarded.

The quantities of ITU-T L.1310 (clause 11, routers and Ethernet switches), whose energy efficiency ratio is throughput
by power, weighted over loads; here each load stands by itself, as its reciprocal. Steps, for each frame size: passes,
each an idle window, one trial at each load, and another idle window. In an idle window everything is set up and nothing
is sent. Power is read while frames are sent, without the first and the last 5 % of the transmission (1 s at most).
What a load adds is its power less the idle power at its time, on the line between the two windows of its pass; the
interval is Student's over the passes, wider by the step of the meter. Joules per gigabit are watts by the layer 2 bits
of frames that came back. Readings of meters are added only where neither contains the other: a whole machine contains
its packages and their memory, the platform domain of RAPL both; a package does not contain its memory. Verified: a
meter that stands still or falls, and idle power that drifts by more than a load adds.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pydantic import Field

from nicbench.core.base import Distinct, Frozen
from nicbench.core.frame_size import FrameSizes, Size, mean_bytes, size_label, size_parameters
from nicbench.core.frozen import frozen
from nicbench.core.machine import PowerSource, PowerWish
from nicbench.core.quantity import Confidence, LoadPercent, Seconds
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.table import Column, Plot, ResultTable
from nicbench.core.trial import Purpose, Trial, TrialRequest
from nicbench.core.units import format_digits, l2_bits_per_s
from nicbench.methods._loads import LINE_RATE, Duration, FullLoad, FullRate, TrialTimes, full_rate, full_rate_words
from nicbench.methods.base import FRAME, Context, FrameMethod, Objection, Values
from nicbench.stats.power import Drawn, Estimate, LoadPower, Meters, Pass, is_still, load_power, rows_of, widest

# From the trials of one frame size to results: a row for each load and each row of meters, and one for idle.


COVERS: Final = "covers"
WIDEST: Final = "all that is measured of it"
_PART: Final = "a part"
_GIGABIT: Final = 1e9


@dataclass
class AtLoad:
    """The trials of one load, one of each pass; ``why_not`` where it could not be offered."""

    percent: float
    load_frames_per_s: float
    trials: list[Trial] = field(default_factory=list)
    disturbances: list[str] = field(default_factory=list)
    why_not: str | None = None

    def add(self, trial: Trial, disturbed: bool) -> None:
        """Adds the trial of the next pass."""
        self.trials.append(trial)
        if disturbed:
            self.disturbances.extend(trial.verdict.texts)


@frozen
class Measured:
    """All trials of one frame size; ``idle`` has the two windows of each pass."""

    parameters: dict[str, Any]
    frame_bytes: float
    sources: tuple[PowerSource, ...]
    is_one_machine: bool
    confidence: float
    idle: tuple[tuple[Trial, Trial], ...]
    loads: tuple[AtLoad, ...]


def results_of(method: FrameMethod, measured: Measured) -> Iterator[Result]:
    """The results of a frame size: idle first, then the loads, rising; the widest row of the DUT's machine first."""
    rows = rows_of(measured.sources)
    main = widest(rows)
    for meters in rows:
        yield _idle_result(method, measured, meters, meters is main.get(meters.machine))
    for at_load in sorted(measured.loads, key=lambda each: each.percent):
        for meters in rows:
            yield _load_result(method, measured, at_load, meters, meters is main.get(meters.machine))


def _result(
    method: FrameMethod, measured: Measured, meters: Meters, percent: float, values: Values, **more: Any
) -> Result:
    place = re.sub(r"[^a-z0-9]+", "-", f"{meters.machine} {meters.row}".lower()).strip("-")
    return Result(
        id=f"{method.name}/{measured.parameters['size']}/{percent:g}/{place}",
        method=method.kind,
        scope="sum of all ports",
        parameters={
            **measured.parameters,
            "load_percent": percent,
            "machine": meters.machine,
            "meter": meters.row,
        },
        values={
            **values,
            "row": f"{measured.parameters['size']} bytes, {percent:g} %, {meters.row}, {meters.machine}",
            **_words(measured, meters),
        },
        **more,
    )


def _words(measured: Measured, meters: Meters) -> Values:
    """What the report says once of the meters of a row, and of machines."""
    told = [
        f"{source.name} counts energy"
        if source.counts_energy
        else f"{source.name} averages over {source.averaging_s:g} s"
        + ("" if source.averaging_is_told else " (assumed: it does not tell)")
        + (f" in steps of {source.resolution_watts:g} W" if source.resolution_watts else "")
        for source in meters.sources
    ]
    of = measured.parameters["load_of"]
    both = "tester and DUT are one machine: every figure is what both draw"
    return {
        "meters": f"{meters.machine}, {meters.row}: {', '.join(told)}",
        "full_load": f"100 % is {'the ' if of == full_rate_words(LINE_RATE) else ''}{of}",
        "shared": both if measured.is_one_machine else None,
    }


def _idle_result(method: FrameMethod, measured: Measured, meters: Meters, is_widest: bool) -> Result:
    windows = [meters.read(trial.reading.power) for pair in measured.idle for trial in pair]
    known = [drawn.watts for drawn in windows if drawn.watts is not None]
    whys = _whys(windows, meters)
    pairs = zip(windows[::2], windows[1::2], strict=True)
    drifts = [b.watts - a.watts for a, b in pairs if a.watts is not None and b.watts is not None]
    mean = sum(known) / len(known) if known else None
    values: Values = {
        COVERS: WIDEST if is_widest else _PART,
        "forwarded_bits_per_s": 0.0,
        "watts": mean,
        "watts_lower": min(known, default=None),
        "watts_upper": max(known, default=None),
        "idle_watts": mean,
        "idle_drift_watts": max(drifts, key=abs, default=None),
    }
    return _result(
        method,
        measured,
        meters,
        0.0,
        values,
        verdict=ResultVerdict.INCOMPLETE if whys else ResultVerdict.VALID,
        disturbances=tuple(whys),
        trials=tuple(trial.id for pair in measured.idle for trial in pair),
    )


def _load_result(method: FrameMethod, measured: Measured, at_load: AtLoad, meters: Meters, is_widest: bool) -> Result:
    passes = [
        Pass(meters.read(before.reading.power), meters.read(trial.reading.power), meters.read(after.reading.power))
        for (before, after), trial in zip(measured.idle, at_load.trials, strict=False)
    ]
    complete = at_load.why_not is None and len(passes) == len(measured.idle)
    found = load_power(passes, measured.confidence, meters.resolution_watts) if complete else None
    whys = _whys([drawn for each in passes for drawn in (each.before, each.load, each.after)], meters)
    if not complete:
        whys.append(at_load.why_not or "not every pass has a trial of it")
    # A meter is judged by all that it showed: one load alone may draw what idle does.
    stands_still = is_still([meters.read(trial.reading.power) for trial in _all_trials(measured)])
    if stands_still and found is not None:
        whys.append(
            f"{meters.row}: it showed {format_digits(found.total.value, 6)} W in every window, idle or not: it stands "
            "still, or the load adds less than its step"
        )
    forwarded = _forwarded_bits_per_s(measured, at_load)
    doubts = _doubts(found, meters)
    return _result(
        method,
        measured,
        meters,
        at_load.percent,
        {
            COVERS: WIDEST if is_widest else _PART,
            "forwarded_bits_per_s": forwarded,
            **_values(found, None if stands_still else forwarded, meters.has_dut, knows_above=not stands_still),
        },
        verdict=_verdict(whys, [*doubts, *at_load.disturbances]),
        disturbances=tuple(dict.fromkeys((*whys, *doubts, *at_load.disturbances))),
        trials=tuple(trial.id for trial in at_load.trials),
    )


def _all_trials(measured: Measured) -> Iterator[Trial]:
    yield from (trial for pair in measured.idle for trial in pair)
    yield from (trial for at_load in measured.loads for trial in at_load.trials)


def _forwarded_bits_per_s(measured: Measured, at_load: AtLoad) -> float | None:
    rates = [trial.reading.counts.received * 1e9 / trial.reading.offering_ns for trial in at_load.trials]
    return l2_bits_per_s(sum(rates) / len(rates), measured.frame_bytes) if rates else None


def _values(found: LoadPower | None, forwarded: float | None, has_dut: bool, *, knows_above: bool) -> Values:
    unknown: Values = dict.fromkeys(("watts", "idle_watts", "above_idle_watts", "joules_per_gigabit"))
    if found is None:
        return unknown
    gigabits_per_s = (forwarded or 0.0) / _GIGABIT
    return {
        **unknown,
        "watts": found.total.value,
        "watts_lower": found.total.lower,
        "watts_upper": found.total.upper,
        "idle_watts": found.idle_watts,
        "idle_drift_watts": found.drift_watts,
        **(_above(found) if knows_above else {}),
        **(_joules(found, gigabits_per_s) if has_dut and gigabits_per_s > 0.0 else {}),
    }


def _above(found: LoadPower) -> Values:
    return {"above_idle_watts": found.above.value, "above_idle_interval_watts": _bounded(found.above)}


def _joules(found: LoadPower, gigabits_per_s: float) -> Values:
    above = found.above.divide(gigabits_per_s)
    return {
        "joules_per_gigabit": found.total.value / gigabits_per_s,
        "joules_per_gigabit_above_idle": above.value,
        "joules_per_gigabit_above_idle_interval": _bounded(above),
    }


def _bounded(estimate: Estimate) -> Bounded:
    return Bounded(value=estimate.value, lower=estimate.lower, upper=estimate.upper)


def _whys(windows: Sequence[Drawn], meters: Meters) -> list[str]:
    return list(dict.fromkeys(f"{meters.row}: {drawn.why}" for drawn in windows if drawn.watts is None))


def _doubts(found: LoadPower | None, meters: Meters) -> list[str]:
    if found is None or abs(found.drift_watts) <= max(found.above.value, 0.0):
        return []
    drifted = f"{meters.row}: the idle power drifted by {format_digits(found.drift_watts, sign='+')} W over a pass"
    return [f"{drifted}, and the load adds {format_digits(found.above.value)} W"]


def _verdict(whys: Sequence[str], doubts: Sequence[str]) -> ResultVerdict:
    if whys:
        return ResultVerdict.INCOMPLETE
    return ResultVerdict.DISTURBED if doubts else ResultVerdict.VALID


MeterKind = Literal["rapl", "hwmon", "ipmi", "redfish"]
_SIMULATED = "simulated"
_AVERAGES = 3.0
"""The averaging times of a meter in a window: the first one does not count."""
_LOAD = Column("load_percent", "Load", unit="%", form="trimmed")
_MACHINE = Column("machine", "Machine", form="text")
_METER = Column("meter", "Measured", form="text")
_WATTS = Column("watts", "Power", unit="W", form="trimmed")
_EACH = "Energy of a gigabit"
_JOULES = Column(
    "joules_per_gigabit",
    "Total",
    name="energy of a gigabit",
    unit="J/Gb",
    group=_EACH,
    is_main=True,
    better="lower",
)
_SENTENCE = (
    "draws {watts} at {load} with {size} frames, {above_idle_watts} above idle: {joules_per_gigabit}, of which "
    "{joules_per_gigabit_above_idle} are above idle"
)


class Power(FrameMethod):
    """What each machine draws at each load."""

    gives_points = False
    kind = "power"
    question = "What does forwarding cost {subject} in power, by load?"

    class Options(Frozen):
        """Options of the bench file."""

        frame_bytes: FrameSizes = (64, 1518)
        """Frame sizes, and mixes by name."""
        of: FullRate = LINE_RATE
        """What 100 % is, as of `frame-loss`."""
        loads: tuple[LoadPercent, ...] = Field(default=(100.0, 75.0, 50.0, 25.0, 10.0), min_length=1)
        """Shares of it."""
        idle: Duration = 60.0
        """How long an idle window is."""
        passes: int = Field(default=3, ge=2, le=1000)
        """How often the loads are measured, each time between two idle windows."""
        meters: Distinct[MeterKind] = ("rapl", "hwmon", "ipmi", "redfish")
        """How power is read, where a machine has it. `ipmi` takes some of the machine's own CPU time."""
        averaging: Seconds = Field(default=5.0, ge=0.1, le=300.0)
        """Over how long a meter averages that does not tell it: controllers (`ipmi`, `redfish`) and some of `hwmon`."""
        confidence: Confidence = 0.95
        """Confidence of the intervals."""
        trial: TrialTimes = TrialTimes()
        """Times of a trial."""

    options: Options

    def points(self) -> int:
        return len(self.options.frame_bytes) * self.options.passes * (len(self.options.loads) + 2)

    def power_wish(self) -> PowerWish:
        return PowerWish(methods=self.options.meters, averaging_s=self.options.averaging)

    def estimate_s(self) -> float:
        passes = len(self.options.frame_bytes) * self.options.passes
        return passes * (2.0 * self.options.idle + self.options.trial.estimate_s(len(self.options.loads)))

    def deviations(self) -> tuple[str, ...]:
        return self.options.trial.deviations()

    def objection(self, context: Context) -> Objection | None:
        """Returns why the meters do not suit the test: none is of the DUT, or the windows are too short for one."""
        sources = self._sources(context)
        if not any(source.has_dut for source in sources):
            why = "".join(f"; {each}" for each in context.power.unread)
            return Objection(
                message=f"no meter says what the DUT's machine draws{why}",
                next_step="name its management controller under `redfish`, install ipmitool there, or run as root",
            )
        shortest_s = min(self.options.idle, self.options.trial.duration)
        slow = max(
            (source for source in sources if not source.counts_energy), key=lambda each: each.averaging_s, default=None
        )
        if slow is None or shortest_s >= _AVERAGES * slow.averaging_s:
            return None
        needed = f"{_AVERAGES * slow.averaging_s:g} s"
        told = "it tells" if slow.averaging_is_told else "`averaging` says"
        return Objection(
            message=f"{slow.machine}, {slow.row}: it averages over {slow.averaging_s:g} s, as {told}, and windows of "
            f"{shortest_s:g} s are too short for that",
            next_step=f"write `idle` and `duration` of at least {needed}, or leave it out of `meters`",
        )

    async def results(self, context: Context) -> AsyncIterator[Result]:
        for size in context.sizes(self.options.frame_bytes):
            for result in results_of(self, await self._measure_size(context, size)):
                yield result

    async def _measure_size(self, context: Context, size: Size) -> Measured:
        options = self.options
        full = await full_rate(context, size, options.of, most_line_rates=context.most_line_rates)
        parameters = {**size_parameters(size), "size": size_label(size), "load_of": full.words}
        idle = []
        loads = {percent: AtLoad(percent, full.load_frames_per_s(percent)) for percent in options.loads}
        for _ in range(options.passes):
            before = await self._idle(context, parameters, size)
            for percent, at_load in loads.items():
                full = await self._load(context, {**parameters, "load_percent": percent}, size, full, at_load)
            idle.append((before, await self._idle(context, parameters, size)))
        return Measured(
            parameters=parameters,
            frame_bytes=mean_bytes(size),
            sources=self._sources(context),
            is_one_machine=context.power.is_one_machine,
            confidence=options.confidence,
            idle=tuple(idle),
            loads=tuple(loads.values()),
        )

    async def _idle(self, context: Context, parameters: dict[str, Any], size: Size) -> Trial:
        request = TrialRequest(
            frame_bytes=mean_bytes(size),
            load_frames_per_s=0.0,
            duration_s=self.options.idle,
            drain_s=0.0,
            settle_s=0.0,
            purpose=Purpose.IDLE,
        )
        trial, _ = await context.measure({**parameters, "load_percent": 0.0}, request)
        return trial

    async def _load(
        self, context: Context, parameters: dict[str, Any], size: Size, full: FullLoad, at_load: AtLoad
    ) -> FullLoad:
        """Adds a trial to a load, or why it is missing; returns what is known of the tester's ceiling afterwards."""
        if not full.carries(at_load.percent):
            at_load.why_not = full.why_not_more
            return full
        request = self.options.trial.request(size, at_load.load_frames_per_s, Purpose.POWER)
        trial, disturbed = await context.measure(parameters, request)
        at_load.add(trial, disturbed)
        full = full.lower_to_sent(at_load.load_frames_per_s, trial)
        if not full.carries(at_load.percent):
            at_load.why_not = full.why_not_more
        return full

    def _sources(self, context: Context) -> tuple[PowerSource, ...]:
        wanted = (*self.options.meters, _SIMULATED)
        return tuple(source for source in context.power.sources if source.method.lower() in wanted)

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Power against load",
            caption=(
                "What the machines drew: idle, with everything set up and nothing sent, and while frames were sent. "
                "Above idle is the load's power less the idle power at its time, with its interval over the passes. "
                "Joules for each gigabit count the bits (layer 2) of frames that came back. Rows of one machine are "
                "never to be added up, except where the name of a row says so: the wider contains the narrower."
            ),
            columns=(
                *(FRAME, _LOAD, _MACHINE, _METER),
                Column("forwarded_bits_per_s", "Forwarded"),
                _WATTS.replace(group="Power", head="Total"),
                Column("idle_watts", "Idle", unit="W", form="trimmed", group="Power"),
                Column("above_idle_watts", "Above idle", unit="W", form="trimmed", group="Power"),
                Column("above_idle_interval_watts", "Interval", unit="W", form="trimmed", aspect="interval"),
                _JOULES,
                Column("joules_per_gigabit_above_idle", "Above idle", unit="J/Gb", group=_EACH),
                Column("joules_per_gigabit_above_idle_interval", "Interval", unit="J/Gb", aspect="interval"),
                Column("idle_drift_watts", "Drift of idle", unit="W", form="trimmed", is_minor=True),
            ),
            sentences=(_SENTENCE,),
            row_name="{row}",
            notes=(("full_load", "Load"), ("meters", "Meters"), ("shared", "Machines")),
            plots=(
                Plot(
                    x=_LOAD,
                    y=(_WATTS,),
                    lower="watts_lower",
                    upper="watts_upper",
                    lines=(_MACHINE, _METER),
                    each=FRAME,
                    caption="Power against load; at 0 % nothing was sent.",
                ),
            ),
        )

    @classmethod
    def main_values(cls, result: Result) -> tuple[str, ...]:
        """Returns the energy of a gigabit, in rows that measure most of a machine."""
        return (_JOULES.value,) if result.values.get(COVERS) == WIDEST else ()

    @classmethod
    def select_for_terminal(cls, results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Returns of each machine the row that measures most of it, the highest load first, without idle."""
        chosen = [result for result in results if result.values.get(COVERS) == WIDEST and _percent(result) > 0.0]
        return tuple(sorted(chosen, key=_percent, reverse=True)) or results


def _percent(result: Result) -> float:
    percent = result.parameters.get(_LOAD.value)
    return percent if isinstance(percent, int | float) else 0.0
