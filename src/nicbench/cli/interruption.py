"""Handles Ctrl-C, SIGTERM and a closed terminal: cancels the work once, and lets its undo run to the end."""

from __future__ import annotations

import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeVar

from nicbench.cli.output import say
from nicbench.core.errors import InterruptedRunError

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Outcome = TypeVar("Outcome")


@contextmanager
def signals_end_the_command() -> Iterator[None]:
    """Makes a signal outside of a coroutine end the command as an InterruptedRunError."""

    def end(number: int, _frame: object) -> NoReturn:
        raise InterruptedRunError(f"stopped by {signal.Signals(number).name}")

    before = {number: signal.signal(number, end) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_to_the_end(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Runs ``work``; the first signal cancels it, so that its ``finally`` clauses undo what it changed.

    Further signals only print a message: an undo is never cut short. Raises InterruptedRunError afterwards.
    """
    import asyncio  # imported here, as it loads slowly and most commands do not need it

    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        return asyncio.run(_run_cancellable(work))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)  # asyncio restores the defaults instead of these


async def _run_cancellable(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    import asyncio

    from nicbench.stages.machine import with_hosts_closed  # imported here, as `--help` needs no hosts

    task = asyncio.ensure_future(with_hosts_closed(work))
    received: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        received.append(number)
        if len(received) == 1:
            say("stopping: what was changed is being undone")
            task.cancel()
        else:
            say("already stopping: the undo is not cut short")

    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError as error:
        name = received[0].name if received else "a cancellation"
        raise InterruptedRunError(f"stopped by {name}") from error
