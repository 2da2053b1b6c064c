"""The greatest rate that is kept up: trials of a ramp and a sustain phase (RFC 9411 section 4.3.4), in halves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import Field

from nicbench.core.connections import ConnectionsSpec
from nicbench.core.quantity import Ratio
from nicbench.core.result import Bounded, LimitedBy, Result
from nicbench.core.units import format_digits
from nicbench.methods._round_figures import ROUND_OVERHEAD_S, PlayedRounds, cpu_values
from nicbench.methods.base import RoundContext, Values
from nicbench.methods.connections._figures import Outcome, bounded, figures_of
from nicbench.methods.connections._options import ConnectionOptions, Way, request_of, words_of_point
from nicbench.methods.tables.connection_capacity import Fill, most_held

EXPECTED_AMONG_PASSED: Final = 4.6
"""Where fewer wrong answers than this are to be expected in the trial that passed, it may have had none by chance
(e^-4.6, one in a hundred): then their share is not shown to depend on the load."""
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
        return tuple(shorter_phases(self.ramp, self.duration))


def shorter_phases(ramp_s: float, sustain_s: float) -> Iterator[str]:
    """Yields which phases of a trial are shorter than RFC 9411 asks for."""
    if sustain_s < STANDARD_SUSTAIN_S:
        yield f"a sustain phase of {sustain_s:g} s, RFC 9411 asks for {STANDARD_SUSTAIN_S:g} s and more"
    if ramp_s < STANDARD_RAMP_S:
        yield f"a ramp of {ramp_s:g} s, RFC 9411 asks for {STANDARD_RAMP_S:g} s and more"


@dataclass
class Found:
    """What a search found: what passed and what did not, the best round that passed, and the first that did not."""

    passed: int
    failed: int | None
    played: PlayedRounds
    best: Outcome | None
    worst: Outcome | None
    wrong: int = 0
    """Wrong answers of all trials that did not pass, among ``asked``."""
    asked: int = 0
    is_cut_off: bool = False
    """Whether the search ended at a trial that gave no figures."""

    @property
    def is_client_late(self) -> bool:
        """Whether nothing failed, but the client could not offer more."""
        return self.failed is None and self.worst is not None

    @property
    def is_broken(self) -> bool:
        """Whether wrong answers come at every load, as far as the trial that passed can tell."""
        if not self.wrong:
            return False
        passed = self.best.asked if self.best is not None else 0
        return passed * self.wrong / self.asked < EXPECTED_AMONG_PASSED

    @property
    def unfit(self) -> str | None:
        """Why there is no result, in words; None where there is one."""
        if self.is_cut_off:
            return "a trial gave no figures"
        if self.is_broken:
            share = f"{format_digits(100 * self.wrong / self.asked, 2)} % of the answers are wrong ({self.why})"
            return f"{share}, and nothing shows that fewer are at a lower load"
        return None

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
            spec = spec_at(number)
            request = request_of(way, spec, options.duration)
            played.add(await context.play({**point, "asked": number}, request))
            figures = figures_of(played.rounds[-1])
            if figures is None:
                raise _CutOffError
            outcome = Outcome(figures, options.duration, is_of_held=spec.task == "hold")
            if outcome.is_limited_by_client:
                best = Fill(min(made_of(outcome), number - 1), True)
                found.worst = found.worst or outcome
                continue
            if passes(outcome, number):
                found.best = outcome
                return Fill(number, True)
            if not outcome.is_late:
                found.wrong += outcome.wrong_answers
                found.asked += outcome.asked
            if least_failed is None or number <= least_failed:
                least_failed, found.worst = number, outcome
            best = best or Fill(number, False)
        return best or Fill(number, False)

    try:
        found.passed, found.failed = await most_held(trial, most, options.precision)
        if found.worst is not None and found.worst.is_late:
            found.failed = None  # what failed first beside a client that was late is not shown to be the DUT's
    except _CutOffError:
        found.is_cut_off = True
    return found


class _CutOffError(Exception):
    """A trial gave no figures, also when it was repeated."""


def _value_of(found: Found, limit: LimitedBy) -> Bounded:
    if found.unfit is not None:
        return Bounded(value=None, reason_null=found.unfit)
    return bounded(found.passed, found.failed, limit, found.why or "nothing could be measured")


def _words_of_limit(found: Found) -> str | None:
    if found.is_cut_off:
        return None
    if found.is_broken:
        return "wrong answers"
    if found.failed is not None:
        return "DUT or server"
    return "client" if found.is_client_late else "highest that was tried"


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
    limit = LimitedBy.TESTER if found.is_client_late else LimitedBy.MAXIMUM_LOAD
    client = next(end for end in context.clients if end.name == way.clients[0].name)
    rounds = found.played.rounds[-1:]
    return Result(
        id=name,
        method=kind,
        scope="all clients together",
        parameters=parameters,
        values={
            main: _value_of(found, limit),
            "row": words_of_point(parameters),
            **(found.best.times() if found.best and not found.unfit else {}),
            **(values if not found.unfit else {}),
            **cpu_values(rounds, context.servers[0].machine, "server"),
            **cpu_values(rounds, client.machine, "client"),
            "limited_by": _words_of_limit(found),
            "limit": found.unfit or found.why or None,
            "trials": len(found.played.rounds),
        },
        verdict=found.played.verdict(found.unfit is not None),
        disturbances=found.played.disturbances,
        trials=found.played.round_ids,
    )
