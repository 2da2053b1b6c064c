"""The fits behind estimated rates: the trials at each frame size with what explains their rates, and the fitted lines.

The trials are those of the run folder, and the lines are fitted to them again, so that runs of earlier versions have
them too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nicbench.core.clocks.reference_clock import ReferenceClock
from nicbench.core.plan import PlannedTest
from nicbench.core.result import Bounded, LimitedBy, number_of
from nicbench.core.table import Goal as TableGoal
from nicbench.core.trial import Trial
from nicbench.report.section import Row, Section
from nicbench.search.base import Goal, Limits, Sample, lowest_load
from nicbench.stats.looks import sum_looks

if TYPE_CHECKING:  # SciPy loads slowly, and most reports estimate nothing
    from nicbench.search import FittedLine

LEAST_SHARE: Final = 0.02
"""A chart over the share of slow looks tells something where a trial reached this share."""
LEAST_CHANGE: Final = 0.02
"""A chart over the clock tells something where the clocks of two trials differ by more than this, relatively."""
_CONFIDENCE: Final = 0.95
"""The confidence of an estimate whose test does not state it."""


@dataclass(frozen=True, slots=True)
class RateFit:
    """The trials at one frame size, and a line for each goal whose rate is an estimate of theirs."""

    row: Row
    samples: tuple[Sample, ...]
    lines: Mapping[str, FittedLine]

    @property
    def highest_share(self) -> float:
        """The largest share of slow looks in any trial."""
        return max((sample.slow_share or 0.0 for sample in self.samples), default=0.0)

    @property
    def clocks_hz(self) -> tuple[float, ...]:
        """The clocks of the core in the trials in which it was measured."""
        return tuple(sample.clock_hz for sample in self.samples if sample.clock_hz is not None)

    @property
    def clock_changed(self) -> bool:
        """Whether the clocks of the trials differ enough to be told from errors of their measurement."""
        return bool(self.clocks_hz) and max(self.clocks_hz) > (1.0 + LEAST_CHANGE) * min(self.clocks_hz)

    @property
    def is_shared(self) -> bool:
        """Whether others used the core in more than a few looks of a trial."""
        return self.highest_share >= LEAST_SHARE


def returned_frames_per_s(sample: Sample) -> float:
    """Returns the rate of the frames that came back of a trial, in the time in which it sent."""
    return sample.load_frames_per_s * min(1.0, sample.sent_share) * (1.0 - sample.counts.loss_ratio)


def rate_fits(section: Section) -> tuple[RateFit, ...]:
    """Returns the fit of each frame size of a section with estimated rates; empty for any other section."""
    rates, plan = section.table.rates, section.known.plan
    test = next((one for one in plan.tests if one.name == section.test), None) if plan else None
    if rates is None or not rates.estimated or plan is None or test is None:
        return ()
    watched = frozenset(plan.cores.get("dut") or ())
    fits = []
    for row in section.rows:
        trials = [section.known.trials[name] for name in row.result.trials if name in section.known.trials]
        samples = tuple(
            _sample(trial, watched, plan.reference_clock) for trial in trials if trial.request.load_frames_per_s
        )
        if samples:
            fits.append(RateFit(row, samples, _lines(row, samples, rates.goals, test)))
    return tuple(fits)


def _sample(trial: Trial, watched: Collection[int], reference: ReferenceClock | None) -> Sample:
    """Converts a trial to what its search saw of it."""
    reading = trial.reading
    seen = sum_looks(cpu for cpu in reading.health.cpus if not watched or cpu.cpu in watched)
    return Sample(
        load_frames_per_s=trial.request.load_frames_per_s or 0.0,
        duration_s=trial.request.duration_s,
        counts=reading.counts,
        valid=trial.verdict.valid,
        adjusted=trial.verdict.adjusted,
        slow_share=seen.slow_share,
        looks=seen.looks,
        independent_looks=seen.independent if seen.looks else None,
        clock_hz=seen.clock_hz,
        highest_clock_hz=seen.highest_clock_hz,
        reference_clock=reference,
        pacing_uncertainty=reading.health.held_up_ns / max(1, reading.transmit_ns),
        trial_ids=(trial.id,),
    )


def _lines(row: Row, samples: Sequence[Sample], goals: Sequence[TableGoal], test: PlannedTest) -> dict[str, FittedLine]:
    from nicbench.search import fit_line  # imported here, as SciPy loads slowly

    search = test.options.get("search")
    options: Mapping[str, Any] = search if isinstance(search, Mapping) else {}
    limits = _limits(row, samples, options)
    found = {}
    for goal in goals:
        rate = row.result.values.get(goal.value)
        if not isinstance(rate, Bounded) or goal.loss_ratio is None:
            continue
        asked = Goal(name=goal.name, loss_ratio=goal.loss_ratio)
        line = fit_line(samples, asked, limits, float(options.get("confidence", _CONFIDENCE)), rate)
        if line is not None:
            found[goal.name] = line
    return found


def _limits(row: Row, samples: Sequence[Sample], options: Mapping[str, Any]) -> Limits:
    """Returns the limits of the finished search, as far as they bear on its fit."""
    values = row.result.values
    bounds = [number_of(values.get(f"{name}_frames_per_s")) for name in ("line_rate", "ceiling")]
    highest = max(sample.load_frames_per_s for sample in samples)
    maximum = min((bound for bound in bounds if bound), default=highest)
    return Limits(
        minimum_load_frames_per_s=lowest_load(float(options.get("minimum_load", maximum / 2.0)), maximum),
        maximum_load_frames_per_s=maximum,
        maximum_limited_by=LimitedBy.LINE_RATE,
        precision=float(options.get("precision", 0.005)),
        trial_duration_s=min(sample.duration_s for sample in samples),
        maximum_trials=len(samples),
    )
