"""A turn: one run of one configuration. The turns of a bench file are interleaved, so that drift affects all equally.

Each configuration is measured a fixed number of times, or until the mean is known precisely enough.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from nicbench.core.base import Frozen
from nicbench.core.frozen import frozen

MOST_RUNS: Final = 1000


class Runs(Frozen):
    """The number of runs of each configuration: ``warm_up`` uncounted ones, then ``at_least`` to ``at_most``.

    With ``until_ratio``, complete passes over all configurations are repeated until the confidence interval of the mean
    of every main value is at most this share of the mean wide. It is the full width, as in netperf's ``-I``: 0.05 is
    ±2.5 %.
    """

    warm_up: int = 0
    at_least: int = 1
    at_most: int = 1
    until_ratio: float | None = None
    confidence_ratio: float | None = None

    @property
    def grows(self) -> bool:
        """Whether the number of runs depends on their results."""
        return self.until_ratio is not None

    @property
    def words(self) -> str:
        """The number of runs of each configuration in words: "1 to warm up, then 3 to 20 until ...", "5"."""
        first = f"{self.warm_up} to warm up, then " if self.warm_up else ""
        if self.until_ratio is None or self.confidence_ratio is None:
            return f"{first}{self.at_most}"
        interval = f"the {100.0 * self.confidence_ratio:g} % confidence interval of the mean of each main value"
        until = f"until {interval} is at most {100.0 * self.until_ratio:g} % of the mean wide"
        return f"{first}{self.at_least} to {self.at_most}, {until}"

    def may_end(self, made: int, configurations: int) -> bool:
        """Whether ``made`` runs of each configuration can be all: only after complete pairs, or at the maximum.

        Pairs (A B, B A) matter where there are several configurations: a pair that is cut in two would leave a steady
        drift in the comparison.
        """
        if made >= self.at_most:
            return True
        return self.grows and made >= self.at_least and (configurations == 1 or made % 2 == 0)

    def fewest_runs(self, configurations: int) -> int:
        """Returns the smallest number of runs of each configuration after which the measurement can end."""
        return next(made for made in range(1, self.at_most + 1) if self.may_end(made, configurations))


ONCE: Final = Runs()


class RunCounts(Frozen):
    """The requested and the actual numbers of runs: ``made`` runs of each configuration, without warm-up runs."""

    asked: Runs
    made: int
    reached: bool | None = None
    """Whether every main value is known as precisely as requested; None where the number of runs is fixed."""


_WARM_UP: Final = " (warm-up)"
DEFAULT: Final = "default"
"""The name of the single configuration of a bench file that compares none."""


@frozen
class Turn:
    """Turn ``number`` of ``of`` (at most): run ``run`` (from 1) of a configuration.

    Warm-up runs come first and have numbers, too; they enter no statistics.
    """

    configuration: str = DEFAULT
    run: int = 1
    number: int = 1
    of: int = 1
    warm_up: bool = False
    at_most: bool = False
    """Whether ``of`` is the maximum of a number of runs that depends on the results."""

    def key(self, name: str) -> str:
        """Returns the name of a trial's key or a result's id in the whole run; with a single turn, it is unchanged."""
        return name if self.of == 1 else f"{self.configuration}/{self.run}/{name}"

    @property
    def short(self) -> str:
        """The turn as shown in a list of turns: "fast 2", "fast 1 (warm-up)"."""
        return f"{self.configuration} {self.run}{_WARM_UP if self.warm_up else ''}"

    def __str__(self) -> str:
        return f"{self.configuration}, {run_words(self.run, warm_up=self.warm_up)}"


ALONE: Final = Turn()
"""The turn of a run that has only one."""


def run_words(run: int, *, warm_up: bool) -> str:
    """Returns the name of a run of a configuration: "run 3", "run 1 (warm-up)"."""
    return f"run {run}{_WARM_UP if warm_up else ''}"


def interleave_turns(configurations: Sequence[str], runs: int | Runs, seed: int) -> tuple[Turn, ...]:
    """Returns all possible turns in their order; with a variable number of runs, the sequence may end early.

    Each run has every configuration once. Runs come in pairs: the order of the first is drawn, the second reverses it
    (A B, B A). So each configuration has the same mean position within a pair, and a steady drift (a machine that warms
    up) does not favour any of them; as the order is drawn, a periodic disturbance does not always hit the same
    configuration. An incomplete pair, and so a single run, has the drawn order only. Warm-up runs come before the first
    pair, in an order of their own: with or without them, the pairs are the same.
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
    order = []
    drawn: list[str] = []
    for run in range(runs):
        drawn = drawn[::-1] if run % 2 else pairs.sample(configurations, len(configurations))
        order += drawn
    return order


# Axes: what a study varies, each with its values by name. Every combination is a configuration of its own.


Axes = Mapping[str, Sequence[str]]
"""The values of each axis by name, in the order of the bench file; empty where nothing is varied."""


def combinations(axes: Axes) -> Iterator[dict[str, str]]:
    """Yields the value of each axis in every combination; the last axis varies fastest."""
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def combination_name(chosen: Mapping[str, str]) -> str:
    """Returns the name of a combination's configuration: "queues-4_cores-2"; signs and blanks become hyphens."""
    return "_".join(_NO_NAME.sub("-", f"{axis}-{value}").strip("-") for axis, value in chosen.items())


_NO_NAME: Final = re.compile(r"[^A-Za-z0-9.]+")
