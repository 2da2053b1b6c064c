"""Several runs of a configuration: for each result of a run, the same over all runs, median and range.

Where the number of runs grows, the main values also have the interval of their mean, which it waits for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from nicbench.model.rate import Bounded
from nicbench.model.result import Result, ResultVerdict, Value
from nicbench.model.runs import ONCE, Runs
from nicbench.model.spread import MeanInterval, Spread
from nicbench.stats.intervals import mean_interval

MainValues = Callable[[Result], tuple[str, ...]]
"""The names of those values of a result that are waited for."""
_Numbers = list[Bounded | int | float]


def over_runs(
    results: Iterable[Result], asked: Runs = ONCE, main: MainValues = lambda _: (), seed: int | None = None
) -> tuple[Result, ...]:
    """One for each point of each configuration; none where one run alone counts. Runs that warm up are left out.

    With a ``seed`` the main values have their statistics, the intervals by resamples drawn of it.
    """
    grouped: dict[tuple[str, ...], list[Result]] = {}
    results = tuple(result for result in results if not result.warm_up)
    if len({result.run for result in results}) < 2:
        return ()
    for result in results:
        point = json.dumps(result.parameters, sort_keys=True)
        key = (result.configuration, result.test or "", result.method, result.scope, point)
        grouped.setdefault(key, []).append(result)
    return tuple(
        _described(members, _over(members, _runs_of(results, configuration), asked, main), main(members[0]), seed)
        for (configuration, *_), members in grouped.items()
    )


def _runs_of(results: Sequence[Result], configuration: str) -> int:
    """How many runs of it there are: as many as a point should have."""
    return len({result.run for result in results if result.configuration == configuration})


def _over(members: Sequence[Result], runs: int, asked: Runs, main: MainValues) -> Result:
    first = members[0]
    names = dict.fromkeys(name for member in members for name in member.values)
    awaited = main(first) if asked.grows else ()
    return Result(
        id=first.id.replace(f"/{first.run}/", "/", 1),
        test=first.test,
        method=first.method,
        configuration=first.configuration,
        scope=first.scope,
        parameters=first.parameters,
        values={
            name: _value(
                [member.values.get(name) for member in members],
                runs,
                partial(_of_mean, runs=runs, asked=asked) if name in awaited else None,
            )
            for name in names
        },
        verdict=max((member.verdict for member in members), key=list(ResultVerdict).index),
        disturbances=tuple(f"run {member.run}: {text}" for member in members for text in member.disturbances),
        trials=tuple(trial for member in members for trial in member.trials),
        near_tester_limit=tuple(near for member in members for near in member.near_tester_limit or ()),
    )


def _described(members: Sequence[Result], over: Result, main: Sequence[str], seed: int | None) -> Result:
    """With the statistics of the main values; also of one that is the same in all runs."""
    if seed is None:
        return over
    from nicbench.stats.bootstrap import (
        Asked,  # here: where nothing is described NumPy, which loads slowly, is not needed
    )
    from nicbench.stats.described import described

    values = dict(over.values)
    for name in main:
        had = [member.values.get(name) for member in members]
        found = described([member.run or 1 for member in members], list(map(_number, had)), Asked(seed))
        if found is None:
            continue
        spread = values[name]
        if not isinstance(spread, Spread):
            known = [value for value in had if isinstance(value, Bounded | int | float)]
            spread = Spread.of(known, len(members))
        values[name] = spread.model_copy(update={"statistics": found})
    return over.model_copy(update={"values": values})


def _value(values: Sequence[Value], runs: int, of_mean: Callable[[_Numbers], MeanInterval] | None = None) -> Value:
    """What is the same in all runs, is no rate with an interval, and is not waited for, stays as it is."""
    first = values[0]
    if of_mean is None and not isinstance(first, Bounded) and len(set(values)) == 1 and len(values) == runs:
        return first
    if isinstance(first, str):
        return first if len(set(values)) == 1 else None
    known = [value for value in values if isinstance(value, Bounded | int | float) and _number(value) is not None]
    if known and of_mean is not None:
        return Spread.of(known, runs).model_copy(update={"of_mean": of_mean(known)})
    if known:
        return Spread.of(known, runs)
    bounded = [value for value in values if isinstance(value, Bounded)]
    if not bounded:
        return None
    uppers = [value.upper for value in bounded if value.upper is not None]
    reasons = dict.fromkeys(value.reason_null for value in bounded if value.reason_null)
    return Bounded(value=None, upper=max(uppers, default=None), reason_null="; ".join(reasons) or None)


def _of_mean(known: _Numbers, runs: int, asked: Runs) -> MeanInterval:
    """A mean of some of the runs is not that of all."""
    numbers = [number for value in known if (number := _number(value)) is not None]
    found = mean_interval(numbers, asked.confidence_ratio or 0.0, asked.until_ratio or 0.0)
    return found if len(numbers) == runs else found.model_copy(update={"reached": False})


def _number(value: Value) -> float | None:
    value = value.value if isinstance(value, Bounded) else value
    return float(value) if isinstance(value, int | float) else None
