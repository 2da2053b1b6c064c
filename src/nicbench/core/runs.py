"""How often each configuration is measured: so many runs, or as many as it takes to know the mean closely."""

from __future__ import annotations

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
