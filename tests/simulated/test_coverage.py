"""Answers of searches against rates that are computed before: they hold them, and cost no more trials than they may.

Three broken searches fail the same check. `python -m tests.simulated.test_coverage 1000` prints the table of
docs/searches.md.
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

from nicbench.search._recording import Recorder
from nicbench.search._zones import outcomes_of
from nicbench.search.base import NDR, PDR, Goal, Limits, Measure, Outcome, Sample, Search
from nicbench.search.guided import Guided
from nicbench.search.mlr import Mlr
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
    widths: list[float] = field(default_factory=list)

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
                found.widths.append(1.0 - outcome.rate.lower / outcome.rate.upper)
    return found


def documented_trials() -> dict[str, int]:
    """The median number of trials of each class, as docs/searches.md has it."""
    rows = re.findall(
        r"^\| ([a-z ]+) \| [\d.]+ % \| [\d.]+ % \| (\d+) / \d+ \|", SEARCHES.read_text(), flags=re.MULTILINE
    )
    return {name: int(median) for name, median in rows}


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("worlds", [30, pytest.param(1000, marks=pytest.mark.acceptance)])
def test_answers_hold_the_true_rates(name: str, worlds: int) -> None:
    found = tally(Guided(), name, range(worlds))
    assert found.share >= (0.8 if name in BY_CHANCE else 0.9), found
    assert statistics.median(found.trials) <= 1.2 * documented_trials()[name] + 1


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


@pytest.mark.parametrize("broken", [Optimist(), Hasty(), Patient()], ids=lambda search: type(search).__name__)
def test_a_broken_search_fails(broken: Search) -> None:
    shares = {name: tally(broken, name, range(60)).share for name in ("sharp", "noise", "livelock", "queue")}
    assert min(shares.values()) < 0.8, shares


if __name__ == "__main__":
    many = int(sys.argv[1])
    for name in CLASSES:
        for search in (Guided(), Mlr(), StepDown()):
            found = tally(search, name, range(many if search.kind == "guided" else many // 10))
            print(
                f"| {name} | {search.kind} | {100 * found.share:.1f} % | "
                f"{100 * statistics.median(found.widths or [0.0]):.2f} % | "
                f"{statistics.median(found.trials):.0f} / {max(found.trials)} | "
                f"{statistics.median(found.took_s):.0f} / {max(found.took_s):.0f} |",
                flush=True,
            )
