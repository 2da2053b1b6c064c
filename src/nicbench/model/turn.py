"""A turn: one run of one configuration. The turns of a bench file are interleaved, so that drift hits all alike."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

DEFAULT: Final = "default"
"""What the configuration of a bench file is called that compares none."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The ``number``-th of so many turns (``of``): run ``run`` (from 1) of a configuration."""

    configuration: str = DEFAULT
    run: int = 1
    number: int = 1
    of: int = 1

    def key(self, name: str) -> str:
        """A trial's key, or a result's id, in the whole run; one turn alone leaves it as it is."""
        return name if self.of == 1 else f"{self.configuration}/{self.run}/{name}"

    def __str__(self) -> str:
        return f"{self.configuration}, run {self.run}"


ALONE: Final = Turn()
"""The only one."""


def interleaved(configurations: Sequence[str], runs: int, seed: int) -> tuple[Turn, ...]:
    """Every turn, in the order in which they are made.

    Each run has every configuration once. Runs come in pairs: the order of the first is drawn, the second goes through
    it backwards (A B, B A). So each configuration has the same mean place within a pair, and what drifts steadily (a
    machine that warms up) shifts none against another; that the first is drawn keeps what comes and goes by the clock
    from always meeting the same one. A pair that is not complete, and so a single run, has the draw alone.
    """
    pairs = random.Random(f"order of configurations {seed}")  # noqa: S311 - not a secret
    order: list[tuple[str, int]] = []
    drawn: list[str] = []
    for run in range(1, runs + 1):
        drawn = pairs.sample(configurations, len(configurations)) if run % 2 else drawn[::-1]
        order += [(configuration, run) for configuration in drawn]
    return tuple(
        Turn(configuration, run, number, len(order)) for number, (configuration, run) in enumerate(order, start=1)
    )
