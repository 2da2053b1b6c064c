"""Soak: a load held for hours, in intervals; loss and latency of each, and of the whole.

Steps, for each frame size: one judged trial after another at the same load, each an interval, until the time is over.
An interval is journaled when it ends, so that a crash loses none but the one under way, and a resumed run goes on with
the next. Each has the hottest part of the machines, the errors of their links and the clock of the tester's core.
Between two intervals the drain passes, and no settle time unless one is asked for. Where ``critical_load`` is asked
for, the load is then estimated at which in the long run only a tiny share of the frames is lost (PLRsearch,
search/_critical_load.py). Verified: every frame by its signature and its payload.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.frame_size import FrameSizes, Size, label_of, size_label, size_parameters
from nicbench.core.lists import grouped
from nicbench.core.quantity import FramesPerSecond, Percent, Ratio
from nicbench.core.reading import Counts, Measure
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict, counted_number, number_of
from nicbench.core.table import Column, Narrowing, Plot, ResultTable
from nicbench.core.trial import Latency, Purpose, Reading, Trial
from nicbench.core.turn import DEFAULT
from nicbench.methods._loads import (
    LOWERED_NOTE,
    Duration,
    FullLoad,
    FullRate,
    Pause,
    TrialTimes,
    earlier_rate,
    full_rate,
    full_rate_words,
    lowered_values,
)
from nicbench.methods._results import values_not_offered, verdict_of
from nicbench.methods.base import FRAME, Context, FrameMethod, Values
from nicbench.search import COVERAGE, Course, CriticalLoadSearch, Estimate
from nicbench.search.base import Ended, Goal, Limits, Outcome, check_loads, highest_load, lowest_load
from nicbench.stats.sample import Series

# The critical load as a soak estimates it: options and results, with the final estimate and how it narrowed.


PART = "critical-load"
LAST = "estimate"
_OPEN_ABOVE: Final[dict[LimitedBy | None, str]] = {
    LimitedBy.LINE_RATE: "more than the line rate cannot be offered",
    LimitedBy.TESTER: "more than what the tester sends cannot be offered",
    LimitedBy.MAXIMUM_LOAD: "more than the highest load that was asked for was not tried",
}
_OPEN: Final = "it may lie above all loads tried"
# A number of trials that even the longest duration cannot reach.
_TRIALS = 10**6


class CriticalLoadChoice(Frozen):
    """The options of the critical load: the load at which a share of ``loss_ratio`` is lost in the long run.

    ``duration`` is the time of all trials together; the first takes ``first_trial``, each further one ``longer_by``
    more (as in FD.io's CSIT).
    """

    loss_ratio: Annotated[Ratio, Field(gt=0.0, le=0.1)] = 1e-7
    """The share of the frames."""
    duration: Duration = 1800.0
    """Duration of all its trials together, pauses included."""
    first_trial: Duration = 5.1
    """Duration of the first trial."""
    longer_by: Pause = 0.1
    """How much longer each next trial is."""
    minimum_load: Annotated[FramesPerSecond, Field(gt=0.0)] = 1000.0
    """The lowest load that is tried."""
    maximum_load: FramesPerSecond | None = None
    """The highest load that is tried."""

    @model_validator(mode="after")
    def _loads_are_in_order(self) -> Self:
        check_loads(self.minimum_load, self.maximum_load)
        return self

    def course(self, times: TrialTimes) -> Course:
        """Returns the course of the search in time, with the pauses of the trials."""
        return Course(
            total_s=self.duration,
            first_trial_s=self.first_trial,
            longer_by_s=self.longer_by,
            pause_s=times.drain + 2 * times.settle,
        )


async def search_critical_load(
    context: Context, name: str, kind: str, size: Size, choice: CriticalLoadChoice, times: TrialTimes
) -> list[Result]:
    """Searches at one frame size; returns the estimate after each trial, then the final one."""
    line_rate = context.line_rate_frames_per_s(size)
    ceiling = await context.ceiling_frames_per_s(size)
    if ceiling is not None and ceiling <= 0.0:
        nothing = _without_tester(name, kind, size, choice, line_rate)
        context.publish(nothing)
        return [nothing]
    maximum, limited_by = highest_load(line_rate, ceiling, choice.maximum_load)
    limits = Limits(
        minimum_load_frames_per_s=lowest_load(choice.minimum_load, maximum),
        maximum_load_frames_per_s=maximum,
        maximum_limited_by=limited_by,
        trial_duration_s=choice.first_trial,
        maximum_trials=_TRIALS,
    )
    search = CriticalLoadSearch(choice.course(times), context.seed)
    goal = Goal(name=PART, loss_ratio=choice.loss_ratio)
    request = times.request(size, None, Purpose.SOAK)
    found = await context.search(search, {**size_parameters(size), "part": PART}, request, (goal,), limits)
    outcome = found.outcomes[PART]
    parameters = _parameters(size, choice)
    rates: Values = {"line_rate_frames_per_s": line_rate, "ceiling_frames_per_s": ceiling}
    results = [_step(name, kind, parameters, estimate) for estimate in search.estimates]
    last = search.estimates[-1] if search.estimates else None
    results.append(
        Result(
            id=f"{name}/{size_label(size)}/{PART}",
            method=kind,
            scope="per port",
            parameters={**parameters, "after": LAST},
            values={
                "critical_load_frames_per_s": outcome.rate,
                "critical_load_percent_of_line_rate": _percent(counted_number(outcome.rate), line_rate),
                **_model_values(last),
                **rates,
                "limited_by": outcome.rate.limited_by.words if outcome.rate.limited_by else None,
                "search_trials": len(found.trial_ids),
                "search_traffic_s": found.traffic_s,
                "limit": _limit_words(outcome, search.notes),
            },
            verdict=_verdict(outcome),
            disturbances=search.notes[:1] if outcome.disturbed else (),
            trials=found.trial_ids,
        )
    )
    results = results[-1:] if found.is_stopped else results  # an interrupted run ends with the first that is published
    for result in results:
        context.publish(result)
    return results


def _parameters(size: Size, choice: CriticalLoadChoice) -> dict[str, Any]:
    share = {"loss_ratio_percent": 100.0 * choice.loss_ratio}
    return {**size_parameters(size), "size": size_label(size), "part": PART, **share}


def _without_tester(name: str, kind: str, size: Size, choice: CriticalLoadChoice, line_rate: float) -> Result:
    """Returns the result of a tester that can send nothing: no trial is made."""
    reason = "the tester sends nothing, not even without a DUT: its ceiling is 0"
    nothing = Bounded(value=None, limited_by=LimitedBy.TESTER, n=0, reason_null=reason)
    return Result(
        id=f"{name}/{size_label(size)}/{PART}",
        method=kind,
        scope="per port",
        parameters={**_parameters(size, choice), "after": LAST},
        values={
            "critical_load_frames_per_s": nothing,
            "line_rate_frames_per_s": line_rate,
            "ceiling_frames_per_s": 0.0,
            "limited_by": LimitedBy.TESTER.words,
            "limit": reason,
        },
        verdict=ResultVerdict.INCOMPLETE,
        disturbances=(reason,),
    )


def estimates_table() -> ResultTable:
    """Returns the table of the estimates; the terminal shows the final one, the report also how it narrowed."""
    percent = f"{100 * COVERAGE:g} %"
    return ResultTable(
        part=PART,
        title="Critical load",
        caption=(
            "The load at which, in the long run, the named share of the frames is lost, estimated as PLRsearch does "
            "(draft-vpolak-bmwg-plrsearch): from the losses of all trials, for two shapes of the loss over the load, "
            f"stretch and erf. The interval holds {percent} of what either makes likely, so their difference is in it."
        ),
        columns=(
            FRAME,
            Column("after", "After trial", form="text"),
            Column("seconds", "Time", unit="s", form="number"),
            Column("load_frames_per_s", "Load of the trial"),
            Column("loss_percent", "Its loss", unit="%", form="of_frames"),
            Column(
                "critical_load_frames_per_s",
                "Critical load",
                unit="Mpps",
                form="mpps",
                is_main=True,
                better="higher",
            ),
            Column("critical_load_lower_frames_per_s", "from"),
            Column("critical_load_upper_frames_per_s", "to"),
            Column("stretch_average_frames_per_s", "stretch: average"),
            Column("stretch_deviation_frames_per_s", "deviation", unit="frames/s", form="number"),
            Column("erf_average_frames_per_s", "erf: average"),
            Column("erf_deviation_frames_per_s", "deviation", unit="frames/s", form="number"),
            Column("limited_by", "Limited by", form="text"),
        ),
        sentences=("loses the target share of {size} frames at {critical_load_frames_per_s}",),
        notes=(("limit", "The estimate"),),
        narrowing=Narrowing(
            x=Column("seconds", "time of all trials", unit="s"),
            y=Column("critical_load_frames_per_s", "critical load"),
            lower="critical_load_lower_frames_per_s",
            upper="critical_load_upper_frames_per_s",
            lines=FRAME,
            caption="How the estimate narrowed from trial to trial: the band is the interval, the line what is in its "
            "middle by both models. The widest, at the beginning, are cut off.",
        ),
    )


_DEVIATION_DECIMALS = 3
"""Of frames per second: where the trials lie on the model, smaller deviations are errors of the computation."""


def final_estimates(results: tuple[Result, ...]) -> tuple[Result, ...]:
    """Returns the final estimates only."""
    return tuple(result for result in results if result.parameters.get("after") == LAST)


def _step(name: str, kind: str, parameters: dict[str, Any], estimate: Estimate) -> Result:
    return Result(
        id=f"{name}/{parameters['size']}/{PART}/{estimate.trials}",
        method=kind,
        scope="per port",
        parameters={**parameters, "after": str(estimate.trials)},
        values={
            "critical_load_frames_per_s": estimate.average_frames_per_s,
            "load_frames_per_s": estimate.load_frames_per_s,
            "loss_percent": 100.0 * estimate.loss_ratio,
            **_model_values(estimate),
        },
    )


def _model_values(estimate: Estimate | None) -> Values:
    """Returns the seconds, the interval, and average and deviation of each model."""
    if estimate is None:
        return {}
    values: Values = {
        "seconds": estimate.seconds,
        "critical_load_lower_frames_per_s": estimate.lower_frames_per_s,
        "critical_load_upper_frames_per_s": estimate.upper_frames_per_s,
    }
    for model, found in estimate.models.items():
        values[f"{model}_average_frames_per_s"] = found.average_frames_per_s
        values[f"{model}_deviation_frames_per_s"] = round(found.deviation_frames_per_s, _DEVIATION_DECIMALS)
        values[f"{model}_scatter_percent"] = 100.0 * found.scatter
    return values


def _limit_words(outcome: Outcome, notes: Sequence[str]) -> str | None:
    """Describes in words what restricts the figure; None where nothing does."""
    rate = outcome.rate
    said = [rate.reason_null] if rate.reason_null else list(notes)
    if rate.at_least:
        said.insert(0, _OPEN_ABOVE.get(rate.limited_by, _OPEN))
    return "; ".join(said) or None


def _verdict(outcome: Outcome) -> ResultVerdict:
    if outcome.trials == 0 or outcome.ended is Ended.STOPPED:
        return ResultVerdict.INCOMPLETE
    return ResultVerdict.DISTURBED if outcome.disturbed else ResultVerdict.VALID


def _percent(rate: float | None, line_rate: float) -> float | None:
    return None if rate is None else 100.0 * rate / line_rate


LENGTH_S = 12 * 3600.0
INTERVAL_S = 60.0
WHOLE = "all"
_INTERVAL = Column("interval", "Interval", form="text")
_LOSS = Column("loss_percent", "Loss", unit="%", form="of_frames", is_main=True, better="lower")
_LATENCIES = (
    Column("latency_mean_us", "Latency, mean", unit="µs", form="number"),
    Column("latency_p99_9_us", "Latency, p99.9", unit="µs", form="number"),
    Column("latency_maximum_us", "Latency, maximum", unit="µs", form="number"),
)


_DRIFTING: Final = {
    "loss_percent": "loss",
    "latency_p50_us": "median latency",
    "temperature_celsius": "hottest part",
    "core_clock_hz": "clock of the tester's core",
}
_LINK_ERRORS: Final = frozenset(
    {
        Measure.PCIE_CORRECTED,
        Measure.PCIE_UNCORRECTED,
        Measure.FEC_CORRECTED,
        Measure.FEC_UNCORRECTED,
        Measure.SYMBOL_ERRORS,
    }
)


class IntervalTimes(Frozen):
    """The times of a soak.

    ``duration`` is of the whole soak, ``interval`` of each of its trials, ``drain`` and ``settle`` between them.
    """

    duration: Duration = LENGTH_S
    """Duration of the whole soak."""
    interval: Duration = INTERVAL_S
    """Duration of each interval, which is a trial of its own."""
    drain: Pause = 2.0
    """How long frames may arrive after an interval."""
    settle: Pause = 0.0
    """Pause between two intervals."""


class Soak(FrameMethod):
    """A load held for a long time: loss and latency of each interval."""

    kind = "soak"
    question = "How much does {subject} lose, and how long does it delay frames, when a load is held for a long time?"

    class Options(Frozen):
        """Options of the bench file. ``load`` is a share of the rate ``of`` of the test ``at``, or of ``rate``.

        With neither, no load is held, and only the ``critical_load`` is estimated.
        """

        at: str | None = None
        """The name of an earlier throughput test. Give this or `rate`."""
        of: str = "NDR"
        """Which of its rates is 100 %."""
        rate: FullRate | None = None
        """`line_rate`, `highest`, or a frame rate of each port, `800 kpps`."""
        load: Percent = 100.0
        """The load, as a share of that rate."""
        frame_bytes: FrameSizes = (64,)
        """Frame sizes, and mixes by name."""
        trial: IntervalTimes = IntervalTimes()
        """Times of the soak."""
        critical_load: CriticalLoadChoice | None = None
        """Estimates the load at which, in the long run, a tiny share of the frames is lost. Alone, without `at` and
        `rate`, no load is held.
        """

        @model_validator(mode="after")
        def _has_one_rate(self) -> Self:
            if self.at is None and self.rate is None and self.critical_load is not None:
                return self
            if (self.at is None) == (self.rate is None):
                raise ValueError("give either `at` (an earlier test whose rate is 100 %) or a `rate`")
            return self

        @property
        def holds_a_load(self) -> bool:
            """Whether a load is held, rather than only estimated."""
            return self.at is not None or self.rate is not None

    options: Options

    def __init__(self, name: str, options: Frozen) -> None:
        super().__init__(name, options)
        self.gives_points = self.options.critical_load is None  # which has a result for each of its trials

    @property
    def intervals(self) -> int:
        """The number of intervals of one frame size; 0 where no load is held."""
        if not self.options.holds_a_load:
            return 0
        return max(1, math.ceil(self.options.trial.duration / self.options.trial.interval - 1e-9))

    def points(self) -> int:
        held = self.intervals + 1 if self.options.holds_a_load else 0
        return len(self.options.frame_bytes) * (held + (self.options.critical_load is not None))

    def needs(self) -> str | None:
        return self.options.at

    def estimate_s(self) -> float:
        sizes, wanted = len(self.options.frame_bytes), self.options.critical_load
        searching_s = sizes * max(wanted.duration, wanted.first_trial) if wanted else 0.0
        return self._times().estimate_s(sizes * self.intervals) + searching_s

    def _times(self) -> TrialTimes:
        times = self.options.trial
        return TrialTimes(duration=times.interval, drain=times.drain, settle=times.settle)

    async def run(self, context: Context) -> tuple[Result, ...]:
        results = []
        for size in context.sizes(self.options.frame_bytes):
            if self.options.holds_a_load:
                results += await self._soak(context, size)
            if self.options.critical_load is not None:
                results += await search_critical_load(
                    context, self.name, self.kind, size, self.options.critical_load, self._times()
                )
        return tuple(results)

    async def _soak(self, context: Context, size: Size) -> list[Result]:
        load, full, reason = await self._load(context, size)
        if load is None:
            missing: Values = values_not_offered(self.options.load, full) if full else {}
            missing["loss_percent"] = Bounded(value=None, reason_null=reason)
            result = self._result(size, WHOLE, missing, None, ResultVerdict.INCOMPLETE, (reason,))
            context.publish(result)
            return [result]
        results, trials, loads, disturbed_intervals = [], list[Trial](), list[float](), 0
        asked = load
        for number in range(1, self.intervals + 1):
            request = self._times().request(size, load, Purpose.SOAK)
            trial, disturbed = await context.measure({**size_parameters(size), "interval": number}, request)
            disturbed_intervals += disturbed
            trials.append(trial)
            disturbances = trial.verdict.texts if disturbed else ()
            sent = lowered_values(size, load, trial)
            values: Values = {
                **values_of(trial.reading.counts, trial.reading.latency),
                **machine_values(trial.reading),
                **sent,
            }
            loads.append(trial.request.sent_frames_per_s or load)
            load = min(load, loads[-1])
            result = self._result(size, str(number), values, trial, verdict_of(trial, disturbed), disturbances)
            context.publish(result)
            results.append(result)
        disturbances = (
            (f"{disturbed_intervals} of {self.intervals} intervals were disturbed",) if disturbed_intervals else ()
        )
        verdict = ResultVerdict.DISTURBED if disturbed_intervals else ResultVerdict.VALID
        mean = {"load_frames_per_s": statistics.fmean(loads)}
        values = {**whole_of(trials), **lowered_values(size, asked, trials[-1]), **mean}
        whole = self._result(size, WHOLE, values, trials[-1], verdict, disturbances)
        context.publish(whole)
        return [*results, whole]

    async def _load(self, context: Context, size: Size) -> tuple[float | None, FullLoad | None, str]:
        """Returns the load in frames per second of one port; or None, and the reason."""
        if self.options.at is not None:
            rate = earlier_rate(context, self.options.at, self.options.of, size)
            if rate.value is None:
                return None, None, rate.reason_null or "unknown"
            return rate.value * self.options.load / 100.0, None, ""
        full = await full_rate(context, size, self.options.rate or 0.0)
        if full.is_sent_nothing or not full.carries(self.options.load):
            return None, full, full.why_not_more
        return full.load_frames_per_s(self.options.load), full, ""

    def _result(
        self,
        size: Size,
        interval: str,
        values: Values,
        trial: Trial | None,
        verdict: ResultVerdict,
        disturbances: tuple[str, ...],
    ) -> Result:
        label = size_label(size)
        of = self.options.of if self.options.at is not None else full_rate_words(self.options.rate or 0.0)
        parameters = {
            **size_parameters(size),
            "size": label,
            "load_of": of,
            "load_percent": self.options.load,
            "interval": interval,
        }
        return Result(
            id=f"{self.name}/{label}/{interval}",
            method=self.kind,
            scope="per port",
            parameters=parameters,
            values={**values, "began_s": trial.at_s if trial and interval != WHOLE else None},
            verdict=verdict,
            disturbances=disturbances,
            trials=(trial.id,) if trial and interval != WHOLE else (),
        )

    @classmethod
    def series_within_run(cls, results: tuple[Result, ...]) -> tuple[Series, ...]:
        """Returns loss, median latency, temperature and clock of each interval, for each frame size of each run."""
        grouped: dict[tuple[str, str, int | None, str | None], list[Result]] = {}
        for result in results:
            if str(result.parameters.get("interval", "")).isdigit():
                key = (result.test or cls.kind, result.configuration, result.run, label_of(result.parameters))
                grouped.setdefault(key, []).append(result)
        found = []
        for (test, configuration, run, size), members in grouped.items():
            turn = [*([f"“{configuration}”"] if configuration != DEFAULT else []), *([f"run {run}"] if run else [])]
            whose = f" ({', '.join(turn)})" if turn else ""
            in_order = sorted(members, key=lambda result: int(result.parameters["interval"]))
            for name, words in _DRIFTING.items():
                values = [_known_number(result, name) for result in in_order]
                if any(value is not None for value in values):
                    found.append(Series(f"{test}{whose}: {size}-byte frames, {words}", values))
        return tuple(found)

    @classmethod
    def tables(cls) -> tuple[ResultTable, ...]:
        return (cls.table(), estimates_table())

    @classmethod
    def select_for_terminal(cls, results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Returns, for each frame size, the worst interval, the last one and the whole; and the final critical load."""
        if any(result.parameters.get("part") == PART for result in results):
            return final_estimates(results)
        groups = grouped(
            ((label_of(result.parameters), result.parameters.get("configuration")), result) for result in results
        )
        shown = []
        for members in groups.values():
            intervals = [result for result in members if _interval(result) != WHOLE]
            shown += [result for result in members if _interval(result) == WHOLE]
            if intervals:
                shown += [_rename("worst", max(intervals, key=_badness)), _rename("last", intervals[-1])]
        return tuple(shown)

    @classmethod
    def table(cls) -> ResultTable:
        return ResultTable(
            title="Soak",
            caption=(
                "A load held for a long time, in intervals, each a trial of its own. Loss and latency of the whole are "
                "over all of them: the highest latency and percentile of any interval, the mean over all frames."
            ),
            columns=(
                FRAME,
                _INTERVAL,
                Column("load_frames_per_s", "Load"),
                Column("offered_frames", "Offered frames", form="whole"),
                Column("lost_frames", "Lost or altered", form="whole"),
                _LOSS,
                Column("intervals_with_loss", "Intervals with loss", form="whole"),
                *_LATENCIES,
                Column(
                    "temperature_celsius", "Hottest part", unit="°C", form="number", is_optional=True, better="lower"
                ),
                Column("link_errors", "Errors of links", form="whole", is_optional=True),
                Column("core_clock_hz", "Clock of the tester's core", is_optional=True),
            ),
            sentences=("loses {loss_percent} of {size} frames at {load_frames_per_s}, over all intervals of the soak",),
            sums=("interval", WHOLE),
            notes=(LOWERED_NOTE,),
            plots=(
                Plot(
                    x=_INTERVAL,
                    y=_LATENCIES,
                    caption="Latency in each interval, on a logarithmic axis.",
                    logarithmic=True,
                ),
                Plot(x=_INTERVAL, y=(_LOSS,), caption="Frames lost or altered in each interval."),
            ),
        )


def values_of(counts: Counts, latency: Latency | None) -> Values:
    """Returns the values of one interval, but for its load."""
    offered = counts.offered
    return {
        "offered_frames": offered,
        "lost_frames": counts.failed,
        "loss_percent": 100.0 * counts.loss_ratio if offered else None,
        "late_frames": counts.late,
        "latency_mean_us": latency.mean_ns / 1e3 if latency else None,
        "latency_p50_us": _microseconds(latency.percentiles_ns.get("50") if latency else None),
        "latency_p99_9_us": _microseconds(latency.percentiles_ns.get("99.9") if latency else None),
        "latency_maximum_us": _microseconds(latency.maximum_ns if latency else None),
    }


def machine_values(reading: Reading) -> Values:
    """Returns what the machines told of themselves over one interval; None where nothing was read."""
    clocks, machine = reading.health.core_clock_hz, reading.machine
    heat = [level.value for level in machine.levels if level.unit == "C"] if machine else []
    errors = [event.amount for event in machine.events if event.measure in _LINK_ERRORS] if machine else []
    return {
        "temperature_celsius": max(heat, default=None),
        "link_errors": int(sum(errors)) if machine else None,
        "core_clock_hz": statistics.fmean(clocks) if clocks else None,
    }


def _machine_of_all(trials: Sequence[Trial]) -> Values:
    """Returns the highest temperature, all errors and the mean clock of the intervals that told them."""
    told: dict[str, list[float]] = {}
    for trial in trials:
        for name, value in machine_values(trial.reading).items():
            if isinstance(value, int | float):
                told.setdefault(name, []).append(value)
    how: dict[str, Callable[[list[float]], float]] = {
        "temperature_celsius": max,
        "link_errors": sum,
        "core_clock_hz": statistics.fmean,
    }
    return {name: how[name](values) for name, values in told.items()}


def whole_of(trials: list[Trial]) -> Values:
    """Returns the values of all intervals together, but for their load."""
    counts = Counts.sum_of(trial.reading.counts for trial in trials)
    latencies = [trial.reading.latency for trial in trials if trial.reading.latency is not None]
    frames = sum(latency.count for latency in latencies)
    tails = [tail for latency in latencies if (tail := latency.percentiles_ns.get("99.9")) is not None]
    return {
        **values_of(counts, None),
        **_machine_of_all(trials),
        "intervals": len(trials),
        "intervals_with_loss": sum(1 for trial in trials if trial.reading.counts.failed),
        "latency_mean_us": sum(one.mean_ns * one.count for one in latencies) / frames / 1e3 if frames else None,
        "latency_p99_9_us": _microseconds(max(tails, default=None)),
        "latency_maximum_us": _microseconds(max((latency.maximum_ns for latency in latencies), default=None)),
    }


def _badness(result: Result) -> tuple[float, float]:
    """Returns a sort key for intervals: by loss, then by the highest latency."""
    return _number(result, "loss_percent"), _number(result, "latency_maximum_us")


def _number(result: Result, name: str) -> float:
    value = number_of(result.values.get(name))
    return -1.0 if value is None else value


def _known_number(result: Result, name: str) -> float | None:
    value = result.values.get(name)
    return float(value) if isinstance(value, int | float) else None


def _interval(result: Result) -> str:
    return str(result.parameters.get("interval", result.values.get("interval")))


def _rename(what: str, result: Result) -> Result:
    """Returns the result with the interval renamed for the terminal: "worst: 7"."""
    values = {name: value for name, value in result.values.items() if name != "interval"}
    parameters = {**result.parameters, "interval": f"{what}: {_interval(result)}"}
    return result.replace(parameters=parameters, values=values)


def _microseconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e3
