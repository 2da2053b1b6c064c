"""A run that begins or goes on, whose turn it is, and the summary at its end.

What the journal says is finished is not made again. Where the number of runs grows, the journal also says whether
another round of all configurations is needed: so a run that was killed and resumed comes to the same decisions. What
was measured is summed up, also where the run broke off.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from nicbench import __version__
from nicbench.bench_file.models import BenchFile
from nicbench.compare.matching import summarise_points
from nicbench.core.errors import NicbenchError, NothingMeasuredError, ToolsFailedError, UsageError
from nicbench.core.events import Bus, Event, IntervalsChecked, RunStarted, TurnFinished, TurnStarted
from nicbench.core.judging import Sample
from nicbench.core.result import Bounded, Result, ResultVerdict, Summary, Value, number_of
from nicbench.core.round import Round
from nicbench.core.turn import Turn
from nicbench.hosts import close_containers
from nicbench.measure.completing import with_contradictions
from nicbench.methods.base import main_values
from nicbench.stages.machine import undo_at_end
from nicbench.stats.runs import are_settled, count_runs, summarise_over_runs, verdict_words
from nicbench.store.journal import Journal
from nicbench.tuning.stack import UndoStack


def wall_time() -> str:
    """The time of day, which only labels: nothing is computed with it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def make_run_started(bench: BenchFile, run_id: str, *, resumed: bool, redacted: bool = False) -> RunStarted:
    """The first event of a run, or of its resumption."""
    return RunStarted(
        run_id=run_id,
        title=bench.title,
        nicbench_version=__version__,
        wall_time=wall_time(),
        seed=bench.seed,
        resumed=resumed,
        bench_sha256=_checksum(bench),
        redacted=redacted,
    )


def refuse_changed_bench(bench: BenchFile, journaled: Iterable[Event]) -> None:
    """UsageError where the run was begun with another bench file: its trials would be passed off as this one's."""
    for event in journaled:
        if isinstance(event, RunStarted) and event.bench_sha256 not in (None, _checksum(bench)):
            raise UsageError(
                "the bench file was changed since this run began",
                place=str(bench.path),
                next_step="restore the original, or start a new run with the changed file",
            )


def _checksum(bench: BenchFile) -> str:
    return hashlib.sha256(bench.source.encode()).hexdigest()


def iterate_turns_left(bench: BenchFile, journal: Journal, bus: Bus) -> Iterator[Turn]:
    """The turns that have not ended yet, in their order, until the runs are enough: the journal is read as they end."""
    ended = {(event.configuration, event.run) for event in journal.events() if isinstance(event, TurnFinished)}
    configurations, asked = len(bench.configurations), bench.runs
    for turn in bench.turns:
        if (turn.configuration, turn.run) not in ended:
            yield turn
        made = turn.run - asked.warm_up
        is_round_over = turn.number % configurations == 0
        if (
            is_round_over
            and asked.grows
            and asked.may_end(made, configurations)
            and _are_runs_enough(bench, journal, made, bus)
        ):
            return


def _are_runs_enough(bench: BenchFile, journal: Journal, made: int, bus: Bus) -> bool:
    """Whether ``made`` runs of each configuration are enough; the finding is journaled once."""
    results = (result for result in journal.results() if (result.run or 1) <= bench.runs.warm_up + made)
    over = summarise_over_runs(results, bench.runs, main_values)
    reached = are_settled(over)
    if not any(isinstance(event, IntervalsChecked) and event.runs == made for event in journal.events()):
        bus.publish(IntervalsChecked(runs=made, reached=reached, text=verdict_words(bench.runs, made, over)))
    return reached


@asynccontextmanager
async def one_turn(turn: Turn, changes: UndoStack, bus: Bus) -> AsyncIterator[None]:
    """However it ends, what it changed is undone before the next; a run of a single turn publishes no event of it."""
    named = {"configuration": turn.configuration, "run": turn.run}
    if turn.of > 1:
        bus.publish(TurnStarted(**named, number=turn.number, of=turn.of, warm_up=turn.warm_up, at_most=turn.at_most))
    try:
        async with undo_at_end(changes, bus):
            yield
    finally:
        await close_containers()
    if turn.of > 1:
        bus.publish(TurnFinished(**named, warm_up=turn.warm_up))


def summarise(bench: BenchFile, journal: Journal, run_id: str, *, complete: bool) -> Summary:
    """The run is disturbed where one result is, incomplete where it broke off or a result says so.

    A rate that a later trial contradicts is disturbed. What warmed up is kept, and nothing rests on it.
    """
    methods = {(each.configuration, test.name): test.build() for each in bench.configurations for test in each.tests}
    results = with_contradictions(journal.results(), methods, journal.trials().values())
    verdicts = {result.verdict for result in results if not result.warm_up}
    if not complete or ResultVerdict.INCOMPLETE in verdicts:
        verdict = ResultVerdict.INCOMPLETE
    elif ResultVerdict.DISTURBED in verdicts:
        verdict = ResultVerdict.DISTURBED
    else:
        verdict = ResultVerdict.VALID
    over = summarise_points(results, bench.runs, run_id)
    return Summary(
        title=bench.title,
        verdict=verdict,
        results=results,
        configurations=tuple(each.configuration for each in bench.compared),
        over_runs=over,
        runs=count_runs(bench.runs, results, over, complete=complete),
    )


# A run that came to its end and measured nothing: the error that says why, and so its exit status.

_OPTIONS = "compare each test's options with the ports of the bench file (both are in plan.json)"
_DISTURBANCES = "the report names what each result lacks; compare the options of each test with the ports"
_PEERS = (
    "see that each peer answers and that each tool runs there by hand (raw has their command lines and outputs), "
    "then run the bench file again"
)


def find_nothing_measured(
    bench: BenchFile, results: Iterable[Result], samples: Mapping[str, Sample], place: str
) -> NicbenchError | None:
    """Returns the error of a finished run without a figure; None where it has one.

    ToolsFailedError where every job of every round failed, else NothingMeasuredError. ``samples`` are the journal's.
    """
    results = tuple(results)
    if not results:
        why = f"no test gave a result: {_what_tests_did(bench, samples.values())}"
        return NothingMeasuredError(why, place=place, next_step=_OPTIONS)
    if any(_has_figure(result) for result in results):
        return None
    outcomes = [outcome for one in samples.values() if isinstance(one, Round) for outcome in one.outcomes]
    failures = [outcome.failure for outcome in outcomes if outcome.failure is not None]
    if not failures or len(failures) < len(outcomes):
        why = f"no result has a figure: {_reasons(results) or _what_tests_did(bench, samples.values())}"
        return NothingMeasuredError(why, place=place, next_step=_DISTURBANCES)
    last = failures[-1]
    why = (
        f"nothing was measured: {len(failures)} of {len(outcomes)} attempts of the tools failed, the last with: {last}"
    )
    return ToolsFailedError(why, place=place, next_step=_PEERS)


def _has_figure(result: Result) -> bool:
    """Whether it stands, or one of its main values is known though another is missing."""
    if result.verdict is not ResultVerdict.INCOMPLETE:
        return True
    return any(_is_known(result.values.get(name)) for name in main_values(result))


def _is_known(value: Value) -> bool:
    return number_of(value) is not None or (isinstance(value, Bounded) and value.upper is not None)


def _reasons(results: Iterable[Result]) -> str:
    """What the results say themselves, each once; the first three."""
    said = dict.fromkeys(text for result in results for text in (*_reasons_of_values(result), *result.disturbances))
    return "; ".join(list(said)[:3])


def _reasons_of_values(result: Result) -> Iterable[str]:
    values = (result.values.get(name) for name in main_values(result))
    return (value.reason_null for value in values if isinstance(value, Bounded) and value.reason_null is not None)


def _what_tests_did(bench: BenchFile, samples: Iterable[Sample]) -> str:
    """What each test did instead, in words."""
    made = Counter(sample.test for sample in samples)
    noun = "trial" if bench.measures == "frames" else "round"
    return "; ".join(
        f"{test.name} ({test.method_kind}) "
        + (f"made {made[test.name]} {noun}s and found nothing in them" if made[test.name] else f"requested no {noun}")
        for test in bench.tests
    )
