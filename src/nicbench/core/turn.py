"""A turn: one run of one configuration. The turns of a bench file are interleaved, so that drift hits all alike.

Each configuration is measured so often as was asked, or as often as it takes to know the mean closely.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.core.base import Frozen

MOST_RUNS: Final = 1000


class Runs(Frozen):
    """Of each configuration ``warm_up`` runs first, which count for nothing, then ``at_least`` and ``at_most`` so many.

    With ``until_ratio``, whole rounds of all configurations go on until the confidence interval of the mean of every
    main value is no wider than this share of the mean. It is the full width, as in netperf's ``-I``: 0.05 is ±2.5 %.
    """

    warm_up: int = 0
    at_least: int = 1
    at_most: int = 1
    until_ratio: float | None = None
    confidence_ratio: float | None = None

    @property
    def grows(self) -> bool:
        """Whether their number depends on what they find."""
        return self.until_ratio is not None

    @property
    def words(self) -> str:
        """How many of each configuration: "1 to warm up, then 3 to 20 until ...", "5"."""
        first = f"{self.warm_up} to warm up, then " if self.warm_up else ""
        if self.until_ratio is None or self.confidence_ratio is None:
            return f"{first}{self.at_most}"
        interval = f"the {100.0 * self.confidence_ratio:g} % confidence interval of the mean of each main value"
        until = f"until {interval} is at most {100.0 * self.until_ratio:g} % of the mean wide"
        return f"{first}{self.at_least} to {self.at_most}, {until}"

    def may_end(self, made: int, configurations: int) -> bool:
        """Whether so many runs of each can be all: of several configurations only whole pairs (A B, B A), or the cap.

        A pair that is cut in two would leave a steady drift in the comparison.
        """
        if made >= self.at_most:
            return True
        return self.grows and made >= self.at_least and (configurations == 1 or made % 2 == 0)

    def fewest_runs(self, configurations: int) -> int:
        """After how many runs of each it can end at the earliest."""
        return next(made for made in range(1, self.at_most + 1) if self.may_end(made, configurations))


ONCE: Final = Runs()


class RunCounts(Frozen):
    """What was asked, and what came of it: ``made`` runs of each configuration, without those that warmed up."""

    asked: Runs
    made: int
    reached: bool | None = None
    """Whether every main value is known as closely as was asked; None where their number is fixed."""


_WARM_UP: Final = " (warm-up)"
DEFAULT: Final = "default"
"""What the configuration of a bench file is called that compares none."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The ``number``-th of so many turns (``of``, at most): run ``run`` (from 1) of a configuration.

    Runs that warm up come first and are counted along; they are part of no statistics.
    """

    configuration: str = DEFAULT
    run: int = 1
    number: int = 1
    of: int = 1
    warm_up: bool = False
    at_most: bool = False
    """``of`` is the cap of a number that grows."""

    def key(self, name: str) -> str:
        """A trial's key, or a result's id, in the whole run; one turn alone leaves it as it is."""
        return name if self.of == 1 else f"{self.configuration}/{self.run}/{name}"

    @property
    def short(self) -> str:
        """In a list of turns: "fast 2", "fast 1 (warm-up)"."""
        return f"{self.configuration} {self.run}{_WARM_UP if self.warm_up else ''}"

    def __str__(self) -> str:
        return f"{self.configuration}, {run_words(self.run, warm_up=self.warm_up)}"


ALONE: Final = Turn()
"""The only one."""


def run_words(run: int, *, warm_up: bool) -> str:
    """What a run of a configuration is called: "run 3", "run 1 (warm-up)"."""
    return f"run {run}{_WARM_UP if warm_up else ''}"


def interleave_turns(configurations: Sequence[str], runs: int | Runs, seed: int) -> tuple[Turn, ...]:
    """Every turn that there can be, in the order in which they are made; a number of runs that grows ends early.

    Each run has every configuration once. Runs come in pairs: the order of the first is drawn, the second goes through
    it backwards (A B, B A). So each configuration has the same mean place within a pair, and what drifts steadily (a
    machine that warms up) shifts none against another; that the first is drawn keeps what comes and goes by the clock
    from always meeting the same one. A pair that is not complete, and so a single run, has the draw alone. Runs that
    warm up come before the first pair, in an order of their own: with or without them, the pairs are the same.
    """
    asked = Runs(at_least=runs, at_most=runs) if isinstance(runs, int) else runs
    order = [
        *_draw_pairs(configurations, asked.warm_up, f"order of configurations that warm up {seed}"),
        *_draw_pairs(configurations, asked.at_most, f"order of configurations {seed}"),
    ]
    warm_ups = asked.warm_up * len(configurations)
    made = dict.fromkeys(configurations, 0)
    turns = []
    for number, configuration in enumerate(order, start=1):
        made[configuration] += 1
        run = made[configuration]
        turns.append(Turn(configuration, run, number, len(order), number <= warm_ups, asked.grows))
    return tuple(turns)


def _draw_pairs(configurations: Sequence[str], runs: int, seed: str) -> list[str]:
    pairs = random.Random(seed)  # noqa: S311 - not a secret
    order: list[str] = []
    drawn: list[str] = []
    for run in range(runs):
        drawn = drawn[::-1] if run % 2 else pairs.sample(configurations, len(configurations))
        order += drawn
    return order
