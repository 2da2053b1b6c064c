"""A ``nicbench-monitor`` and the conversation with it (protocol/monitor.md): replies to who asked, events to a log."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable
from typing import Any

from nicbench.core.errors import EngineError, HostError
from nicbench.engine.client import PROTOCOL, error_of, explain_wrong_protocol, parse_message
from nicbench.hosts.base import Process
from nicbench.store.monitor_samples import SAMPLE

_REPLY_TIMEOUT_S = 10.0
NAME = "nicbench-monitor"


class MonitorClient:
    """Hands every event to ``log``, as the line that came, in the order in which events and replies came.

    ``log`` is called by the loop and must not block for long. ``on_reply`` is told of each reply before whoever waits.
    """

    def __init__(self, process: Process, log: Callable[[str], None], place: str) -> None:
        self._process = process
        self._log = log
        self._place = place
        self._next_id = 1
        self._waiting: dict[int, tuple[asyncio.Future[dict[str, Any]], Callable[[], None] | None]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._death: EngineError | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the monitor."""
        return self._process.pid

    async def greet(self) -> dict[str, Any]:
        """Checks the version and says hello; its reply."""
        line = await self._process.read_line(timeout_s=_REPLY_TIMEOUT_S)
        ready = _message(line or "{}")
        wrong = (
            explain_wrong_protocol(str(ready.get("protocol")))
            if ready.get("event") == "ready"
            else f"does not start with protocol {PROTOCOL}"
        )
        if wrong is not None:
            step = "build monitor and controller from the same source: `make install`"
            raise EngineError(wrong, kind="version", place=self._place, next_step=step)
        self._log(line or "")
        self._reader = asyncio.create_task(self._read())
        return await self.request("hello", protocol=PROTOCOL)

    async def request(
        self, command: str, *, on_reply: Callable[[], None] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Its reply; EngineError where the monitor refuses, is silent or has ended."""
        if self._death is not None:
            raise self._death
        number, self._next_id = self._next_id, self._next_id + 1
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (future, on_reply)
        try:
            await self._process.write_line(json.dumps({"id": number, "command": command, **fields}))
            async with asyncio.timeout(_REPLY_TIMEOUT_S):
                reply = await future
        except TimeoutError:
            message = f"did not answer {command} within {_REPLY_TIMEOUT_S:g} s"
            raise EngineError(message, kind="silent", place=self._place) from None
        finally:
            self._waiting.pop(number, None)
        if reply.get("ok"):
            return reply
        raise error_of(reply, command, self._place)

    async def close(self) -> dict[str, Any] | None:
        """The reply to ``close``, which says what it cost; None where it was gone already. Never raises."""
        reply = None
        try:
            if self._reader is None:
                raise HostError("it was never understood", place=self._place)  # nobody reads what it replies
            reply = await self.request("close")
            await self._process.wait(timeout_s=5.0)
        except (HostError, EngineError):
            with contextlib.suppress(HostError):
                await self._process.signal(signal.SIGKILL)
                await self._process.wait(timeout_s=5.0)
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait((self._reader,))
        return reply

    async def _read(self) -> None:
        """Until the monitor ends. A line that is no message ends it, too: what follows could not be trusted."""
        reason, line = "ended", None
        try:
            while (line := await self._process.read_line()) is not None:
                if line.startswith(SAMPLE):
                    self._log(line)
                    continue
                message = _message(line)
                if "event" in message:
                    self._log(line)
                elif "id" in message:
                    self._answer(message)
                else:
                    reason = f"wrote a line that is no message: {line[:200]!r}"
                    break
        except HostError as error:
            reason = error.message
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            reason = f"wrote a line that cannot be understood ({type(error).__name__}): {(line or '')[:200]!r}"
        tail = self._process.stderr_tail()
        self._death = EngineError(f"{reason}" + (f"; its last words: {tail}" if tail else ""), place=self._place)
        for future, _ in self._waiting.values():
            if not future.done():
                future.set_exception(self._death)

    def _answer(self, message: dict[str, Any]) -> None:
        future, on_reply = self._waiting.get(message["id"] if isinstance(message["id"], int) else -1, (None, None))
        if on_reply is not None:
            on_reply()
        if future is not None and not future.done():
            future.set_result(message)


def _message(line: str) -> dict[str, Any]:
    """An empty one where the line is none."""
    return parse_message(line) or {}
