"""The protocol's conversation with one engine process: requests, replies, events, errors (protocol/README.md)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
from collections.abc import Iterator
from typing import Any

from pydantic_core import from_json

from nicbench.core.errors import EngineError, HostError
from nicbench.hosts.base import Process
from nicbench.store.reading import refuse_absurd_numbers

# The minor number is the oldest that this controller works with (protocol/README.md, "Versions").
PROTOCOL = "1.5"
# A reading carries one histogram per stream; the host refuses lines above its limit.
REPLY_TIMEOUT_S = 30.0
# An engine without a request for 10 s ends, and between trials a slow machine may be busy for longer.
RENEW_AFTER_S = 3.0
_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")

# libbpf and libxdp print lines with these prefixes at every ordinary start.
_CHATTER_PREFIXES = ("libbpf: ", "libxdp: ")


def _drop_chatter(text: str) -> str:
    """The text without lines that cannot explain why an engine ended."""
    lines = text.strip().splitlines()
    return "\n".join(line for line in lines if not line.startswith(_CHATTER_PREFIXES))


def explain_wrong_protocol(theirs: str) -> str | None:
    """Why this controller cannot work with an engine of this protocol version; None where it can.

    A newer engine of the same major number is fine.
    """
    major, minor = _parse_version(theirs) or (None, 0)
    our_major, our_minor = _parse_version(PROTOCOL) or (0, 0)
    if major != our_major:
        return f"speaks protocol {theirs}, this controller speaks {PROTOCOL}"
    if minor < our_minor:
        return f"the engine is older than the controller: it speaks protocol {theirs}, this controller needs {PROTOCOL}"
    return None


def _parse_version(version: str) -> tuple[int, int] | None:
    """Major and minor number of a version; None where the text is not one."""
    found = _VERSION.fullmatch(version)
    return (int(found[1]), int(found[2])) if found else None


def parse_message(line: str) -> dict[str, Any] | None:
    """The object in a line of an engine; None where there is none, or it holds a number that cannot be."""
    content = line.encode(errors="replace")
    try:
        message = from_json(content)
        refuse_absurd_numbers(content)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def error_of(reply: dict[str, Any], command: str, place: str) -> EngineError:
    """The error in a reply, whatever the reply holds in its place."""
    error = reply.get("error")
    said = error if isinstance(error, dict) else {}
    next_step = said.get("next")
    return EngineError(
        str(said.get("message", f"refused {command}")),
        kind=str(said.get("kind", "unknown")),
        place=place,
        next_step=next_step if isinstance(next_step, str) else None,
    )


class EngineClient:
    """The conversation with one engine. Replies come in order; events that arrive meanwhile wait for ``wait_for``."""

    def __init__(self, process: Process, name: str) -> None:
        self._process = process
        self._name = name
        self._next_id = 1
        self._events: list[dict[str, Any]] = []
        self._renewing: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the engine, or of the wrapper that started it."""
        return self._process.pid

    async def greet(self) -> dict[str, Any]:
        """Waits for the first line, checks the version, and says hello; returns hello's reply.

        EngineError where the engine speaks another protocol, or an older minor version: it would ignore requests that
        it does not know, and values that it does not measure would be missing.
        """
        ready = await self._next_message(REPLY_TIMEOUT_S)
        theirs = str(ready.get("protocol"))
        wrong = (
            explain_wrong_protocol(theirs)
            if ready.get("event") == "ready"
            else f"does not start with protocol {PROTOCOL}"
        )
        if wrong is not None:
            raise EngineError(
                wrong,
                kind="version",
                place=self._name,
                next_step="build engine and controller from the same source: `make install`",
            )
        return await self.request("hello", protocol=PROTOCOL)

    async def request(self, command: str, *, within_s: float = REPLY_TIMEOUT_S, **fields: Any) -> dict[str, Any]:
        """Sends a request and waits for its reply; an error in the reply becomes an EngineError of the same kind."""
        with self._pause_lease():
            number = await self._write(command, fields)
            while True:
                message = await self._next_message(within_s)
                if "event" in message:
                    self._events.append(message)
                elif message.get("id") == number:
                    return self._require_ok(command, message)
                # Anything else is the reply to an earlier request that was abandoned with its trial: it is dropped.

    async def wait_for(self, event: str, *, within_s: float, **fields: Any) -> dict[str, Any]:
        """The next event of this name whose fields have these values; events before it are dropped."""
        with self._pause_lease():
            while True:
                for place, message in enumerate(self._events):
                    if message["event"] == event and all(message.get(key) == value for key, value in fields.items()):
                        del self._events[: place + 1]
                        return message
                self._events.clear()
                message = await self._next_message(within_s)
                if "event" in message:
                    self._events.append(message)

    def hand_over(self) -> Process:
        """Returns the process to whoever talks with it from now on, until ``close``; the lease is theirs."""
        self._stop_renewing()
        return self._process

    async def close(self) -> None:
        """Asks the engine to end, and kills it where it does not. Never raises where it has ended already."""
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
                death = await self._describe_exit()
            except HostError:  # the engine is alive, but does not read
                raise error from None
            raise death from error
        return number

    @contextlib.contextmanager
    def _pause_lease(self) -> Iterator[None]:
        """Stops the renewals of the lease while a reply is awaited, so that no timer wakes this process in a trial."""
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
        with contextlib.suppress(HostError):  # the next request reports it
            while True:
                await asyncio.sleep(RENEW_AFTER_S)
                await self._write("renew", {"duration_s": 0.0})

    def _require_ok(self, command: str, reply: dict[str, Any]) -> dict[str, Any]:
        if reply.get("ok"):
            return reply
        raise error_of(reply, command, self._name)

    async def _next_message(self, within_s: float) -> dict[str, Any]:
        line = await self._process.read_line(timeout_s=within_s)
        if line is None:
            raise await self._describe_exit()
        message = parse_message(line)
        if message is None:
            raise EngineError(f"wrote a line that is not a message: {line[:200]!r}", kind="protocol", place=self._name)
        return message

    async def _describe_exit(self) -> EngineError:
        return await explain_exit(self._process, self._name)


async def explain_exit(process: Process, name: str) -> EngineError:
    """Returns how an engine ended, with its last words."""
    status = await process.wait(timeout_s=5.0)
    how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
    tail = _drop_chatter(process.stderr_tail())
    return EngineError(
        f"the engine {how}" + (f"; its last output: {tail}" if tail else ""),
        place=name,
        next_step="everything measured so far is saved: `nicbench resume` continues the run",
    )
