"""A run whose rates are estimated: the method and its search themselves, on a simulated DUT with a neighbour."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nicbench.core.events import TrialFinished
from nicbench.core.frame_size import Size
from nicbench.core.result import Result
from nicbench.core.trial import CpuTime, Health, Reading, StreamReading, Trial, TrialRequest
from nicbench.core.units import line_rate_frames_per_s
from nicbench.core.verdict import Finding, Reason, Verdict
from nicbench.methods.base import SearchResult
from nicbench.methods.throughput import Throughput
from nicbench.search._simulated import SimulatedDut, SimulatedMachine
from nicbench.search._simulated_neighbour import SimulatedNeighbour
from nicbench.search.base import Goal, Limits, Sample, Search
from nicbench.stats.looks import sum_looks

from ._synthetic import SyntheticRun

SHARED_ABOVE = 0.04
"""A trial that found the core shared in a larger share of samples counts only because the search adjusts."""


def options(sizes: tuple[int, ...]) -> dict[str, Any]:
    return {
        "frame_bytes": sizes,
        "search": {"kind": "estimate", "precision": 0.02, "maximum_trials": 9, "validation": 0.0},
        "trial": {"duration": 1.0, "drain": 0.2, "settle": 0.1},
    }


class EstimatedContext:
    """Trials of simulated machines, one for each frame size, written to a synthetic run."""

    def __init__(self, run: SyntheticRun, machines: Mapping[int, SimulatedMachine]) -> None:
        self._run, self._machines, self._made = run, machines, 0

    def sizes(self, written: tuple[int, ...]) -> tuple[Size, ...]:
        return tuple(written)

    def line_rate_frames_per_s(self, size: int) -> float:
        return line_rate_frames_per_s(10e9, size)

    def known_rate_frames_per_s(self, trial_s: float) -> None:
        return None

    async def ceiling_frames_per_s(self, size: int) -> float:
        return 1e6

    async def search(
        self, search: Search, point: dict[str, Any], request: TrialRequest, goals: tuple[Goal, ...], limits: Limits
    ) -> SearchResult:
        names: list[str] = []

        def measure(load: float, duration_s: float) -> Sample:
            sample = self._machines[int(request.frame_bytes)].measure(load, duration_s)
            asked = request.model_copy(update={"load_frames_per_s": load, "duration_s": duration_s})
            names.append(self._write(sample, asked))
            adjusted = (sample.slow_share or 0.0) > SHARED_ABOVE
            seen = sum_looks((looked_at(sample),))  # as a trial of the run folder has them
            independent = seen.independent if seen.looks else None
            update = {"trial_ids": (names[-1],), "adjusted": adjusted, "independent_looks": independent}
            return sample.model_copy(update=update)

        outcomes = search.run(measure, goals, limits)
        return SearchResult(outcomes=outcomes, trial_ids=tuple(names), traffic_s=float(len(names)))

    def publish(self, result: Result) -> None:
        self._run.publish("throughput", result)

    def _write(self, sample: Sample, request: TrialRequest) -> str:
        share = sample.slow_share or 0.0
        finding = Finding(
            reason=Reason.DUT_DISTURBED,
            threshold="dut_contended_share",
            value=share,
            limit=SHARED_ABOVE,
            text=f"another tenant used the physical core of the DUT's core 1 in {100 * share:.1f} % of samples, "
            "limit 50.0 %",
        )
        shared = share > SHARED_ABOVE
        self._made += 1
        trial = Trial(
            id=f"t{self._made:04}",
            key=f"throughput/{request.frame_bytes}/{self._made}",
            test="throughput",
            configuration="default",
            parameters={"frame_bytes": request.frame_bytes},
            repeat=0,
            request=request,
            reading=Reading(
                transmit_ns=int(request.duration_s * 1e9),
                counts=sample.counts,
                streams=(StreamReading(name="forward", counts=sample.counts, maximum_burst=32),),
                ports=(),
                latency=None,
                health=Health(cpus=(looked_at(sample),), longest_gap_ns=0, total_gap_ns=0),
            ),
            verdict=Verdict(findings=(finding,) if shared else (), adjusted=shared),
            at_s=1.4 * self._made,
        )
        self._run.folder.journal.append(TrialFinished(trial=trial))
        return trial.id


def looked_at(sample: Sample) -> CpuTime:
    return CpuTime(
        cpu=1,
        user_ns=0,
        nice_ns=0,
        system_ns=0,
        softirq_ns=10**9,
        irq_ns=0,
        steal_ns=0,
        idle_ns=0,
        speed_samples=sample.looks or None,
        slow_samples=None if sample.slow_share is None else round(sample.slow_share * sample.looks),
        clock_hz=sample.clock_hz,
        highest_clock_hz=sample.highest_clock_hz,
    )


def estimate(run: SyntheticRun, machines: Mapping[int, SimulatedMachine]) -> None:
    """Measures the throughput of each machine's frame size, and plans it so."""
    asked = options(tuple(machines))
    method = Throughput("throughput", Throughput.Options.model_validate(asked))
    plan = run.plan()
    planned = plan.tests[0].model_copy(update={"options": method.options.model_dump(mode="json")})
    run.folder.write_json("plan.json", plan.model_copy(update={"tests": (planned,)}))
    asyncio.run(method.run(EstimatedContext(run, machines)))  # type: ignore[arg-type]


CALM = ((0.1, 0.0),)


def machine(
    seed: int, *, busy: bool = True, capacity: float = 400_000.0, clocks: tuple[float, ...] = (1.0,)
) -> SimulatedMachine:
    """A simulated DUT; where its core is not ``busy`` nobody else uses it, and its clock is one of ``clocks``."""
    neighbour = SimulatedNeighbour(clocks=clocks, regime_s=5.0)
    neighbour = neighbour if busy else replace(neighbour, regimes=CALM)
    return SimulatedMachine(SimulatedDut(capacity), seed, neighbour=neighbour)
