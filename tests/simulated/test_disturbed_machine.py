"""A machine that is never quiet: a search on it ends within its time budget, and says that it was disturbed."""

from __future__ import annotations

import asyncio

import pytest

from nicbench.core.judging import Thresholds
from nicbench.core.result import LimitedBy
from nicbench.core.trial import Health, Purpose, Reading, Trial, TrialRequest
from nicbench.measure.frame_context import TrialRepeats
from nicbench.measure.samples import Repeats
from nicbench.measure.trial_verdict import Evidence, judge
from nicbench.search._simulated import SimulatedDut, SimulatedMachine
from nicbench.search.base import NDR, PDR, Limits, Sample, Search
from nicbench.search.bisect import Bisect
from nicbench.search.estimate import EstimateSearch
from nicbench.search.mlr import Mlr
from nicbench.search.step_down import StepDown

MAXIMUM_TRIALS = 20
TRIAL_S = 1.3


class NeverQuiet:
    """Every trial is held up for 50 ms; the time that trials take is added up."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        self.repeats = Repeats(MAXIMUM_TRIALS * TRIAL_S, TrialRepeats())
        self._machine = SimulatedMachine(SimulatedDut(400_000, early=1e-4), seed=3)

    def measure(self, load_frames_per_s: float, duration_s: float) -> Sample:
        async def trial_once(repeat: int) -> Trial:
            return self._trial(load_frames_per_s, duration_s, repeat)

        trial, disturbed = asyncio.run(self.repeats.measure(trial_once))
        return Sample(
            load_frames_per_s=load_frames_per_s,
            duration_s=duration_s,
            counts=trial.reading.counts,
            valid=not disturbed,
            trial_ids=(trial.id,),
        )

    def _trial(self, load_frames_per_s: float, duration_s: float, repeat: int) -> Trial:
        reading = Reading(
            transmit_ns=int(duration_s * 1e9),
            counts=self._machine.measure(load_frames_per_s, duration_s).counts,
            streams=(),
            ports=(),
            latency=None,
            health=Health(
                longest_gap_ns=50_000_000,
                total_gap_ns=60_000_000,
                gap_floor_ns=100_000,
                gaps=3,
                iterations=1_000_000,
                idle_iterations=0,
            ),
        )
        trial = Trial(
            id=f"{load_frames_per_s:.0f}/{repeat}",
            key=f"{load_frames_per_s}/{repeat}",
            test="throughput",
            configuration="default",
            parameters={},
            repeat=repeat,
            request=TrialRequest(
                frame_bytes=64,
                load_frames_per_s=load_frames_per_s,
                duration_s=duration_s,
                drain_s=0.2,
                settle_s=0.1,
                purpose=Purpose.SEARCH,
            ),
            reading=reading,
            verdict=judge(Evidence.of(reading), Thresholds()),
        )
        self.spent_s += TrialRepeats().cost_s(trial)
        return trial


@pytest.mark.parametrize("search", [Bisect(), EstimateSearch(), Mlr(), StepDown()], ids=lambda search: search.kind)
def test_an_always_disturbed_machine_ends_within_its_time_budget_as_disturbed(search: Search) -> None:
    machine = NeverQuiet()
    limits = Limits(
        minimum_load_frames_per_s=10_000,
        maximum_load_frames_per_s=1_000_000,
        maximum_limited_by=LimitedBy.TESTER,
        precision=0.05,
        trial_duration_s=1.0,
        maximum_trials=MAXIMUM_TRIALS,
    )
    outcomes = search.run(machine.measure, (NDR, PDR), limits)
    assert machine.spent_s <= MAXIMUM_TRIALS * TRIAL_S * 1.3 + 1e-9
    assert all(outcome.disturbed for outcome in outcomes.values())
    assert outcomes["PDR"].outcome == "interval"
