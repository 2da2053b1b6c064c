"""The protocol's conversation with one engine process: requests, replies, events, errors (protocol/README.md)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pydantic_core import from_json

from nicbench.core.errors import EngineError, HostError, NicbenchError, NotReadyError
from nicbench.engine.binaries import deploy_binary
from nicbench.hosts.base import Host, Process
from nicbench.hosts.kinds.local import LINE_LIMIT_BYTES
from nicbench.store.files import refuse_absurd_numbers

# The minor number is the oldest that this controller works with (protocol/README.md, "Versions").
PROTOCOL = "1.7"
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
    """Returns the object in a line of an engine; None for a line without one, or with an impossible number."""
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


# A conversation in which requests stand side by side, and events come to whoever wants them.  So a tally of a
# generator does not wait for another request's reply. The engine's lease is renewed all the time, for it sends on its
# own.

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


# Asks the engine itself whether it can take ports: it opens them as for a trial, sends nothing, and ends.

# An emulated machine takes its time to verify a program.
_WITHIN_S = 180.0


async def refusal_of_ports(
    host: Host, ports: Sequence[dict[str, Any]], engine_folder: str | None = None, prefix: tuple[str, ...] = ()
) -> str | None:
    """The engine's reason where it cannot open these ports (objects of the protocol) on the host; None where it can.

    ``prefix`` is a command that runs another (``unshare --net ..``). NotReadyError if the engine is not built.
    """
    binary = await deploy_binary(host, "nicbench-packets", engine_folder)
    client = EngineClient(await host.start([*prefix, binary]), f"nicbench-packets on {host.name}")
    try:
        await client.greet()
        await client.request("configure", within_s=_WITHIN_S, run_key=f"{0:016x}", clock="tsc", ports=list(ports))
    except NotReadyError:
        raise
    except (EngineError, HostError) as error:
        return error.message.removeprefix(f"port {ports[0]['name']}: ")
    finally:
        await client.close()
    return None
