"""A process that no signal ends is left, and said to hang: it never looks like somebody's interruption."""

from __future__ import annotations

import asyncio

import pytest

from nicbench.hosts.base import Process
from nicbench.workloads.processes import HungError, Running


class Deaf(Process):
    """Waits for a file system that does not answer: it neither writes nor ends, whatever it is told."""

    @property
    def pid(self) -> int | None:
        return 1

    async def write_line(self, line: str) -> None: ...

    async def read_line(self, timeout_s: float | None = None) -> str | None:
        return None

    async def read_some(self) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def close_stdin(self) -> None: ...

    async def wait(self, timeout_s: float | None = None) -> int:
        await asyncio.sleep(0)
        return -9 if timeout_s is None else 0

    async def signal(self, number: int) -> None: ...

    def stderr_tail(self) -> str:
        return ""


async def test_a_process_that_cannot_be_killed_hangs_however_often_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nicbench.workloads.processes._ENDING_S", 0.01)
    running = Running(Deaf(), 1000)
    with pytest.raises(HungError):
        await running.finish(0.01)
    await running.stop()
    await running.stop()
    with pytest.raises(HungError):
        await running.finish(0.01)
