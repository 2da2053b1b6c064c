"""A conversation in which requests stand side by side, and events come to whoever wants them.

So a tally of a generator does not wait for another request's reply. The engine's lease is renewed all the time, for it
sends on its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any, Final

from nicbench.core.errors import EngineError, HostError, NicbenchError
from nicbench.engine.client import RENEW_AFTER_S, REPLY_TIMEOUT_S, error_of, explain_exit, parse_message
from nicbench.hosts.base import Process
from nicbench.hosts.kinds.local import LINE_LIMIT_BYTES

_FIRST_NUMBER: Final = 1_000_000
"""Requests of this conversation are numbered from here: the configuration before it had the lower numbers."""


class Conversation:
    """Talks with a configured engine from now on; nobody else may. Its process is handed over."""

    def __init__(self, process: Process, name: str, on_event: Callable[[dict[str, Any]], None]) -> None:
        self._process = process
        self._name = name
        self._on_event = on_event
        self._number = _FIRST_NUMBER
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._writing = asyncio.Lock()
        self._failure: NicbenchError | None = None
        self._tasks = [asyncio.ensure_future(self._read()), asyncio.ensure_future(self._renew())]

    @property
    def failure(self) -> NicbenchError | None:
        """Why the engine is gone; None while it is there."""
        return self._failure

    async def request(self, command: str, *, within_s: float = REPLY_TIMEOUT_S, **fields: Any) -> dict[str, Any]:
        """Sends a request and returns its reply. EngineError where it is refused, late, or the engine is gone."""
        self._number += 1
        number = self._number
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            await self._write({"id": number, "command": command, **fields})
            reply = await asyncio.wait_for(future, within_s)
        except TimeoutError:
            raise EngineError(f"no reply to {command} within {within_s:g} s", kind="late", place=self._name) from None
        finally:
            self._waiting.pop(number, None)
        if not reply.get("ok"):
            raise error_of(reply, command, self._name)
        return reply

    async def stop(self) -> None:
        """Ends the conversation; the engine is closed by whoever started it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._fail(EngineError("the session has ended", kind="ended", place=self._name))

    async def _write(self, message: dict[str, Any]) -> None:
        if self._failure is not None:
            raise self._failure
        line = json.dumps(message)
        if len(line) >= LINE_LIMIT_BYTES:
            raise EngineError(
                f"{message['command']} takes {len(line) >> 20} MiB as a line, of at most {LINE_LIMIT_BYTES >> 20}",
                kind="bad_request",
                next_step="ask for less at once: shorter lists of values, or payloads that repeat",
            )
        async with self._writing:
            await self._process.write_line(line)

    async def _read(self) -> None:
        try:
            while True:
                line = await self._process.read_line(timeout_s=_READ_S)
                if line is None:
                    death = await explain_exit(self._process, self._name)
                    death.next_step = "what was sent before is in the run folder; begin anew"
                    raise death
                self._take(parse_message(line))
        except NicbenchError as error:
            self._fail(error)

    def _fail(self, error: NicbenchError) -> None:
        """Tells whoever waits for a reply, and asks for one later, that none comes."""
        self._failure = self._failure or error
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)

    def _take(self, message: dict[str, Any] | None) -> None:
        if message is None:
            raise EngineError("wrote a line that is not a message", kind="protocol", place=self._name)
        if "event" in message:
            self._on_event(message)
            return
        future = self._waiting.get(message.get("id", -1))
        if future is not None and not future.done():
            future.set_result(message)

    async def _renew(self) -> None:
        with contextlib.suppress(HostError):  # the reader tells why
            while True:
                await asyncio.sleep(RENEW_AFTER_S)
                await self._write({"id": 0, "command": "renew", "duration_s": 0.0})


_READ_S: Final = 10 * RENEW_AFTER_S
"""Each renewal has a reply: an engine that is silent for longer hangs."""
