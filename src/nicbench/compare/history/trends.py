"""What differed between the run before a change and the first after it, and whether these may be compared at all."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from nicbench.compare.history.figures import Figure
from nicbench.compare.regressions import (
    FEWEST_RUNS,
    MOST_RUNS,
    Judgement,
    Outcome,
    find_objections,
    judge,
    require_finished,
)
from nicbench.compare.run_differences import Difference, find_differences
from nicbench.core.errors import NicbenchError
from nicbench.core.frozen import frozen
from nicbench.stats.drift import split_at_changes
from nicbench.store.folder import RunFolder


@frozen
class Explanation:
    """What two runs disclose. ``objections`` say why they must not be compared; ``trouble`` why nothing is known."""

    objections: tuple[str, ...] = ()
    settings: tuple[Difference, ...] = ()
    trouble: str | None = None


def explain(before: Path, after: Path) -> Explanation:
    """Finds what differs between two run folders, the most important first."""
    try:
        runs = [require_finished(RunFolder.open(path)) for path in (before, after)]
        for run in runs:
            if isinstance(run, str):
                return Explanation(trouble=run)
        one, other = (run for run in runs if not isinstance(run, str))
        objections = find_objections(other, one)
        settings = () if other.folder.is_imported else find_differences(one.folder, other.folder).settings
        return Explanation(objections, settings)
    except NicbenchError as error:
        return Explanation(trouble=f"a run cannot be read: {error.message}")
    except OSError as error:
        return Explanation(trouble=f"a run cannot be read: {error.strerror}")


TOLERANCE_RATIO: Final = 0.01
"""Smaller changes are not claimed where nothing else is asked for."""
_CLAIMED: Final = frozenset({Outcome.WORSE, Outcome.BETTER, Outcome.DIFFERENT})
_NEAR: Final = "a value after it lies close to the tester's own limit"


@frozen
class Change:
    """A change that is claimed, between two figures: places in the series from 0.

    The figures between ``last_before`` and ``first_after`` belong to neither level.
    """

    last_before: int
    first_after: int
    judgement: Judgement


@frozen
class Level:
    """Successive figures without a claimed change, from the place ``first`` to ``last``, and their median.

    With ``is_only_below`` the median is unknown, because of figures that are; it lies below ``median``.
    """

    first: int
    last: int
    median: float
    is_only_below: bool = False


@frozen
class Trend:
    """The levels of a series, oldest first, and the changes between them.

    Two levels have no change between them where the clocks for which their rates are stated may explain the difference.
    ``recent`` are the last figures where they lie apart from those before, but are too few for a claim.
    """

    levels: tuple[Level, ...] = ()
    changes: tuple[Change, ...] = ()
    recent: int = 0

    @property
    def needed(self) -> int:
        """How many more figures like the recent ones a claim needs; 0 where there is nothing recent."""
        return FEWEST_RUNS - self.recent if self.recent else 0


def find_trend(
    figures: Sequence[Figure], *, higher_is_better: bool | None, tolerance_ratio: float = TOLERANCE_RATIO
) -> Trend:
    """Finds the levels of a series, whose figures are given in the order of time, one or more for each run."""
    places = [place for place, figure in enumerate(figures) if figure.is_reliable]
    bounds = [0, *split_at_changes([figures[place].number_or_bound for place in places]), len(places)]
    parts = [places[begin:end] for begin, end in pairwise(bounds)]
    levels: list[list[int]] = []
    changes = []
    for part in parts:
        if len(part) < FEWEST_RUNS:
            continue
        if not levels:
            levels.append(part)
            continue
        sides = [[figures[place] for place in side] for side in (levels[-1][-MOST_RUNS:], part[:MOST_RUNS])]
        judgement = judge(
            [figure.value for figure in sides[0]],
            [figure.value for figure in sides[1]],
            higher_is_better=higher_is_better,
            tolerance_ratio=tolerance_ratio,
            near_limit=_NEAR if any(figure.near for figure in sides[1]) else None,
        )
        if judgement.outcome in _CLAIMED:
            changes.append(Change(levels[-1][-1], part[0], judgement))
            levels.append(part)
        else:
            levels[-1] = [*levels[-1], *part]
    recent = len(parts[-1]) if levels and len(parts[-1]) < FEWEST_RUNS else 0
    return Trend(tuple(_level(level, figures) for level in levels), tuple(changes), recent)


def _level(places: Sequence[int], figures: Sequence[Figure]) -> Level:
    ordered = sorted((figures[place] for place in places), key=lambda figure: figure.number_or_bound)
    # A figure that is lower than its bound moves the median, unless already its bound stands before the middle.
    is_only_below = any(figure.is_only_below for figure in ordered[(len(ordered) - 1) // 2 :])
    median = statistics.median(figure.number_or_bound for figure in ordered)
    return Level(places[0], places[-1], median, is_only_below)
