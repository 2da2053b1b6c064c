"""Steps down as hardware testers do: from the line rate in steps until nothing is lost (RFC 2544 section 26.1).

After the first load that passes, the step is divided by ten, from the load that failed last, until the interval is as
narrow as ``precision`` asks for; with ``refine: false`` the first step is the interval. A ``start`` below the maximum
only saves trials: where it passes, the maximum is tried next.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from nicbench.core.quantity import Ratio
from nicbench.search._recording import DrivenSearch, Recorder
from nicbench.search._zones import Zones
from nicbench.search.base import Goal, Limits, Measure, Outcome, Sample, SearchOptions

REFINEMENT_DIVISOR = 10.0
"""Each refinement divides the step by this."""
SENT = 0.25
"""The load that is sent differs from the one that was asked for by less than this part of the precision."""


class StepDownOptions(SearchOptions):
    """``start`` and ``step`` are shares of the maximum load: the line rate, or what the tester can send where that is
    less.
    """

    start: Ratio = Field(default=1.0, gt=0.0)
    """Where the search begins, as a share of the line rate or of what the tester can send. Where that passes, 100 % is
    tried next.
    """
    step: Ratio = Field(default=0.1, gt=0.0)
    """How far down the next load is."""
    refine: bool = True
    """After the first load that passes, go on in steps of a tenth until `precision`. `false`: the interval is one step
    wide.
    """


class StepDown(DrivenSearch):
    """Tries one load after the other, downwards."""

    kind = "step-down"
    how = (
        "steps down as hardware testers do: from the line rate in steps until nothing is lost (RFC 2544 section 26.1)."
    )
    Options = StepDownOptions

    def __init__(self, options: SearchOptions | None = None) -> None:
        super().__init__(options)
        self._steps = StepDownOptions.model_validate(self.options.model_dump())

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        """Runs the search as the base does; without refinement, an interval of one step is narrow enough."""
        if not self._steps.refine:
            coarse = (self._steps.step + SENT * limits.precision) * limits.maximum_load_frames_per_s
            limits = limits.replace(step_frames_per_s=coarse)
        return super().run(measure, goals, limits)

    def drive(self, recorder: Recorder, goals: Sequence[Goal]) -> None:
        """Begins at ``start``."""
        limits = recorder.limits
        load = max(limits.minimum_load_frames_per_s, self._steps.start * limits.maximum_load_frames_per_s)
        recorder.measure(load, limits.trial_duration_s)
        super().drive(recorder, goals)

    def choose(
        self, zones: Zones, gap: tuple[float | None, float | None], samples: Sequence[Sample], limits: Limits
    ) -> float:
        lower, upper = gap
        if upper is None:
            return limits.maximum_load_frames_per_s
        step = self._steps.step * limits.maximum_load_frames_per_s
        if lower is None:
            return upper - step
        room = upper - lower - SENT * limits.precision * upper
        while step > room:
            step /= REFINEMENT_DIVISOR
        return upper - max(step, min(room, limits.precision * upper))
