"""A lease on another machine, or on ports of it: taken, watched and given back through a process there."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.hosts.base import Host, Process
from nicbench.hosts.kinds.ssh import SshHost
from nicbench.tuning.holder import Standing, busy, lease_of_this_process
from nicbench.tuning.lease_script import RELEASE, Answer, take_command
from nicbench.tuning.lock import standing_of_holder
from nicbench.tuning.record import RUNTIME_FOLDER

_ANSWER_TIMEOUT_S = 150.0
_END_TIMEOUT_S = 10.0


class HostLease:
    """``ports`` as that machine knows them, None for the whole of it. ``lost`` is told where it ends too early."""

    def __init__(
        self,
        host: Host,
        run_id: str,
        ports: Sequence[str] | None,
        lost: Callable[[str], None] = lambda _sentence: None,
        folder: Path = RUNTIME_FOLDER,
    ) -> None:
        self._host = host
        self._lease = lease_of_this_process(run_id, host.options.lease if isinstance(host, SshHost) else None)
        self._ports = None if ports is None else tuple(dict.fromkeys(ports))
        self._lost = lost
        self._folder = folder
        self._process: Process | None = None
        self._watching: asyncio.Task[None] | None = None

    async def take(self) -> list[str]:
        """Takes it; says whose dead leases were found. BusyError names living holders."""
        token = secrets.token_hex(8)
        process = await self._host.start(take_command(str(self._folder), self._lease, token, self._ports))
        try:
            answer = await self._answer(process)
            self._check(answer, process)
        except BaseException:
            await asyncio.shield(_end(process))
            raise
        self._process = process
        self._watching = asyncio.create_task(self._watch(process))
        return [f"{self._host.name}: {standing.words} left a lease behind: it was removed" for standing in answer.dead]

    async def release(self) -> None:
        """Gives it back; nothing happens where it is not held."""
        process, self._process = self._process, None
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait((self._watching,))
            self._watching = None
        if process is not None:
            await _end(process)

    async def _answer(self, process: Process) -> Answer:
        answer = Answer()
        while not answer.taken and (line := await process.read_line(_ANSWER_TIMEOUT_S)) is not None:
            answer.hear(line)
        return answer

    def _check(self, answer: Answer, process: Process) -> None:
        name = self._host.name
        if answer.refused is not None:
            step = f"log in there as root, or let {self._folder} belong to a group of all who measure"
            raise NotReadyError(f"no lease can be taken there: {answer.refused}", place=name, next_step=step)
        if answer.taken and not answer.records:
            return
        if answer.taken:
            runs = ", ".join(answer.records)
            raise NotReadyError(
                f"a run on that machine died and its changes are not undone: {runs}",
                place=name,
                next_step=f"there: sudo nicbench restore {answer.records[0]}",
            )
        if answer.held:
            raise busy(self._in_the_way(answer.held), name)
        here = standing_of_holder(answer.local, answer.now_s)
        if here is not None or answer.is_busy:
            raise busy([here] if here is not None else [], name)
        raise HostError(f"no lease can be taken there: {process.stderr_tail()}", place=name)

    def _in_the_way(self, held: list[Standing]) -> list[Standing]:
        """Of the living leases those that ours would meet: the whole machine meets all."""
        if self._ports is None:
            return held
        wanted = set(self._ports)
        return [each for each in held if not each.ports or wanted & set(each.ports)] or held

    async def _watch(self, process: Process) -> None:
        """Says nothing to the process and waits for its end: no timer wakes the controller."""
        reason = "its process ended"
        with contextlib.suppress(asyncio.CancelledError):
            try:
                while await process.read_line() is not None:
                    pass
            except NicbenchError as error:
                reason = error.message
            self._lost(f"{self._host.name}: the lease was lost ({reason}): another run may have used it since")


async def _end(process: Process) -> None:
    with contextlib.suppress(NicbenchError):
        await process.write_line(RELEASE)
        await process.close_stdin()
        try:
            await process.wait(_END_TIMEOUT_S)
        except HostError:
            await process.signal(signal.SIGKILL)
