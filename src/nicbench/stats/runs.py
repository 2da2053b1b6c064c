"""Summarises several runs of a configuration: the same result over all runs, and whether the runs are enough."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from nicbench.core.frame_size import size_words
from nicbench.core.frozen import frozen
from nicbench.core.result import (
    Bounded,
    FoundInterval,
    MeanInterval,
    OutlierRun,
    Result,
    ResultVerdict,
    RunStatistics,
    Spread,
    Value,
    counted_number,
)
from nicbench.core.turn import DEFAULT, ONCE, RunCounts, Runs
from nicbench.core.units import count_of, format_digits, name_in_words
from nicbench.stats.bootstrap import Interval, IntervalSpec, bootstrap_mean, bootstrap_median
from nicbench.stats.intervals import mean_interval
from nicbench.stats.sample import Values, describe, outliers

MainValues = Callable[[Result], tuple[str, ...]]
"""Returns the names of a result's main values: those whose intervals decide whether runs are enough."""
_Numbers = list[Bounded | int | float]
_SIZE_PARAMETERS: Final = frozenset({"frame_bytes", "mix", "size"})


def describe_runs(runs: Sequence[int], values: Values, asked: IntervalSpec) -> RunStatistics | None:
    """Computes the statistics of one value over runs; None where no value is known.

    ``runs`` are the numbers of the runs, in the order of their values.
    """
    sample = describe(values)
    if sample.mean is None or sample.median is None or sample.minimum is None or sample.maximum is None:
        return None
    far = outliers(values)
    return RunStatistics(
        n=sample.n,
        mean=sample.mean,
        median=sample.median,
        minimum=sample.minimum,
        maximum=sample.maximum,
        sample_standard_deviation=sample.sample_standard_deviation,
        population_standard_deviation=sample.population_standard_deviation,
        coefficient_of_variation=sample.coefficient_of_variation,
        median_interval=_to_record(bootstrap_median(values, asked)),
        mean_interval=_to_record(bootstrap_mean(values, asked)),
        outliers=tuple(OutlierRun(run=runs[one.place], value=one.value) for one in far.found),
        outlier_rule=far.rule.value,
        outlier_note=far.note,
    )


def _to_record(interval: Interval) -> FoundInterval:
    return FoundInterval(
        lower=interval.lower,
        upper=interval.upper,
        confidence_ratio=interval.confidence_ratio,
        method=interval.method.value,
        resamples=interval.resamples,
        seed=interval.seed,
        notes=interval.notes,
    )


def summarise_over_runs(
    results: Iterable[Result], asked: Runs = ONCE, main: MainValues = lambda _: (), seed: int | None = None
) -> tuple[Result, ...]:
    """Summarises each point of each configuration over its runs; empty where there is only one run.

    Warm-up runs are left out. With a ``seed`` the main values have their statistics, with intervals from resamples.
    """
    grouped: dict[tuple[str, ...], list[Result]] = {}
    results = tuple(result for result in results if not result.warm_up)
    if len({result.run for result in results}) < 2:
        return ()
    scopes = {_point_of(result): result.scope for result in reversed(results) if result.trials}
    for result in results:
        # Where nothing was measured in a run, it is not known of how many ports the rates would have been.
        scope = result.scope if result.trials else scopes.get(_point_of(result), result.scope)
        grouped.setdefault((*_point_of(result), scope), []).append(result)
    return tuple(
        _add_statistics(
            members, _summarise(members, _runs_of(results, configuration), asked, main), main(members[0]), seed
        )
        for (configuration, *_), members in grouped.items()
    )


def _point_of(result: Result) -> tuple[str, ...]:
    point = json.dumps(result.parameters, sort_keys=True)
    return result.configuration, result.test or "", result.method, point


def _runs_of(results: Sequence[Result], configuration: str) -> int:
    """Counts the runs of a configuration, which is how many results each point should have."""
    return len({result.run for result in results if result.configuration == configuration})


def _summarise(members: Sequence[Result], runs: int, asked: Runs, main: MainValues) -> Result:
    first = members[0]
    names = dict.fromkeys(name for member in members for name in member.values)
    awaited = main(first) if asked.grows else ()
    return Result(
        id=first.id.replace(f"/{first.run}/", "/", 1),
        test=first.test,
        method=first.method,
        configuration=first.configuration,
        scope=next((member.scope for member in members if member.trials), first.scope),
        parameters=first.parameters,
        values={
            name: _summarise_value(
                [member.values.get(name) for member in members],
                runs,
                partial(_mean_of_runs, runs=runs, asked=asked) if name in awaited else None,
            )
            for name in names
        },
        verdict=max((member.verdict for member in members), key=list(ResultVerdict).index),
        disturbed_runs=sum(member.verdict is ResultVerdict.DISTURBED for member in members),
        disturbances=tuple(f"run {member.run}: {text}" for member in members for text in member.disturbances),
        trials=tuple(trial for member in members for trial in member.trials),
        near_tester_limit=tuple(
            near.replace(text=f"run {member.run}: {near.text}")
            for member in members
            for near in member.near_tester_limit or ()
        ),
    )


def _add_statistics(members: Sequence[Result], over: Result, main: Sequence[str], seed: int | None) -> Result:
    """Adds the statistics of the main values, also of those that are equal in all runs.

    A rate at which the DUT passed nothing in any run has none: its reason is stated instead.
    """
    if seed is None:
        return over
    values = dict(over.values)
    for name in main:
        spread = values.get(name)
        if isinstance(spread, Bounded):
            continue
        by_run = [member.values.get(name) for member in members]
        numbers = [counted_number(value) for value in by_run]
        found = describe_runs([member.run or 1 for member in members], numbers, IntervalSpec(seed))
        if found is None:
            continue
        if not isinstance(spread, Spread):
            known = [value for value in by_run if isinstance(value, Bounded | int | float)]
            spread = Spread.of(known, len(members))
        values[name] = spread.replace(statistics=found)
    return over.replace(values=values)


def _summarise_value(
    values: Sequence[Value], runs: int, of_mean: Callable[[_Numbers], MeanInterval] | None = None
) -> Value:
    """Summarises a value over runs; one that is equal in all runs, and not a bounded or main value, stays unchanged.

    A rate of which no run has a number, or at which the DUT passed nothing in every run, keeps bound and reasons.
    """
    first = values[0]
    if of_mean is None and not isinstance(first, Bounded) and len(set(values)) == 1 and len(values) == runs:
        return first
    if isinstance(first, str):
        return first if len(set(values)) == 1 else None
    known = [
        value for value in values if isinstance(value, Bounded | int | float) and counted_number(value) is not None
    ]
    if len(known) == runs and all(isinstance(value, Bounded) and value.passes_nothing for value in known):
        known = []
    if known and of_mean is not None:
        return Spread.of(known, runs).replace(of_mean=of_mean(known))
    if known:
        return Spread.of(known, runs)
    bounded = [value for value in values if isinstance(value, Bounded)]
    if not bounded:
        return None
    uppers = [value.upper for value in bounded if value.upper is not None]
    reasons = dict.fromkeys(value.reason_null for value in bounded if value.reason_null)
    return Bounded(
        value=None,
        upper=max(uppers, default=None),
        reason_null="; ".join(reasons) or None,
        passes_nothing=all(value.passes_nothing for value in bounded),
    )


def _mean_of_runs(known: _Numbers, runs: int, asked: Runs) -> MeanInterval:
    """Computes the interval of the mean; where some runs have no value it is never "reached"."""
    numbers = [number for value in known if (number := counted_number(value)) is not None]
    found = mean_interval(numbers, asked.confidence_ratio or 0.0, asked.until_ratio or 0.0)
    return found if len(numbers) == runs else found.replace(reached=False)


# Whether the runs made so far are enough.


@frozen
class AwaitedValue:
    """One main value of a result over runs; ``place`` identifies the result: "fast: throughput, 64 bytes"."""

    result: Result
    place: str
    name: str
    spread: Spread
    of_mean: MeanInterval

    @property
    def words(self) -> str:
        """The name of the value in words."""
        return name_in_words(self.name)

    @property
    def width(self) -> str:
        """The width of the interval in words, or why it is missing."""
        if self.spread.n < self.spread.runs:
            return f"only {self.spread.n} of {self.spread.runs} runs have a value"
        ratio = self.of_mean.width_ratio
        return "the mean is 0 and the runs differ" if ratio is None else f"the interval is {percent(ratio)} wide"

    @property
    def order(self) -> tuple[bool, float]:
        """A sorting key that grows with the distance from the width asked for."""
        ratio = self.of_mean.width_ratio
        return not self.of_mean.reached, math.inf if ratio is None else ratio


def list_awaited(over_runs: Iterable[Result]) -> tuple[AwaitedValue, ...]:
    """Lists every main value, the one that is farthest from the width asked for first."""
    results = tuple(over_runs)
    found = (
        AwaitedValue(result, _place(result, results), name, value, value.of_mean)
        for result in results
        for name, value in result.values.items()
        if isinstance(value, Spread) and value.of_mean is not None
    )
    return tuple(sorted(found, key=lambda one: one.order, reverse=True))


def _place(result: Result, among: Sequence[Result]) -> str:
    """Names configuration, test, and the parameters that distinguish the result from others of the test."""
    test = [other.parameters for other in among if other.test == result.test]
    telling = [
        f"{name_in_words(key)} {format_digits(value, 6)} %"
        if key.endswith("_percent")
        else f"{name_in_words(key)} {value}"
        for key, value in result.parameters.items()
        if key not in _SIZE_PARAMETERS and any(other.get(key) != value for other in test)
    ]
    whose = "" if result.configuration == DEFAULT else f"{result.configuration}: "
    size = [size_words(result.parameters)] if "frame_bytes" in result.parameters else []
    return f"{whose}{', '.join([result.test or result.method, *size, *telling])}"


def are_settled(over_runs: Iterable[Result]) -> bool:
    """Returns whether every main value is known as closely as was asked. Values that no run has are ignored."""
    return all(one.of_mean.reached for one in list_awaited(over_runs))


def count_runs(
    asked: Runs, results: Iterable[Result], over_runs: Iterable[Result], *, complete: bool
) -> RunCounts | None:
    """Returns the summary's record of the runs; None where their number is fixed and none is a warm-up."""
    if not asked.grows and not asked.warm_up:
        return None
    runs: dict[str, set[int | None]] = {}
    for result in results:
        if not result.warm_up:
            runs.setdefault(result.configuration, set()).add(result.run)
    made = min(map(len, runs.values()), default=0)
    reached = complete and are_settled(over_runs) if asked.grows else None
    return RunCounts(asked=asked, made=made, reached=reached)


def verdict_words(asked: Runs, made: int, over_runs: Iterable[Result]) -> str:
    """Describes the verdict: "reached: the widest interval is 3.2 % wide after 7 runs; 5 % was asked"."""
    values = list_awaited(over_runs)
    wanted = f"{percent(asked.until_ratio or 0.0)} was asked"
    after = f"after {count_of(made, 'run')}"
    if not values:
        return f"no value has an interval {after}; {wanted}"
    worst = values[0]
    if worst.of_mean.reached:
        return f"reached: the widest interval is {percent(worst.of_mean.width_ratio or 0.0)} wide {after}; {wanted}"
    missed = sum(1 for one in values if not one.of_mean.reached)
    others = f", and of {count_of(missed - 1, 'other value')}" if missed > 1 else ""
    return f"not reached: {worst.width} {after}; {wanted} ({worst.place}, {worst.words}{others})"


def percent(ratio: float) -> str:
    """Formats a share in percent with three significant digits: "8.1 %"."""
    return f"{format_digits(100.0 * ratio)} %"
