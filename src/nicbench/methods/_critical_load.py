"""The critical load as a soak estimates it: options and results, with the final estimate and how it narrowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.frame_size import Size, size_label, size_parameters
from nicbench.core.quantity import FramesPerSecond, Ratio
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict, counted_number
from nicbench.core.table import Column, Narrowing, ResultTable
from nicbench.core.trial import Purpose
from nicbench.methods._results import Values
from nicbench.methods._trial_times import Duration, Pause, TrialTimes
from nicbench.methods.base import Context
from nicbench.search import COVERAGE, Course, CriticalLoadSearch, Estimate
from nicbench.search.base import Ended, Goal, Limits, Outcome, check_loads, highest_load, lowest_load

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
            Column(value="size", head="Frame", unit="bytes", form="text"),
            Column(value="after", head="After trial", form="text"),
            Column(value="seconds", head="Time", unit="s", form="number"),
            Column(value="load_frames_per_s", head="Load of the trial"),
            Column(value="loss_percent", head="Its loss", unit="%", form="of_frames"),
            Column(
                value="critical_load_frames_per_s",
                head="Critical load",
                unit="Mpps",
                form="mpps",
                is_main=True,
                better="higher",
            ),
            Column(value="critical_load_lower_frames_per_s", head="from"),
            Column(value="critical_load_upper_frames_per_s", head="to"),
            Column(value="stretch_average_frames_per_s", head="stretch: average"),
            Column(value="stretch_deviation_frames_per_s", head="deviation", unit="frames/s", form="number"),
            Column(value="erf_average_frames_per_s", head="erf: average"),
            Column(value="erf_deviation_frames_per_s", head="deviation", unit="frames/s", form="number"),
            Column(value="limited_by", head="Limited by", form="text"),
        ),
        sentences=("loses the target share of {size} frames at {critical_load_frames_per_s}",),
        notes=(("limit", "The estimate"),),
        narrowing=Narrowing(
            x=Column(value="seconds", head="time of all trials", unit="s"),
            y=Column(value="critical_load_frames_per_s", head="critical load"),
            lower="critical_load_lower_frames_per_s",
            upper="critical_load_upper_frames_per_s",
            lines=Column(value="size", head="Frame", unit="bytes", form="text"),
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
