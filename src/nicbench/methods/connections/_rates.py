"""The greatest rate that is kept up: trials of a ramp and a sustain phase (RFC 9411 section 4.3.4), in halves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from nicbench.core.connections import ConnectionsSpec
from nicbench.core.quantity import Ratio
from nicbench.core.result import LimitedBy, Result, ResultVerdict
from nicbench.methods._round_figures import ROUND_OVERHEAD_S, PlayedRounds, cpu_values
from nicbench.methods.base import RoundContext, Values
from nicbench.methods.connections._figures import Outcome, bounded, figures_of
from nicbench.methods.connections._options import ConnectionOptions, Way, request_of
from nicbench.methods.tables.connection_capacity import Fill, most_held

STANDARD_RAMP_S, STANDARD_SUSTAIN_S = 180.0, 300.0
"""RFC 9411 section 4.3.4: a ramp of at least 180 s, a sustain phase of at least 300 s."""


class SearchedOptions(ConnectionOptions):
    """Options of the methods that look for a greatest rate or number."""

    precision: Ratio = 0.02
    """The search ends where its interval is no wider than this share of its upper bound."""
    loss_verification: int = Field(default=1, ge=0, le=10)
    """A trial with failures is made so many times more before it counts."""

    def searched_s(self, most: int, trial_s: float) -> float:
        """Returns an upper estimate of the time of one search, in seconds."""
        trials, left = 1, 1.0
        while left > max(self.precision, 1.0 / most):
            trials, left = trials + 1, left / 2.0
        return trials * (1 + self.loss_verification) * (trial_s + self.connect_within + ROUND_OVERHEAD_S)

    def deviations(self) -> tuple[str, ...]:
        """Returns where the times of a trial fall short of the RFC."""
        texts = []
        if self.duration < STANDARD_SUSTAIN_S:
            texts.append(f"a sustain phase of {self.duration:g} s, RFC 9411 asks for {STANDARD_SUSTAIN_S:g} s and more")
        if self.ramp < STANDARD_RAMP_S:
            texts.append(f"a ramp of {self.ramp:g} s, RFC 9411 asks for {STANDARD_RAMP_S:g} s and more")
        return tuple(texts)


@dataclass
class Found:
    """What a search found: what passed and what did not, the best round that passed, and the first that did not."""

    passed: int
    failed: int | None
    played: PlayedRounds
    best: Outcome | None
    worst: Outcome | None

    @property
    def why(self) -> str:
        """What went wrong above the result, in words; "" where nothing did."""
        return self.worst.words if self.worst is not None else ""


async def find_most(
    context: RoundContext,
    options: SearchedOptions,
    way: Way,
    point: dict[str, Any],
    most: int,
    spec_at: Callable[[int], ConnectionsSpec],
    passes: Callable[[Outcome, int], bool],
    made_of: Callable[[Outcome], int],
) -> Found:
    """Looks for the greatest whole number up to ``most`` at which a trial passes (``most_held``).

    ``made_of`` says what was really offered, where the client could not offer what it was asked to.
    """
    played = PlayedRounds()
    found = Found(0, None, played, None, None)
    least_failed: int | None = None

    async def trial(number: int) -> Fill:
        nonlocal least_failed
        best: Fill | None = None
        for _ in range(1 + options.loss_verification):
            request = request_of(way, spec_at(number), options.duration)
            played.add(await context.play({**point, "asked": number}, request))
            figures = figures_of(played.rounds[-1])
            if figures is None:
                return Fill(number, False)
            outcome = Outcome(figures, options.duration)
            if outcome.is_late and not outcome.failures:
                best = Fill(min(made_of(outcome), number - 1), True)
                found.worst = found.worst or outcome
                continue
            if passes(outcome, number):
                found.best = outcome
                return Fill(number, True)
            if least_failed is None or number <= least_failed:
                least_failed, found.worst = number, outcome
            best = best or Fill(number, False)
        return best or Fill(number, False)

    found.passed, found.failed = await most_held(trial, most, options.precision)
    return found


def result_of(
    context: RoundContext,
    way: Way,
    name: str,
    kind: str,
    parameters: dict[str, Any],
    main: str,
    found: Found,
    values: Values,
) -> Result:
    """Returns the result of a search: the value, the times of the best round that passed, and what limited it."""
    nothing = found.best is None and all(figures_of(one) is None for one in found.played.rounds)
    late = found.failed is None and found.worst is not None
    limit = LimitedBy.TESTER if late else LimitedBy.MAXIMUM_LOAD
    why = found.why or "nothing could be measured"
    client = next(end for end in context.clients if end.name == way.clients[0].name)
    rounds = found.played.rounds[-1:]
    return Result(
        id=name,
        method=kind,
        scope="all clients together",
        parameters=parameters,
        values={
            main: bounded(found.passed, found.failed, limit, why),
            **(found.best.times() if found.best else {}),
            **values,
            **cpu_values(rounds, context.servers[0].machine, "server"),
            **cpu_values(rounds, client.machine, "client"),
            "limited_by": "client" if late else "highest that was tried" if found.failed is None else "DUT or server",
            "limit": found.why or None,
            "trials": len(found.played.rounds),
        },
        verdict=ResultVerdict.INCOMPLETE if nothing else found.played.verdict(False),
        disturbances=found.played.disturbances,
        trials=found.played.round_ids,
    )
