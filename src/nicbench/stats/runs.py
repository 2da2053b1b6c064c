"""Several runs of a configuration: for each result of a run, the same over all runs, median and range."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from nicbench.model.rate import Bounded
from nicbench.model.result import Result, ResultVerdict, Value
from nicbench.model.spread import Spread


def over_runs(results: Iterable[Result]) -> tuple[Result, ...]:
    """One for each point of each configuration; none where there is one run alone."""
    grouped: dict[tuple[str, ...], list[Result]] = {}
    results = tuple(results)
    runs = max((result.run or 1 for result in results), default=1)
    if runs == 1:
        return ()
    for result in results:
        point = json.dumps(result.parameters, sort_keys=True)
        key = (result.configuration, result.test or "", result.method, result.scope, point)
        grouped.setdefault(key, []).append(result)
    return tuple(_over(members, _runs_of(results, configuration)) for (configuration, *_), members in grouped.items())


def _runs_of(results: Sequence[Result], configuration: str) -> int:
    """How many runs of it there are: as many as a point should have."""
    return len({result.run for result in results if result.configuration == configuration})


def _over(members: Sequence[Result], runs: int) -> Result:
    first = members[0]
    names = dict.fromkeys(name for member in members for name in member.values)
    return Result(
        id=first.id.replace(f"/{first.run}/", "/", 1),
        test=first.test,
        method=first.method,
        configuration=first.configuration,
        scope=first.scope,
        parameters=first.parameters,
        values={name: _value([member.values.get(name) for member in members], runs) for name in names},
        verdict=max((member.verdict for member in members), key=list(ResultVerdict).index),
        disturbances=tuple(f"run {member.run}: {text}" for member in members for text in member.disturbances),
        trials=tuple(trial for member in members for trial in member.trials),
        near_tester_limit=tuple(near for member in members for near in member.near_tester_limit or ()),
    )


def _value(values: Sequence[Value], runs: int) -> Value:
    """What is the same in all runs, and is no rate with an interval, stays as it is."""
    first = values[0]
    if not isinstance(first, Bounded) and len(set(values)) == 1 and len(values) == runs:
        return first
    if isinstance(first, str):
        return first if len(set(values)) == 1 else None
    known = [value for value in values if isinstance(value, Bounded | int | float) and _number(value) is not None]
    if known:
        return Spread.of(known, runs)
    bounded = [value for value in values if isinstance(value, Bounded)]
    if not bounded:
        return None
    uppers = [value.upper for value in bounded if value.upper is not None]
    reasons = dict.fromkeys(value.reason_null for value in bounded if value.reason_null)
    return Bounded(value=None, upper=max(uppers, default=None), reason_null="; ".join(reasons) or None)


def _number(value: Value) -> float | None:
    value = value.value if isinstance(value, Bounded) else value
    return float(value) if isinstance(value, int | float) else None
