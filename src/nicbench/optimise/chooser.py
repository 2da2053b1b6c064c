"""Chooses which combination of settings is tried next; sees nothing but what earlier trials gave.

The first trial is of the first values. Then Optuna (a tree-structured Parzen estimator, for noisy and expensive
functions) chooses combinations that nobody has tried. The last quarter of the trials measures the leaders again, so
that one lucky trial does not win. A choice follows from the seed and the trials alone: a search that was interrupted
goes on as it would have.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from nicbench.bench_file.optimised import Choice
from nicbench.core.base import Frozen
from nicbench.core.errors import NotReadyError
from nicbench.core.frozen import frozen

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study

_LEADERS: Final = 4
_REPEATED_SHARE: Final = 0.25
_STARTUP_SHARE: Final = 0.2
_MOST_ASKED: Final = 20
_SEEDS: Final = 2**32


class Tried(Frozen):
    """One trial: the combination, the run that measured it, and its value; ``why`` it has none.

    ``refused``: the combination cannot be measured. A disturbed trial says nothing of its combination.
    """

    choice: Choice
    run: str
    value: float | None = None
    why: str | None = None
    refused: bool = False

    @property
    def is_over(self) -> bool:
        """Whether the trial came to its end."""
        return self.value is not None or self.why is not None


@frozen
class Space:
    """The settings with their values, the direction that is better, and how many trials may be made."""

    values: Mapping[str, Sequence[str]]
    trials: int
    seed: int
    higher_is_better: bool = True

    @property
    def combinations(self) -> int:
        """How many combinations there are."""
        return math.prod(map(len, self.values.values()))


def choose_next(space: Space, tried: Sequence[Tried]) -> Choice | None:
    """Returns the combination that is tried next; None where all trials are made."""
    made = len(tried)
    if made >= space.trials:
        return None
    if made == 0:
        return {name: values[0] for name, values in space.values.items()}
    known = {_key(one.choice) for one in tried if one.value is not None or one.refused}
    repeats = round(space.trials * _REPEATED_SHARE)
    if made < space.trials - repeats and len(known) < space.combinations:
        study = _study_of(space, tried)
        for _ in range(_MOST_ASKED):
            choice = _ask(study, space)
            if _key(choice) not in known:
                return choice
        return choice
    return _least_known(space, tried)


def rank(space: Space, tried: Sequence[Tried]) -> list[tuple[Choice, float, int]]:
    """Returns each combination that has a value, the best mean first, with its mean and the number of its trials."""
    of: dict[tuple[str, ...], list[Tried]] = {}
    for one in tried:
        of.setdefault(_key(one.choice), []).append(one)
    found = [
        (trials[0].choice, statistics.fmean(values), len(values))
        for trials in of.values()
        if (values := [one.value for one in trials if one.value is not None])
    ]
    return sorted(found, key=lambda one: one[1], reverse=space.higher_is_better)


def choose_best(space: Space, tried: Sequence[Tried]) -> Choice | None:
    """Returns the combination with the best mean among those tried more than once, else among all; None without any."""
    ranked = rank(space, tried)
    again = [one for one in ranked if one[2] > 1]
    return next((choice for choice, _, _ in again or ranked), None)


def _least_known(space: Space, tried: Sequence[Tried]) -> Choice | None:
    leaders = rank(space, tried)[:_LEADERS]
    return min(leaders, key=lambda one: one[2])[0] if leaders else None


def _key(choice: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(choice[name] for name in sorted(choice))


def _study_of(space: Space, tried: Sequence[Tried]) -> Study:
    """Returns Optuna's study of these trials; a combination that was refused counts as the worst that was seen."""
    try:
        import optuna
    except ImportError as error:
        raise NotReadyError(
            "the search needs Optuna, which is not installed", next_step="pip install 'nicbench[optimise]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seed = (space.seed * 1_000_003 + len(tried)) % _SEEDS
    startup = max(4, round(space.trials * _STARTUP_SHARE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup, multivariate=True)
        study = optuna.create_study(direction="maximize" if space.higher_is_better else "minimize", sampler=sampler)
    values = [one.value for one in tried if one.value is not None]
    worst = (min if space.higher_is_better else max)(values, default=0.0)
    for one in tried:
        if one.value is None and not one.refused:
            continue
        params = {name: space.values[name].index(value) for name, value in one.choice.items()}
        value = worst if one.value is None else one.value
        study.add_trial(optuna.create_trial(params=params, distributions=_distributions(space), value=value))
    return study


def _distributions(space: Space) -> dict[str, BaseDistribution]:
    from optuna.distributions import IntDistribution  # imported here, as in _study_of

    return {name: IntDistribution(0, len(values) - 1) for name, values in space.values.items()}


def _ask(study: Study, space: Space) -> Choice:
    asked = study.ask(_distributions(space))
    return {name: values[asked.params[name]] for name, values in space.values.items()}
