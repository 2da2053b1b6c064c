"""Throughput (RFC 2544 section 26.1): the highest rate at which the DUT loses no frame (NDR), or only a share (PDR).

Steps, for each frame size: the tester's own ceiling is known, measured without a DUT; a search looks, between a minimum
load and min(line rate, ceiling), for the highest load that meets each goal; every load is one judged trial. Verified:
each frame is recognised by its signature, its payload compared, and a trial that the tester spoilt is not the DUT's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from nicbench.methods._trial_times import RFC_2544_FRAME_BYTES, TrialTimes
from nicbench.methods.base import Context, Method
from nicbench.model.base import Frozen
from nicbench.model.frame_size import FrameSize, Size, size_label, size_parameters
from nicbench.model.quantity import FramesPerSecond, Ratio
from nicbench.model.rate import Bounded, LimitedBy
from nicbench.model.result import Result, ResultVerdict
from nicbench.model.trial import Purpose
from nicbench.registry import find
from nicbench.search.base import Goal, Limits, Outcome, Search

NDR_AND_PDR = {"NDR": 0.0, "PDR": 0.005}


class SearchChoice(Frozen):
    """Which search, for which loss ratios, how narrow, and how many trials at most per frame size."""

    kind: str = "mlr"
    goals: dict[str, Ratio] = Field(default_factory=lambda: dict(NDR_AND_PDR), min_length=1)
    precision: Ratio = 0.005
    maximum_trials: int = Field(default=60, ge=2)
    minimum_load: FramesPerSecond = 1000.0
    trials_per_bound: int = Field(default=3, ge=1, le=21)

    def build(self) -> Search:
        """The search itself."""
        kind = find("nicbench.search", Search)[self.kind]
        return kind(kind.Options(trials_per_bound=self.trials_per_bound))


class Throughput(Method):
    """The throughput of each frame size."""

    kind: ClassVar[str] = "throughput"

    class Options(Frozen):
        """Options of the bench file."""

        frame_bytes: tuple[FrameSize, ...] = Field(default=RFC_2544_FRAME_BYTES, min_length=1)
        search: SearchChoice = SearchChoice()
        trial: TrialTimes = TrialTimes()

    options: Options

    def points(self) -> int:
        return len(self.options.frame_bytes)

    def frame_sizes(self) -> tuple[int | str, ...]:
        return self.options.frame_bytes

    def estimate_s(self) -> float:
        return self.options.trial.estimate_s(self.points() * self.options.search.maximum_trials)

    def deviations(self) -> tuple[str, ...]:
        votes = self.options.search.trials_per_bound
        majority = f"a bound is settled by the majority of {votes} trials, RFC 2544 section 26.1 uses one"
        return (*self.options.trial.deviations(), *((majority,) if votes > 1 else ()))

    async def run(self, context: Context) -> tuple[Result, ...]:
        results = []
        for size in context.sizes(self.options.frame_bytes):
            result = await self._measure_size(context, size)
            context.publish(result)
            results.append(result)
        return tuple(results)

    async def _measure_size(self, context: Context, size: Size) -> Result:
        options = self.options.search
        times = self.options.trial
        line_rate = context.line_rate_frames_per_s(size)
        ceiling = await context.ceiling_frames_per_s(size)
        tester_first = ceiling is not None and ceiling < line_rate
        maximum = min(line_rate, ceiling if ceiling is not None else line_rate)
        limits = Limits(
            minimum_load_frames_per_s=min(options.minimum_load, maximum / 2),
            maximum_load_frames_per_s=maximum,
            maximum_limited_by=LimitedBy.TESTER if tester_first else LimitedBy.LINE_RATE,
            precision=options.precision,
            trial_duration_s=times.duration,
            maximum_trials=options.maximum_trials,
        )
        goals = tuple(Goal(name=name, loss_ratio=ratio) for name, ratio in options.goals.items())
        request = times.request(size, None, Purpose.SEARCH)
        found = await context.search(options.build(), size_parameters(size), request, goals, limits)
        rates = {name.lower(): outcome.rate for name, outcome in found.outcomes.items()}
        return Result(
            id=f"{self.name}/{size_label(size)}",
            method=self.kind,
            scope="per port",
            parameters=size_parameters(size),
            values={
                **{f"{name}_frames_per_s": rate for name, rate in rates.items()},
                **{f"{name}_percent_of_line_rate": _percent(rate, line_rate) for name, rate in rates.items()},
                "line_rate_frames_per_s": line_rate,
                "ceiling_frames_per_s": ceiling,
                "search_trials": len(found.trial_ids),
                "search_traffic_s": found.traffic_s,
            },
            verdict=_verdict(found.outcomes),
            disturbances=_notes(found.outcomes),
            trials=found.trial_ids,
        )


def _percent(rate: Bounded, line_rate: float) -> float | None:
    """The same basis on both sides: one port, one direction."""
    return None if rate.value is None else 100.0 * rate.value / line_rate


def _verdict(outcomes: Mapping[str, Outcome]) -> ResultVerdict:
    """Without one usable trial nothing is known of the DUT, which is not the same as a DUT that passes nothing."""
    if any(outcome.trials == 0 for outcome in outcomes.values()):
        return ResultVerdict.INCOMPLETE
    disturbed = any(outcome.disturbed for outcome in outcomes.values())
    return ResultVerdict.DISTURBED if disturbed else ResultVerdict.VALID


def _notes(outcomes: Mapping[str, Outcome]) -> tuple[str, ...]:
    return tuple(f"{name}: {note}" for name, outcome in outcomes.items() for note in outcome.notes)
