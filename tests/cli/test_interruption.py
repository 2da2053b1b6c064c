"""Ctrl-C and SIGTERM: what was changed is undone, what was measured is kept, and the next step is named."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from tests.commands import run_tried

from nicbench.cli.signals import StoppedError, give_back_signals, signals_are_heard
from nicbench.core.errors import NotReadyError


async def reached(number: signal.Signals) -> None:
    """Sends a signal to this process and gives the event loop the time to take it."""
    os.kill(os.getpid(), number)
    await asyncio.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cancels_the_run_and_its_undo_runs(
    number: signal.Signals, nicbench: Any, run_is: Callable[..., None], one_result: Callable[..., None]
) -> None:
    undone = []

    async def interrupted(bench: Any, folder: Any, bus: Any) -> None:
        one_result(bench, folder, bus)
        try:
            await reached(number)
            await asyncio.sleep(60)
        finally:
            undone.append("all")

    run_is(interrupted)
    ended = nicbench("run", "bench.yaml")
    assert ended.status == 130
    assert undone == ["all"]
    assert "trials are kept" in ended.stderr
    assert "next: nicbench resume " in ended.stderr


def test_a_second_signal_does_not_cut_the_undo_short(nicbench: Any, run_is: Callable[..., None]) -> None:
    undone = []

    async def interrupted(*_: Any) -> None:
        try:
            await reached(signal.SIGINT)
            await asyncio.sleep(60)
        finally:
            undone.append("first")
            await reached(signal.SIGINT)
            await reached(signal.SIGTERM)
            undone.append("second")

    run_is(interrupted)
    ended = nicbench("run", "bench.yaml")
    assert ended.status == 130
    assert undone == ["first", "second"]
    assert "already stopping" in ended.stderr


def test_an_error_of_the_undo_is_told_even_after_ctrl_c(nicbench: Any, run_is: Callable[..., None]) -> None:
    async def interrupted(*_: Any) -> None:
        try:
            await reached(signal.SIGINT)
            await asyncio.sleep(60)
        finally:
            raise NotReadyError("the lab could not be removed", next_step="nicbench restore latest")

    run_is(interrupted)
    ended = nicbench("run", "bench.yaml")
    assert "the lab could not be removed" in ended.stderr
    assert "nicbench restore latest" in ended.stderr


def test_the_handlers_of_the_caller_are_put_back(nicbench: Any, run_is: Callable[..., None], finished_run: Any) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    run_is(finished_run)
    nicbench("run", "bench.yaml")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


SIGNALLED_WHILE_LOADING = """
import os, sys
from nicbench.cli.main import main

class Signal:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            sys.meta_path.remove(self)
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Signal())
sys.argv[1:] = ["run", "bench.yaml", "--json"]
sys.exit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_the_program_is_still_loading_is_told_like_any_other(number: signal.Signals) -> None:
    script = SIGNALLED_WHILE_LOADING.format(number=int(number))
    ended = run_tried([sys.executable, "-c", script])

    assert ended.returncode == 130
    assert ended.stderr == f"stopped by {number.name}\n"
    assert json.loads(ended.stdout)["error"]["kind"] == "InterruptedRunError"


def let_go(held: list[Any]) -> None:
    """Destroys what is held, which brings a signal, and goes on with its work."""
    held.clear()
    time.sleep(10)


def test_a_signal_in_a_destructor_is_not_lost() -> None:
    class Slow:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            destroyed.append("whole")

    destroyed = []
    with pytest.raises(StoppedError) as stopped, signals_are_heard():
        let_go([Slow()])
    give_back_signals()
    assert (stopped.value.number, destroyed) == (signal.SIGTERM, ["whole"])


def test_a_signal_that_a_callback_swallowed_is_not_lost() -> None:
    held = [Keyed()]
    reference = weakref.ref(held[0], lambda _: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(StoppedError), signals_are_heard():
        let_go(held)
    give_back_signals()
    assert reference() is None


class Keyed:
    """What a weak reference may refer to."""


def test_a_signal_that_was_noted_before_the_run_ends_it(
    nicbench: Any, run_is: Callable[..., None], finished_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_is(finished_run)
    monkeypatch.setattr("nicbench.cli.failure.take_noted", lambda: signal.SIGTERM)
    ended = nicbench("run", "bench.yaml")
    assert ended.status == 130
    assert "stopped by SIGTERM" in ended.stderr
