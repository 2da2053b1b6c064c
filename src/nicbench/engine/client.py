"""The protocol's conversation with one engine process: requests, replies, events, errors (protocol/README.md)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import Iterator
from typing import Any

from nicbench.errors import EngineError, HostError
from nicbench.hosts.base import Process

# The minor number is the engine's protocol that this controller needs (protocol/README.md, "Versions").
PROTOCOL = "1.1"
# A reading carries one histogram per stream; anything longer than the host's line limit is refused there.
REPLY_TIMEOUT_S = 30.0
# An engine that is asked nothing for 10 s ends: between trials a slow machine may be busy with itself for longer.
RENEW_AFTER_S = 3.0

# What libbpf and libxdp say of every ordinary start.
_CHATTER = ("libbpf: ", "libxdp: ")


def _without_chatter(text: str) -> str:
    """The lines that may tell why an engine ended."""
    lines = text.strip().splitlines()
    return "\n".join(line for line in lines if not line.startswith(_CHATTER))


def wrong_protocol(theirs: str) -> str | None:
    """What is wrong with an engine of this protocol; a newer one of the same major number is welcome."""
    major, minor = _numbers(theirs) or (None, 0)
    our_major, our_minor = _numbers(PROTOCOL) or (0, 0)
    if major != our_major:
        return f"speaks protocol {theirs}, this controller speaks {PROTOCOL}"
    if minor < our_minor:
        return f"the engine is older than the controller: it speaks protocol {theirs}, this controller needs {PROTOCOL}"
    return None


def _numbers(version: str) -> tuple[int, int] | None:
    """Major and minor number; None where it is no version."""
    parts = version.split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 and all(part.isdecimal() for part in parts) else None


class EngineClient:
    """One engine. Requests are answered in order; events that arrive meanwhile are kept until somebody waits."""

    def __init__(self, process: Process, name: str) -> None:
        self._process = process
        self._name = name
        self._next_id = 1
        self._events: list[dict[str, Any]] = []
        self._renewing: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Of the engine, or of the wrapper that started it."""
        return self._process.pid

    async def greet(self) -> dict[str, Any]:
        """Waits for the first line, checks the version, and says hello; returns hello's reply.

        EngineError where the engine speaks another protocol, or an older one of the same major number: it would ignore
        what it does not know, and what it does not measure would look unknown.
        """
        ready = await self._next_message(REPLY_TIMEOUT_S)
        theirs = str(ready.get("protocol"))
        wrong = wrong_protocol(theirs) if ready.get("event") == "ready" else f"does not begin as protocol {PROTOCOL}"
        if wrong is not None:
            raise EngineError(
                wrong,
                kind="version",
                place=self._name,
                next_step="build engine and controller from the same source: `make install`",
            )
        return await self.request("hello", protocol=PROTOCOL)

    async def request(self, command: str, *, within_s: float = REPLY_TIMEOUT_S, **fields: Any) -> dict[str, Any]:
        """Sends a request and waits for its reply; an error of the engine becomes an EngineError of the same kind."""
        with self._waiting():
            number = await self._write(command, fields)
            while True:
                message = await self._next_message(within_s)
                if "event" in message:
                    self._events.append(message)
                elif message.get("id") == number:
                    return self._checked(command, message)
                # A reply to an earlier request that was given up (a cancelled trial) is of no use to anybody.

    async def wait_for(self, event: str, *, within_s: float, **fields: Any) -> dict[str, Any]:
        """The next event of this name whose fields agree; others of the same name are dropped."""
        with self._waiting():
            while True:
                for message in self._events:
                    if message["event"] == event and all(message.get(key) == value for key, value in fields.items()):
                        self._events.clear()
                        return message
                self._events.clear()
                message = await self._next_message(within_s)
                if "event" in message:
                    self._events.append(message)

    async def close(self) -> None:
        """Asks the engine to end, and makes sure that it does. Never raises for one that is gone already."""
        try:
            await self.request("close", within_s=5.0)
            await self._process.wait(timeout_s=5.0)
        except HostError:
            with contextlib.suppress(HostError):
                await self._process.signal(signal.SIGKILL)
                await self._process.wait(timeout_s=5.0)
        finally:
            self._stop_renewing()

    async def _write(self, command: str, fields: dict[str, Any]) -> int:
        number, self._next_id = self._next_id, self._next_id + 1
        try:
            await self._process.write_line(json.dumps({"id": number, "command": command, **fields}))
        except HostError as error:
            try:
                death = await self._death()
            except HostError:  # it lives, and does not read
                raise error from None
            raise death from error
        return number

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[None]:
        """The engine is waited for: meanwhile no timer wakes this process, afterwards the lease is kept up."""
        self._stop_renewing()
        try:
            yield
        finally:
            self._renewing = asyncio.get_running_loop().create_task(self._renew())

    def _stop_renewing(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            self._renewing = None

    async def _renew(self) -> None:
        with contextlib.suppress(HostError):  # who asks next is told
            while True:
                await asyncio.sleep(RENEW_AFTER_S)
                await self._write("renew", {"duration_s": 0.0})

    def _checked(self, command: str, reply: dict[str, Any]) -> dict[str, Any]:
        if reply.get("ok"):
            return reply
        error = reply.get("error") or {}
        raise EngineError(
            str(error.get("message", f"refused {command}")),
            kind=str(error.get("kind", "unknown")),
            place=self._name,
            next_step=error.get("next"),
        )

    async def _next_message(self, within_s: float) -> dict[str, Any]:
        line = await self._process.read_line(timeout_s=within_s)
        if line is None:
            raise await self._death()
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise EngineError(f"wrote a line that is no message: {line[:200]!r}", kind="protocol", place=self._name)
        return message

    async def _death(self) -> EngineError:
        status = await self._process.wait(timeout_s=5.0)
        how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
        tail = _without_chatter(self._process.stderr_tail())
        return EngineError(
            f"the engine {how}" + (f"; its last words: {tail}" if tail else ""),
            place=self._name,
            next_step="what was measured is kept; `nicbench resume` goes on from there",
        )
