"""The queue for this machine: first come, first served; who is dead loses his place. Locks and processes are real."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nicbench.core.errors import BusyError
from nicbench.core.events import Bus, Event, Waiting
from nicbench.stages import machine
from nicbench.tuning.lock import HostLock, Place, is_waited_for, tell_idle


def test_who_comes_later_is_told_his_place_and_who_is_before_him(tmp_path: Path) -> None:
    first, second, third = (Place(name, tmp_path / "runtime") for name in ("first", "second", "third"))
    first.require_first()
    with pytest.raises(BusyError, match=r": place 3 in the queue, next is run first of .* \(process \d+\)\n"):
        third.require_first()

    first.leave()
    first.leave()
    second.require_first()
    with pytest.raises(BusyError, match=r"place 2 in the queue, next is run second"):
        third.require_first()
    second.leave()
    third.leave()
    assert not (tmp_path / "runtime").exists()


def test_a_dead_one_loses_his_place(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys, time\n"
        "from nicbench.tuning.lock import Place\n"
        "place = Place('dead', pathlib.Path(sys.argv[1]))\n"
        "print('waits', flush=True)\n"
        "time.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "waits\n"
        place = Place("next", tmp_path)
        with pytest.raises(BusyError, match="next is run dead"):
            place.require_first()
        other.send_signal(signal.SIGKILL)
    place.require_first()
    place.leave()


async def test_runs_that_wait_get_the_machine_in_the_order_in_which_they_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stay_in(tmp_path, monkeypatch)
    holder = HostLock("holder", tmp_path)
    await holder.take()
    had: list[str] = []
    said: dict[str, list[str]] = {}

    async def wait(name: str) -> None:
        async with machine.hold_machines(name, (), _listening(said.setdefault(name, [])), wait_s=60.0):
            had.append(name)

    waiting = []
    for name in ("first", "second", "third", "fourth"):
        waiting.append(asyncio.create_task(wait(name)))
        await asyncio.sleep(0)
    with pytest.raises(BusyError, match="place 5 in the queue, held by holder since"):
        async with machine.hold_machines("hasty", (), Bus()):
            raise AssertionError("it overtook those who wait")
    holder.release()
    await asyncio.gather(*waiting)

    assert had == ["first", "second", "third", "fourth"]
    places = [re.search(r"place \d+ in the queue|in use", text) for text in said["third"]]
    assert [found[0] for found in places if found] == ["place 3 in the queue", "place 2 in the queue"][: len(places)]
    assert all(len(text) < 200 for text in said["third"])


async def test_one_line_says_who_holds_the_machine_and_whether_it_is_idle(tmp_path: Path) -> None:
    holder = HostLock("holder", tmp_path)
    await holder.take()
    ahead, place = Place("ahead", tmp_path), Place("me", tmp_path)
    assert is_waited_for(tmp_path)
    with pytest.raises(BusyError, match=r": place 2 in the queue, held by holder since \d+ s\n"):
        place.require_first()
    tell_idle("another", True, tmp_path)
    tell_idle("holder", True, tmp_path)
    with pytest.raises(BusyError, match=r"held by holder since \d+ s \(idle\)\n"):
        place.require_first()
    tell_idle("holder", False, tmp_path)
    with pytest.raises(BusyError, match=r"since \d+ s\n"):
        place.require_first()
    for each in (ahead, place):
        each.leave()
    assert not is_waited_for(tmp_path)
    holder.release()


def _listening(said: list[str]) -> Bus:
    def hear(event: Event) -> None:
        if isinstance(event, Waiting):
            said.append(event.text)

    bus = Bus()
    bus.subscribe(hear)
    return bus


def _stay_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were /run/nicbench, and without the pause between two looks."""

    async def nothing() -> list[str]:
        return []

    def there(kind: Callable[..., object]) -> Callable[[str], object]:
        return lambda run_id: kind(run_id, folder)

    monkeypatch.setattr(machine, "HostLock", there(HostLock))
    monkeypatch.setattr(machine, "Place", there(Place))
    monkeypatch.setattr(machine, "restore_stale", nothing)
    monkeypatch.setattr(machine, "_try_again_s", lambda: 0.01)
