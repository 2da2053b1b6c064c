"""The sum of all instances of each run, measured or of imported instances, as results that statistics rest on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from nicbench.model.result import Result
from nicbench.model.result import ResultVerdict as Verdict
from nicbench.stats.frames_runs import INSTANCES, RUNS, SUM, Ran, tried

SCOPE: Final = "sum of the instances"


def sums_of_runs(results: Iterable[Result]) -> tuple[Result, ...]:
    """One for each run of each number of instances; unknown where the rate of an instance is."""
    by_test: dict[str | None, list[Result]] = {}
    for result in results:
        if result.parameters.get("part") in (RUNS, INSTANCES):
            by_test.setdefault(result.test, []).append(result)
    return tuple(
        _result(test, point, ran)
        for test, members in by_test.items()
        for point, found in tried(members).items()
        for ran in found.runs
    )


def _result(test: str | None, point: tuple[str, str | None, int], ran: Ran) -> Result:
    configuration, direction, instances = point
    values = {SUM: ran.figures.sum_frames_per_s}
    if ran.whole is not None:
        return ran.whole.model_copy(update={"values": {**ran.whole.values, **values}, "scope": SCOPE})
    first = next(one for one in ran.instances if one is not None)
    place: dict[str, Any] = {"part": RUNS, **({"direction": direction} if direction else {}), "instances": instances}
    return Result(
        id=f"{first.id}/sum",
        test=test,
        method=first.method,
        configuration=configuration,
        run=first.run,
        scope=SCOPE,
        parameters=place if first.run is not None else {**place, "run": ran.run},
        values={**values},
        verdict=max((one.verdict for one in ran.instances if one is not None), key=list(Verdict).index),
    )
