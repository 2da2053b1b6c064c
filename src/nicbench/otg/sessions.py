"""The sessions of a server, one after another: each has its testbed, its run folder and its report."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import BusyError, HostError, NicbenchError
from nicbench.core.events import Bus, Event, Note, RunFinished, StageStarted, Waiting
from nicbench.core.redaction import Redactor
from nicbench.otg.configuration import check_further
from nicbench.otg.session import Session, session_on
from nicbench.report import build
from nicbench.report.answer.of_run import in_brief
from nicbench.stages.served import locations_of, require_servable, served_bed
from nicbench.stages.turns import summarise, wall_time
from nicbench.store.folder import RunFolder
from nicbench.tuning.lock import BY_WAITING, is_waited_for, tell_idle

_LOOK_S: Final = 1.0
_ANSWER_S: Final = 10.0
"""After this time a client learns that others have the machine."""
_PLACE_S: Final = 120.0
"""For this time the place in the queue is kept for a client that learned so."""
_OTHERS_S: Final = 60.0
"""A session that nobody asks of gives the machine to others who wait after this time."""
_IDLE_S: Final = 5.0
"""A session in which nobody asked for anything in this time is reported as idle to waiting clients."""


class Sessions:
    """Makes a session on request, and ends it with a report. ``tell`` is given lines for the user."""

    def __init__(
        self,
        bench: BenchFile,
        runs: Path,
        tell: Callable[[str], None],
        *,
        idle_s: float,
        locations: Mapping[str, str] | None = None,
        engine_path: str | None = None,
    ) -> None:
        self._bench = require_servable(bench)
        self.ports = locations_of(self._bench)
        """The names among which its ports' names are; empty while they are unknown."""
        self.locations = locations or {}
        """The names of ports by their further locations."""
        check_further(self.locations, self.ports)
        self._runs = runs
        self._tell = tell
        self._idle_s = idle_s
        self._engine_path = engine_path
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Session] | None = None
        self._waits_for: str | None = None
        self._forgetting: asyncio.TimerHandle | None = None
        self._ended = asyncio.Event()
        self._asked_at = time.monotonic()
        self._beginning = asyncio.Lock()
        self.current: Session | None = None
        self.failure: NicbenchError | None = None
        """Why the last session ended before it was asked to."""
        self.folder: RunFolder | None = None
        """Of the current session, or of the last one."""

    def touch(self) -> None:
        """Notes a request: a session without any ends after a while."""
        self._asked_at = time.monotonic()

    async def begin(self) -> Session:
        """Returns the session, and makes one if needed. NicbenchError where the testbed cannot be made.

        BusyError where others have the machine: the place in the queue is kept until the configuration is set again.
        """
        async with self._beginning:
            if self.current is not None and self.current.failure is not None:
                self._ended.set()
                await self._wait_for_task()
            if self.current is not None:
                return self.current
            if self._ready is None:
                await self._wait_for_task()
                self._ready = asyncio.get_running_loop().create_future()
                self._ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())
                self._ended.clear()
                self.failure = self._waits_for = None
                self._task = asyncio.ensure_future(self._run(self._ready))
            return await self._granted(self._ready)

    async def _granted(self, ready: asyncio.Future[Session]) -> Session:
        """Returns the session once its testbed is made. BusyError where the machine is still waited for."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + _ANSWER_S
        if self._forgetting is not None:
            self._forgetting.cancel()
        while not ready.done():
            await asyncio.wait({ready}, timeout=_LOOK_S)
            if self._waits_for is not None and loop.time() > end_s and not ready.done():
                self._forgetting = loop.call_later(_PLACE_S, self._forget, ready)
                step = f"set the configuration again: the place is kept for {_PLACE_S:g} s"
                raise BusyError(self._waits_for, next_step=step)
        return ready.result()

    def _forget(self, ready: asyncio.Future[Session]) -> None:
        """Gives up the place in the queue, where nobody asks for it any more."""
        if self._task is not None and not ready.done():
            self._task.cancel()

    def _hear(self, event: Event) -> None:
        if isinstance(event, Waiting):
            self._waits_for = event.text
        elif isinstance(event, StageStarted):
            self._waits_for = None

    async def end(self) -> None:
        """Ends the session, if there is one: writes its report and restores the machine."""
        async with self._beginning:
            self._ended.set()
            if self._ready is not None:
                self._forget(self._ready)
            await self._wait_for_task()

    async def _wait_for_task(self) -> None:
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self, ready: asyncio.Future[Session]) -> None:
        """One session from its run folder to its report."""
        self.folder = folder = RunFolder.create(self._runs, self._bench.source, self._bench.title)
        if self._bench.redact:
            folder.redact_with(Redactor.of_this_machine())
        bus = Bus()
        bus.subscribe(folder.journal.append)
        bus.subscribe(self._hear)
        bed = partial(
            served_bed, self._bench, folder, bus, engine_path=self._engine_path, wait_s=self._idle_s + _PLACE_S
        )
        try:
            async with session_on(bed, self._bench.seed, self.locations) as session:
                self._tell(f"session: {folder.path}")
                self.touch()
                self.current = session
                ready.set_result(session)
                await self._wait_for_end(session, folder.run_id)
                self.failure = session.failure
                if self.failure is not None:
                    bus.publish(Note(level="error", text=self.failure.message))
        except BaseException as error:
            if not ready.done():
                folder.remove()
                self.folder = None
                ready.set_exception(_told(error))
            raise
        finally:
            self.current = self._ready = None
            if self.folder is not None:
                try:
                    await self._finish(folder, bus)
                except NicbenchError as error:
                    self._tell(f"the session could not be written down: {error}")

    async def _wait_for_end(self, session: Session, run_id: str) -> None:
        while not self._ended.is_set() and session.failure is None:
            if session.is_busy:
                self.touch()
            silent_s = time.monotonic() - self._asked_at
            tell_idle(run_id, silent_s > _IDLE_S)
            if silent_s > self._idle_s:
                self._tell(f"the session ends: nobody asked for anything in {self._idle_s:g} s")
                break
            if silent_s > _OTHERS_S and is_waited_for():
                self._tell(f"the session ends: nobody asked for anything in {_OTHERS_S:g} s, and others wait")
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _LOOK_S)

    async def _finish(self, folder: RunFolder, bus: Bus) -> None:
        """Writes the files that are derived from the journal, and the report."""
        summary = summarise(self._bench, folder.journal, folder.run_id, complete=True)
        bus.publish(RunFinished(verdict=summary.verdict, complete=True, wall_time=wall_time()))
        folder.finish(summary.replace(headline=in_brief(summary)), "frames")
        report = await asyncio.to_thread(build, folder.path)
        self._tell(f"report: {report}")


def _told(error: BaseException) -> NicbenchError:
    """The error for a client, which sets the configuration again where the machine is in use."""
    if isinstance(error, NicbenchError):
        error.next_step = (error.next_step or "").replace(BY_WAITING, ", and set the configuration again") or None
        return error
    return HostError(f"the testbed could not be made: {type(error).__name__}: {error}")
