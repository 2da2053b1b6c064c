"""A process in a container: the engine's client has its pipes, signals go into the container."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from nicbench.errors import HostError
from nicbench.hosts._container_engine import status_of
from nicbench.hosts.base import Process


class ContainerProcess(Process):
    """``pid`` is the process's number in the container. ``send`` delivers a signal there; ``words`` is ``reworded``.

    The engine's client passes no signal on: killing it would leave the process alone.
    """

    def __init__(
        self,
        client: Process,
        pid: int,
        send: Callable[[int], Awaitable[None]],
        words: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._client = client
        self._pid = pid
        self._send = send
        self._words = words
        self._ended = False
        self._killed = False

    @property
    def pid(self) -> int | None:
        return self._pid

    async def write_line(self, line: str) -> None:
        with self._words():
            await self._client.write_line(line)

    async def read_line(self, timeout_s: float | None = None) -> str | None:
        with self._words():
            return await self._client.read_line(timeout_s)

    async def read_some(self) -> bytes:
        with self._words():
            return await self._client.read_some()

    async def close_stdin(self) -> None:
        await self._client.close_stdin()

    async def wait(self, timeout_s: float | None = None) -> int:
        with self._words():
            status = status_of(await self._client.wait(timeout_s))
        self._ended = True
        return status

    async def signal(self, number: int) -> None:
        # What a process started may outlive it, and still be there to be killed.
        if number == signal.SIGKILL and not self._killed:
            self._killed = True
            await self._send(number)
        elif not self._ended:
            await self._send(number)

    def stderr_tail(self) -> str:
        return self._client.stderr_tail()


@contextmanager
def reworded(prefix: Sequence[str], place: str) -> Iterator[None]:
    """Errors of the engine's client, told of the command in the container that it stands for."""
    try:
        yield
    except HostError as error:
        raise HostError(error.message.replace(f"{' '.join(prefix)} ", ""), place=place) from error
