"""Every search on the same 450 simulated DUTs: what it costs and how far its answers are from the truth.

    .venv/bin/python -m tests.simulated.compare --seed 1

An answer is equal to another's where its interval is as narrow (0.5 %) and its lower bound has passed a trial of 60 s.
Bisection is run for NDR and for PDR apart, as its users do, and its trials are added up; the others look for both at
once.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from nicbench.search.base import NDR, PDR, Goal, Limits, Outcome, Search, SearchOptions
from nicbench.search.bisect import Bisect
from nicbench.search.estimate import EstimateSearch
from nicbench.search.mlr import Mlr
from nicbench.search.step_down import StepDown, StepDownOptions

from ._classes import FULL_S, OF_EACH_CLASS, TRIAL_S, Subject, subjects

GOALS = (NDR, PDR)
FEWER = 5
"""DUTs with a neighbour are fewer by this factor: each takes more than a second to compute."""


@dataclass(frozen=True)
class Answer:
    """What one search found on one DUT, and its cost."""

    outcomes: dict[str, Outcome]
    trials: int
    traffic_s: float


@dataclass(frozen=True)
class Contestant:
    """A search with its durations; ``apart``: one search for each goal."""

    name: str
    search: Search
    trial_s: float
    validation_s: float | None
    apart: bool

    def answer(self, subject: Subject) -> Answer:
        """Runs it on one DUT."""
        limits = subject.limits(self.trial_s, self.validation_s)
        parts = [
            self._run(subject, goals, limits) for goals in ([(goal,) for goal in GOALS] if self.apart else [GOALS])
        ]
        return Answer(
            {name: outcome for part in parts for name, outcome in part.outcomes.items()},
            sum(part.trials for part in parts),
            sum(part.traffic_s for part in parts),
        )

    def _run(self, subject: Subject, goals: Sequence[Goal], limits: Limits) -> Answer:
        machine = subject.machine()
        outcomes = self.search.run(machine.measure, goals, limits)
        return Answer(outcomes, len(machine.trials), sum(sample.duration_s for sample in machine.trials))


BY_THE_LETTER = SearchOptions(trials_per_bound=1)
CONTESTANTS = (
    Contestant("step-down, 1 s + 60 s", StepDown(StepDownOptions(trials_per_bound=1)), TRIAL_S, FULL_S, apart=False),
    Contestant("bisect, 60 s", Bisect(BY_THE_LETTER), FULL_S, None, apart=True),
    Contestant("bisect, 1 s + 60 s", Bisect(BY_THE_LETTER), TRIAL_S, FULL_S, apart=True),
    Contestant("mlr, 1 s + 60 s", Mlr(BY_THE_LETTER), TRIAL_S, FULL_S, apart=False),
    Contestant("estimate, 1 s + 60 s", EstimateSearch(), TRIAL_S, FULL_S, apart=False),
)
PEERS = CONTESTANTS[1:3]
MLR, ESTIMATE = CONTESTANTS[3:]


@dataclass(frozen=True)
class Row:
    """One search on one class. Errors are shares of the true rate; an answer without a rate has none."""

    class_name: str
    search: str
    errors: dict[str, list[float]]
    unanswered: int
    unsettled: int
    trials: list[int]
    traffic_s: list[float]
    """Of the transmissions, pauses apart."""


def compare(
    seed: int, contestants: Iterable[Contestant] = CONTESTANTS, of_each: int = OF_EACH_CLASS, classes: str = ""
) -> list[Row]:
    """All rows, class by class; only of classes whose name begins with ``classes``."""
    rows = []
    contestants = list(contestants)
    for class_name, drawn in subjects(seed, of_each).items():
        if not class_name.startswith(classes):
            continue
        members = drawn[: max(1, of_each // FEWER)] if drawn[0].neighbour else drawn
        truths = [{goal.name: subject.truth(goal) for goal in GOALS} for subject in members]
        for contestant in contestants:
            answers = [contestant.answer(subject) for subject in members]
            rows.append(_row(class_name, contestant.name, truths, answers))
    return rows


def _row(class_name: str, search: str, truths: Sequence[dict[str, float]], answers: Sequence[Answer]) -> Row:
    errors: dict[str, list[float]] = {goal.name: [] for goal in GOALS}
    for truth, answer in zip(truths, answers, strict=True):
        for name, outcome in answer.outcomes.items():
            if outcome.rate.value is not None:
                errors[name].append(abs(outcome.rate.value / truth[name] - 1.0))
    outcomes = [outcome for answer in answers for outcome in answer.outcomes.values()]
    return Row(
        class_name,
        search,
        errors,
        unanswered=sum(outcome.rate.value is None for outcome in outcomes),
        unsettled=sum(not outcome.converged for outcome in outcomes),
        trials=[answer.trials for answer in answers],
        traffic_s=[answer.traffic_s for answer in answers],
    )


def table(rows: Iterable[Row]) -> str:
    """The rows in Markdown: medians, and after the slash the worst."""
    lines = [
        "| DUTs | search | NDR error [%] | PDR error [%] | no rate | not settled | trials | traffic [s] |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            row.class_name,
            row.search,
            *(_pair(row.errors[goal.name], lambda error: f"{error * 100:.2f}") for goal in GOALS),
            f"{row.unanswered}",
            f"{row.unsettled}",
            _pair(row.trials, lambda count: f"{count:.0f}"),
            _pair(row.traffic_s, lambda seconds: f"{seconds:.0f}"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _pair(values: Sequence[float], words: Callable[[float], str]) -> str:
    return f"{words(statistics.median(values))} / {words(max(values))}" if values else "-"


def main() -> None:
    """Prints the seed and the table."""
    parser = argparse.ArgumentParser(description="every search on the same 450 simulated DUTs")
    parser.add_argument("--seed", type=int, default=None, help="draw the same DUTs again")
    parser.add_argument("--only", default="", help="searches whose name begins so")
    parser.add_argument("--classes", default="", help="classes whose name begins so")
    parser.add_argument("--each", type=int, default=OF_EACH_CLASS, help="this many DUTs of each class")
    options = parser.parse_args()
    seed = options.seed
    seed = secrets.randbits(32) if seed is None else seed
    contestants = [one for one in CONTESTANTS if one.name.startswith(options.only)]
    print(f"seed {seed}\n\n{table(compare(seed, contestants, options.each, options.classes))}")


if __name__ == "__main__":
    main()
