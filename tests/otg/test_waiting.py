"""A client asks for a session while others have the machine: what is wrong is said at once, and a place is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from nicbench.bench_file import load
from nicbench.core.errors import BusyError
from nicbench.core.events import StageStarted, Waiting
from nicbench.otg import sessions
from nicbench.otg.api import Api
from nicbench.otg.model import OtgError
from nicbench.otg.session import Session
from nicbench.otg.sessions import Sessions

BENCH = "nicbench: 1\ntitle: t\nlab: {kind: simulated}\ndut: {kind: simulated}\n"


class Machine:
    """A machine that others have until it is free; counts who came to wait for it."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.came = 0

    @asynccontextmanager
    async def session_on(self, bed: Any, seed: int) -> AsyncIterator[Session]:
        self.came += 1
        bus = bed.args[2]
        bus.publish(Waiting(text="place 3 in the queue, held by X since 4 min"))
        await self.free.wait()
        bus.publish(StageStarted(stage="testbed", text="making the testbed"))
        yield cast("Session", _Idle())


class _Idle:
    failure = None
    is_busy = False


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Sessions, Machine]:
    path = tmp_path / "bench.yaml"
    path.write_text(BENCH)
    machine = Machine()
    monkeypatch.setattr(sessions, "session_on", machine.session_on)
    for name in ("_ANSWER_S", "_LOOK_S"):
        monkeypatch.setattr(sessions, name, 0.01)
    monkeypatch.setattr(sessions, "build", lambda path: path)
    return Sessions(load(path, serves=True), tmp_path / "runs", lambda line: None, idle_s=60.0), machine


async def test_a_client_that_asks_again_keeps_its_place(waiting: tuple[Sessions, Machine]) -> None:
    served, machine = waiting
    for _ in range(3):
        with pytest.raises(BusyError, match="place 3 in the queue, held by X since 4 min"):
            await served.begin()
    machine.free.set()
    assert await served.begin() is served.current
    assert machine.came == 1
    await served.end()


async def test_a_place_that_nobody_asks_for_is_given_up(
    waiting: tuple[Sessions, Machine], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    served, machine = waiting
    monkeypatch.setattr(sessions, "_PLACE_S", 0.01)
    with pytest.raises(BusyError):
        await served.begin()
    await asyncio.sleep(0.1)
    assert not list((tmp_path / "runs").iterdir())
    machine.free.set()
    await served.begin()
    assert machine.came == 2
    await served.end()


async def test_a_session_that_nobody_asks_of_gives_the_machine_to_others(
    waiting: tuple[Sessions, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, machine = waiting
    machine.free.set()
    await served.begin()
    monkeypatch.setattr(sessions, "_OTHERS_S", 0.0)
    await asyncio.sleep(0.1)
    assert served.current is not None, "nobody waits"
    monkeypatch.setattr(sessions, "is_waited_for", lambda: True)
    await asyncio.sleep(0.2)
    assert served.current is None


async def test_a_port_that_is_not_there_is_refused_before_the_machine_is_asked_for(
    waiting: tuple[Sessions, Machine],
) -> None:
    served, machine = waiting
    with pytest.raises(OtgError, match="'eth0' is no port of this server; its ports are t0, t1") as refused:
        await Api(served).set_config({"ports": [{"name": "p", "location": "eth0"}]})
    assert (refused.value.code, machine.came) == (400, 0)
