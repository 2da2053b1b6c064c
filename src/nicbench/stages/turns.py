"""Between the first stage and the last: whose turn it is. What the journal says is finished is not made again.

Where the number of runs grows, the journal also says whether another round of all configurations is needed: so a run
that was killed and resumed comes to the same decisions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from nicbench.bench_file.models import BenchFile
from nicbench.events import Bus, IntervalsChecked, TurnFinished, TurnStarted
from nicbench.hosts import close_containers
from nicbench.methods.base import main_values
from nicbench.model.turn import Turn
from nicbench.stages.machine import undone
from nicbench.stats.growth import settled, verdict_words
from nicbench.stats.runs import over_runs
from nicbench.store.journal import Journal
from nicbench.tuning.stack import UndoStack


def turns_left(bench: BenchFile, journal: Journal, bus: Bus) -> Iterator[Turn]:
    """The turns that have not ended yet, in their order, until the runs are enough: the journal is read as they end."""
    ended = {(event.configuration, event.run) for event in journal.events() if isinstance(event, TurnFinished)}
    configurations, asked = len(bench.configurations), bench.runs
    for turn in bench.turns:
        if (turn.configuration, turn.run) not in ended:
            yield turn
        made = turn.run - asked.warm_up
        is_round_over = turn.number % configurations == 0
        if is_round_over and asked.grows and asked.may_end(made, configurations) and _enough(bench, journal, made, bus):
            return


def _enough(bench: BenchFile, journal: Journal, made: int, bus: Bus) -> bool:
    """Whether so many runs of each configuration are; what was found is journaled, once."""
    results = (result for result in journal.results() if (result.run or 1) <= bench.runs.warm_up + made)
    over = over_runs(results, bench.runs, main_values)
    reached = settled(over)
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
        async with undone(changes, bus):
            yield
    finally:
        await close_containers()
    if turn.of > 1:
        bus.publish(TurnFinished(**named, warm_up=turn.warm_up))
