"""From the trials of one frame size to results: a row for each load and each row of meters, and one for idle."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nicbench.core.machine import PowerSource
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.trial import Trial
from nicbench.core.units import format_digits, l2_bits_per_s
from nicbench.methods._loads import LINE_RATE, full_rate_words
from nicbench.methods.base import FrameMethod, Values
from nicbench.stats.power import Drawn, Estimate, LoadPower, Meters, Pass, is_still, load_power, rows_of, widest

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
            self.disturbances.extend(finding.text for finding in trial.verdict.findings)


@dataclass(frozen=True, slots=True)
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
