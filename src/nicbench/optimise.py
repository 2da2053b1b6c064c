"""The search for the best settings: which combination is tried next, what was found, and the folder that holds it.

optimise.yaml   the bench file as given
search.json     every trial with its combination, run and value; the run that confirms
runs/           a run folder for each of them

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
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from nicbench import __version__
from nicbench.bench_file.load import parse, read_hypervisors
from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.optimised import BEST, WRITTEN, Choice, Goal, Optimise, write_confirmation, write_trial
from nicbench.bench_file.reader import Node, read
from nicbench.compare.claims import PointComparison, compare_results
from nicbench.compare.points import MainValue, comparable_number, main_value_of, main_values_of, point_of, seed_of
from nicbench.core.base import Frozen
from nicbench.core.errors import NotReadyError, UsageError, suggest
from nicbench.core.frozen import frozen
from nicbench.core.result import Result, Summary, name_of_test
from nicbench.store.files import damaged_error, hands, json_text, parse_json, read_bytes, write_atomically
from nicbench.store.folder import RunFolder, first_problem, new_run_id

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


BENCH: Final = "optimise.yaml"
STATE: Final = "search.json"
RUNS: Final = "runs"
FORMAT: Final = "1.0"


class State(Frozen):
    """``search.json``. The last trial without value and reason is the one that goes on, or was interrupted."""

    format: str = FORMAT
    bench: str
    """The path of the bench file, from which paths in it are found."""
    nicbench_version: str = __version__
    higher_is_better: bool | None = None
    """Known once the first trial is over."""
    tried: tuple[Tried, ...] = ()
    confirmation: str | None = None
    """The name of the run folder that compares the best combination with the first values."""


@frozen
class Aim:
    """The value that a search is for, and its result in one run."""

    value: MainValue
    result: Result

    @property
    def number(self) -> float | None:
        """The number of the result in its base unit; None where it is disturbed or has none."""
        return comparable_number(self.value.value_in(self.result)) if self.result.verdict.is_reliable else None

    def words(self, number: float) -> str:
        """Returns a number of this value with the unit that suits it."""
        scaled = self.value.scale_to(abs(number))
        return scaled.quantity.format_value(number / scaled.factor)


class Search:
    """A search on disk, made by ``begin`` or opened by ``open``; every change is written at once."""

    def __init__(self, path: Path, bench: BenchFile, state: State) -> None:
        assert bench.optimise is not None  # noqa: S101 - ``open`` has looked
        self.path, self.bench, self.state = path, bench, state
        self.wishes: Optimise = bench.optimise

    @classmethod
    def begin(cls, bench: BenchFile, into: Path) -> Search:
        """Makes the folder of a new search. UsageError where the bench file has no section ``optimise``."""
        _require(bench)
        path = into.absolute() / new_run_id(bench.title)
        hands().make_folder(path / RUNS)
        write_atomically(path / BENCH, bench.source.encode())
        search = cls(path, bench, State(bench=str(bench.path.absolute())))
        search._save(search.state)
        return search

    @classmethod
    def open(cls, path: Path) -> Search:
        """Opens a search, to go on with it. UsageError where the folder is not one."""
        try:
            content = read_bytes(path / BENCH)
            state = State.model_validate(parse_json(path / STATE))
        except FileNotFoundError as error:
            step = "name a bench file with `optimise`, or the folder that `nicbench optimise` made"
            raise UsageError("is not the folder of a search", place=str(path), next_step=step) from error
        except ValidationError as error:
            raise damaged_error(ValueError(first_problem(error)), path / STATE) from error
        bench = parse(content, Path(state.bench), with_files=True)
        _require(bench)
        return cls(path, bench, state)

    @property
    def space(self) -> Space:
        """The settings and the direction, as the chooser sees them."""
        return Space(
            self.wishes.space,
            self.wishes.trials,
            self.bench.seed,
            higher_is_better=self.state.higher_is_better or False,
        )

    @property
    def runs(self) -> Path:
        """The folder of the runs."""
        return self.path / RUNS

    def bench_of(self, folder: RunFolder) -> BenchFile:
        """Reads the bench file of one of the runs."""
        content, path = folder.bench_text.encode(), Path(self.state.bench)
        bench = parse(content, path, with_files=True)
        return read_hypervisors(bench, read(content, str(path))) if bench.hypervisor else bench

    def begin_trial(self) -> Tried | None:
        """Returns the trial that goes on, or a new one, with its run folder; None where all trials are made."""
        tried = self.state.tried
        if tried and not tried[-1].is_over and (self.runs / tried[-1].run).exists():
            return tried[-1]
        over = tuple(one for one in tried if one.is_over)
        choice = choose_next(self.space, over)
        if choice is None:
            return None
        folder = RunFolder.create(self.runs, write_trial(self._root, choice), self.bench.title)
        trial = Tried(choice=choice, run=folder.run_id)
        self._save(self.state.replace(tried=(*over, trial)))
        return trial

    def end_trial(self, summary: Summary) -> Aim:
        """Notes what the trial that goes on gave."""
        aim = self.aim_in(summary.counted)
        number = aim.number
        why = None if number is not None else "disturbed" if not aim.result.verdict.is_reliable else "has no number"
        *before, last = self.state.tried
        self._save(
            self.state.replace(
                higher_is_better=aim.value.quantity.higher_is_better,
                tried=(*before, last.replace(value=number, why=why)),
            )
        )
        return aim

    def refuse_trial(self, why: str) -> None:
        """Notes that the combination of the trial that goes on cannot be measured."""
        *before, last = self.state.tried
        self._save(self.state.replace(tried=(*before, last.replace(why=why, refused=True))))

    @property
    def best(self) -> Choice | None:
        """The combination that was best in the search; None where no trial has a value."""
        return choose_best(self.space, self.state.tried)

    def begin_confirmation(self, best: Choice) -> RunFolder:
        """Returns the folder of the run that confirms, which may have begun."""
        known = self.state.confirmation
        if known is not None and (self.runs / known).exists():
            return RunFolder.open(self.runs / known)
        text = write_confirmation(self._root, self.wishes, best)
        folder = RunFolder.create(self.runs, text, self.bench.title)
        self._save(self.state.replace(confirmation=folder.run_id))
        return folder

    def claim(self, summary: Summary, run_id: str) -> PointComparison | None:
        """Returns the comparison of the confirming runs in the value of the goal; None where one of both lacks it."""
        of = {name: [one for one in summary.counted if one.configuration == name] for name in (WRITTEN, BEST)}
        if not all(of.values()):
            return None
        aim = self.aim_in(of[WRITTEN])
        found = compare_results(of, seed=seed_of(run_id), in_rounds=True)
        return next(
            (one for one in found.all if one.point == point_of(aim.result) and one.value.name == aim.value.name), None
        )

    @property
    def aim(self) -> Aim:
        """The value of the goal, as the first trial with a value has it."""
        first = next(one for one in self.state.tried if one.value is not None)
        summary = RunFolder.open(self.runs / first.run).summary()
        return self.aim_in(summary.counted if summary is not None else ())

    def aim_in(self, results: list[Result] | tuple[Result, ...]) -> Aim:
        """Finds the value of the goal among the results of a run. UsageError unless it is exactly one of them."""
        goal = self.wishes.goal
        test = goal.test or self.bench.tests[0].name
        of_test = [one for one in results if name_of_test(one, {}) == test and not one.warm_up]
        points = {point_of(one): one for one in of_test if _is_at(one, goal)}
        if len(points) != 1:
            known = "; ".join(point.words for point in dict.fromkeys(map(point_of, of_test)))
            raise UsageError(
                f"the goal names {len(points)} points of “{test}”",
                place=f"{self.bench.path}: optimise.goal",
                next_step=f"choose one by `at`, such as `at: {{frame_bytes: 64}}`; there are: {known or 'none'}",
            )
        result = next(iter(points.values()))
        names = [each.name for each in main_values_of(result)]
        name = goal.value or next(iter(names), "")
        value = main_value_of(result, name)
        if name not in result.values or value.quantity.higher_is_better is None:
            raise UsageError(
                f"`{name}` is not a value of “{test}” of which more or less is better",
                place=f"{self.bench.path}: optimise.goal",
                next_step=suggest(name, names, "value"),
            )
        return Aim(value, result)

    @property
    def _root(self) -> Node:
        return read(self.bench.source.encode(), str(self.bench.path))

    def _save(self, state: State) -> None:
        self.state = state
        write_atomically(self.path / STATE, f"{json_text(state)}\n".encode())


def _require(bench: BenchFile) -> None:
    if bench.optimise is None:
        step = f"`nicbench run {bench.path}` runs it as it is"
        raise UsageError("has no section `optimise`", place=str(bench.path), next_step=step)


def _is_at(result: Result, goal: Goal) -> bool:
    return all(str(result.parameters.get(name)) == str(value) for name, value in goal.at.items())
