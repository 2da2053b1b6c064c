"""A run that begins or goes on, whose turn it is, and the summary at its end.

What the journal says is finished is not made again. Where the number of runs grows, the journal also says whether
another round of all configurations is needed: so a run that was killed and resumed comes to the same decisions. What
was measured is summed up, also where the run broke off.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from nicbench import __version__
from nicbench.bench_file.models import BenchFile
from nicbench.compare.matching import summarise_points
from nicbench.core.errors import UsageError
from nicbench.core.events import Bus, Event, IntervalsChecked, RunStarted, TurnFinished, TurnStarted
from nicbench.core.result import ResultVerdict, Summary
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
    """Whether so many runs of each configuration are; what was found is journaled, once."""
    results = (result for result in journal.results() if (result.run or 1) <= bench.runs.warm_up + made)
    over = summarise_over_runs(results, bench.runs, main_values)
    reached = are_settled(over)
    if not any(isinstance(event, IntervalsChecked) and event.runs == made for event in journal.events()):
        bus.publish(IntervalsChecked(runs=made, reached=reached, text=verdict_words(bench.runs, made, over)))
    return reached


@asynccontextmanager
async def one_turn(turn: Turn, changes: UndoStack, bus: Bus) -> AsyncIterator[None]:
    """However it ends, what it changed is undone before the next; of a run of one turn alone nothing is told."""
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
