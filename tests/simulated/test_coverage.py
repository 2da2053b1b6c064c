"""Answers of searches against rates that are computed before: they hold them, are no wider and cost no more trials than
docs/searches.md says.

Four broken searches fail the same check. `python -m tests.simulated.test_coverage 1000` prints the table of that page,
beside the MLRsearch package by itself.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.simulated.worlds import CLASSES, draw_world, holds

from nicbench.core.result import Bounded
from nicbench.search._recording import Recorder
from nicbench.search._zones import outcomes_of
from nicbench.search.base import NDR, PDR, Goal, Limits, Measure, Outcome, Sample, Search
from nicbench.search.guided import Guided, Mlr
from nicbench.search.step_down import StepDown

SEARCHES = Path(__file__).resolve().parents[2] / "docs/searches.md"
GOALS = (NDR, PDR)
BY_CHANCE = ("soft", "linear loss")
"""Losses that begin slowly: half of the trials pass over a range of loads, of which an interval may miss one."""


@dataclass
class Tally:
    """What one search did in the worlds of one class."""

    held: int = 0
    of: int = 0
    trials: list[int] = field(default_factory=list)
    took_s: list[float] = field(default_factory=list)
    widths: dict[str, list[float]] = field(default_factory=lambda: {goal.name: [] for goal in GOALS})

    @property
    def width(self) -> tuple[float, ...]:
        """The median width of the intervals of each goal."""
        return tuple(statistics.median(widths or [0.0]) for widths in self.widths.values())

    @property
    def share(self) -> float:
        return self.held / self.of


def tally(search: Search, name: str, worlds: range, time_s: float | None = None) -> Tally:
    """Runs a search in worlds of a class."""
    found = Tally()
    for number in worlds:
        world = draw_world(name, number)
        outcomes = search.run(world.measure, GOALS, world.limits(time_s=time_s))
        found.trials.append(len(world.trials))
        found.took_s.append(world.now_s)
        for goal in GOALS:
            outcome = outcomes[goal.name]
            found.of += 1
            found.held += holds(world, goal, outcome.rate)
            if outcome.rate.upper and outcome.rate.lower:
                found.widths[goal.name].append(1.0 - outcome.rate.lower / outcome.rate.upper)
    return found


def documented() -> dict[str, tuple[float, float, int]]:
    """The median widths and number of trials of each class, as docs/searches.md has them."""
    rows = re.findall(
        r"^\| ([a-z ]+) \| [\d.]+ % \| ([\d.]+), ([\d.]+) % \| (\d+) / \d+ \|",
        SEARCHES.read_text(),
        flags=re.MULTILINE,
    )
    return {name: (float(ndr) / 100.0, float(pdr) / 100.0, int(median)) for name, ndr, pdr, median in rows}


def find_faults(name: str, found: Tally) -> list[str]:
    """What is wrong with the answers in the worlds of a class."""
    *widths, trials = documented()[name]
    faults = {
        "they do not hold the rate": found.share < (0.85 if name in BY_CHANCE else 0.9),
        "they are too wide": any(seen > 2.0 * known + 0.005 for seen, known in zip(found.width, widths, strict=True)),
        "they took too many trials": statistics.median(found.trials) > 1.2 * trials + 1,
    }
    return [what for what, is_so in faults.items() if is_so]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("worlds", [30, pytest.param(1000, marks=pytest.mark.acceptance)])
def test_answers_hold_the_true_rates_and_are_narrow(name: str, worlds: int) -> None:
    found = tally(Guided(), name, range(worlds))
    assert not find_faults(name, found), found


@pytest.mark.parametrize("name", ["noise", "neighbour", "autocorrelated", "paused tester", "sharp"])
def test_answers_in_ten_seconds_hold_them_too(name: str) -> None:
    found = tally(Guided(), name, range(60), time_s=12.0)
    assert found.share >= 0.85, found
    assert max(found.took_s) <= 13.5


@pytest.mark.parametrize("name", ["sharp", "queue", "capped", "short tester", "rare loss"])
def test_a_sharp_limit_takes_four_to_six_trials(name: str) -> None:
    found = tally(Guided(), name, range(60))
    assert statistics.median(found.trials) <= 6


class Optimist(Guided):
    """Broken: takes the rate that came back from the flood for the answer."""

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        flood = measure(limits.maximum_load_frames_per_s, 0.3)
        outcomes = {}
        for goal in goals:
            found = outcomes_of([flood], [goal], limits)[goal.name]
            value = flood.sent_frames_per_s * (1.0 - flood.counts.loss_ratio)
            rate = found.rate.replace(value=value, lower=value, upper=value * 1.005)
            outcomes[goal.name] = found.replace(rate=rate)
        return outcomes


class Hasty(Guided):
    """Broken: one pass and one failure are enough, whatever else the trials say."""

    def drive(self, recorder: Recorder, goals: Sequence[Goal]) -> None:
        recorder.limits = recorder.limits.replace(maximum_trials=4)
        super().drive(recorder, goals)


class Patient(Guided):
    """Broken: waits for whatever a queue holds back, and takes it for throughput."""

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        def wait(load: float, duration_s: float) -> Sample:
            return measure(load, duration_s).replace(queued_s=None)

        return super().run(wait, goals, limits)


class Vague(Guided):
    """Broken: holds every rate by an interval that says little."""

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        found = super().run(measure, goals, limits)
        return {name: one.replace(rate=_widen(one.rate)) for name, one in found.items()}


def _widen(rate: Bounded) -> Bounded:
    if rate.lower is None or rate.upper is None:
        return rate
    return rate.replace(value=0.8 * rate.lower, lower=0.8 * rate.lower, upper=1.2 * rate.upper, some=None, half=None)


@pytest.mark.parametrize("broken", [Optimist(), Hasty(), Patient(), Vague()], ids=lambda one: type(one).__name__)
def test_a_broken_search_fails(broken: Search) -> None:
    assert any(find_faults(name, tally(broken, name, range(60))) for name in ("sharp", "noise", "livelock", "queue"))


class Package(Search):
    """The published MLRsearch package as it is: both goals at once, its own bounds, two trials for each of them."""

    kind = "package"

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        from MLRsearch import Config, MultipleLossRatioSearch, SearchGoal

        asked = {
            goal.name: SearchGoal(
                loss_ratio=goal.loss_ratio,
                relative_width=limits.precision,
                initial_trial_duration=limits.trial_duration_s,
                final_trial_duration=limits.trial_duration_s,
                duration_sum=2 * limits.trial_duration_s,
                preceding_targets=1,
                fail_fast=False,
            )
            for goal in goals
        }
        config = Config()
        config.max_load = 2 * max(config.max_load, limits.maximum_load_frames_per_s)
        config.min_load = limits.minimum_load_frames_per_s
        config.max_load = limits.maximum_load_frames_per_s
        config.goals = list(asked.values())
        config.search_duration_max = 1e12
        config.warmup_duration = None
        samples = []

        class Measurer:
            def measure(self, intended_duration: float, intended_load: float) -> object:
                if len(samples) >= limits.maximum_trials:
                    raise TimeoutError
                samples.append(measure(intended_load, intended_duration))
                counts = samples[-1].counts
                return MeasurementResult(
                    intended_duration, intended_load, counts.offered, counts.failed, intended_count=counts.intended
                )

        from MLRsearch import MeasurementResult

        bounds = dict.fromkeys(asked, (None, None))
        try:
            found = MultipleLossRatioSearch(config=config).search(measurer=Measurer(), debug=lambda _: None)
            for name, goal in asked.items():
                ends = found[goal].relevant_lower_bound, found[goal].relevant_upper_bound
                bounds[name] = tuple(None if one is None else float(one) for one in ends)
        except TimeoutError:
            pass
        return {
            name: Outcome(
                goal=name, rate=Bounded(value=lower, lower=lower, upper=upper, n=len(samples)), is_settled=True
            )
            for name, (lower, upper) in bounds.items()
        }


if __name__ == "__main__":
    many = int(sys.argv[1])
    for name in CLASSES:
        cells = []
        for search, worlds in (
            (Guided(), many),
            (Package(), many // 10),
            (Mlr(), many // 16),
            (StepDown(), many // 16),
        ):
            found = tally(search, name, range(worlds))
            ndr, pdr = (100.0 * width for width in found.width)
            width = [f"{ndr:.2f}, {pdr:.2f} %"] if search.kind == "guided" else []
            trials = f"{statistics.median(found.trials):.0f} / {max(found.trials)}"
            held = f"{100.0 * found.share:.1f} %"
            cells += [held, *width, trials] if width else [f"{held}, {trials}"]
        print(f"| {' | '.join((name, *cells))} |", flush=True)
