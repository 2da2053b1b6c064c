"""Between the first stage and the last: whose turn it is. What the journal says is finished is not made again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager

from nicbench.bench_file.models import BenchFile
from nicbench.events import Bus, Event, TurnFinished, TurnStarted
from nicbench.model.turn import Turn
from nicbench.stages.machine import undone
from nicbench.tuning.stack import UndoStack


def turns_left(bench: BenchFile, journaled: Iterable[Event]) -> Iterator[Turn]:
    """The turns that have not ended yet, in their order."""
    ended = {(event.configuration, event.run) for event in journaled if isinstance(event, TurnFinished)}
    return (turn for turn in bench.turns if (turn.configuration, turn.run) not in ended)


@asynccontextmanager
async def one_turn(turn: Turn, changes: UndoStack, bus: Bus) -> AsyncIterator[None]:
    """However it ends, what it changed is undone before the next; of a run of one turn alone nothing is told."""
    named = {"configuration": turn.configuration, "run": turn.run}
    if turn.of > 1:
        bus.publish(TurnStarted(**named, number=turn.number, of=turn.of))
    async with undone(changes, bus):
        yield
    if turn.of > 1:
        bus.publish(TurnFinished(**named))
