"""A tool's process: its output is taken as it comes, up to a limit, and it is ended and reaped however that goes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Mapping, Sequence

from nicbench.errors import HostError
from nicbench.hosts.base import Host, Process
from nicbench.workloads.base import Output

# How long a process has for going after it was told to, before it is killed, and for being gone then.
_GOING_S = 3.0


class HungError(Exception):
    """The process did not end in time."""


class FloodError(Exception):
    """The process wrote more than its limit, and was killed."""


class Running:
    """A started process. While it runs, nothing of ours does.

    Its end is not that of its output: a server may close that as soon as it has begun (nuttcp).
    """

    def __init__(self, process: Process, limit_bytes: int) -> None:
        self._process = process
        self._limit_bytes = limit_bytes
        self._parts: list[bytes] = []
        self._flooded = False
        self._status: int | None = None
        self._reader = asyncio.create_task(self._follow())

    @classmethod
    async def start(
        cls, host: Host, command: Sequence[str], environment: Mapping[str, str], limit_bytes: int
    ) -> Running:
        """Starts it; HostError where it cannot be started."""
        return cls(await host.start(command, environment=environment), limit_bytes)

    @property
    def pid(self) -> int | None:
        """On its host; None where that cannot be known."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it is gone."""
        return self._reader.done()

    @property
    def output(self) -> Output:
        """What it wrote so far, and its exit status as far as it is known."""
        text = b"".join(self._parts).decode(errors="replace")
        return Output(text, self._process.stderr_tail(), self._status)

    async def finish(self, timeout_s: float) -> Output:
        """Waits for its end. HungError after the time, FloodError where it wrote too much; ``output`` stays."""
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(self._reader)
        except TimeoutError:
            raise HungError from None
        except asyncio.CancelledError:
            if not self._reader.cancelled():
                raise
            # It was left: no signal ends a process that waits for a file system which does not answer.
            raise HungError from None
        if self._flooded:
            raise FloodError
        return self.output

    async def stop(self, number: int = signal.SIGTERM) -> None:
        """Ends it: by ``number`` first, by SIGKILL where that does not do. It never raises."""
        with contextlib.suppress(HostError):
            if self._status is None and not self._flooded:
                await self._process.signal(number)
                with contextlib.suppress(HungError, FloodError):
                    await self.finish(_GOING_S)
            # What it left behind is killed too.
            await self._process.signal(signal.SIGKILL)
            if self._status is None:
                self._status = await self._process.wait(_GOING_S)
        self._reader.cancel()
        with contextlib.suppress(asyncio.CancelledError, HostError):
            await self._reader

    async def _follow(self) -> None:
        await self._take()
        if not self._flooded:
            self._status = await self._process.wait()

    async def _take(self) -> None:
        taken = 0
        while piece := await self._process.read_some():
            taken += len(piece)
            self._parts.append(piece)
            if taken > self._limit_bytes:
                self._flooded = True
                await self._process.signal(signal.SIGKILL)
                return
