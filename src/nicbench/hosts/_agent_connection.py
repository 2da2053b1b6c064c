"""The conversation with the agent of a virtual machine (protocol/agent.md): one serial port carries every command."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import secrets
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from nicbench.errors import HostError, NotReadyError
from nicbench.hosts._channel import Channel

GREETING: Final = "nicbench-agent 1 "
START, INPUT, INPUT_END, SIGNAL, CREDIT, READ, WRITE = range(1, 8)
STARTED, FAILED, OUTPUT, ERRORS, OUTPUT_END, EXITED, CONTENT, TAKEN = range(101, 109)
_HEAD: Final = struct.Struct("<IBI")
_HEAD_BYTES: Final = 5
_SIGNED: Final = struct.Struct("<i")
_MOST_BYTES: Final = 64 * 1024 * 1024
_AHEAD_BYTES: Final = 1024 * 1024
"""Of stdin, which the command has not taken yet."""
_CREDIT_BYTES: Final = 256 * 1024
"""What was taken is told in such pieces."""


class PortLostError(HostError):
    """The guest's port was closed, or carries nothing that can be understood: so it ends where the guest itself did."""


class AgentChannel(Channel):
    """A command of the agent's, or one question to it."""

    def __init__(self, connection: AgentConnection, number: int) -> None:
        super().__init__()
        self.number = number
        self.pid: int | None = None
        self.refusal: tuple[int, str] | None = None
        self.content: bytes | None = None
        self._connection = connection
        self._owed = 0
        self._ahead = 0

    def see(self, kind: int, body: bytes) -> None:
        """What the agent says of it."""
        if kind == STARTED:
            self.pid = _number(body)
        elif kind == FAILED:
            self.refusal = (int(_SIGNED.unpack_from(body)[0]), body[4:].decode(errors="replace"))
        elif kind == OUTPUT:
            self._owed += len(body)
            self._see_output(body)
        elif kind == ERRORS:
            self._see_errors(body)
        elif kind == OUTPUT_END:
            self.at_end = True
        elif kind == EXITED:
            self.status = _SIGNED.unpack(body)[0]
        elif kind == CONTENT:
            self.content = body
        elif kind == TAKEN:
            self._ahead -= _number(body)
        self._tell()

    def lose(self) -> None:
        """The connection is no more."""
        self.closed = self.at_end = True
        self._tell()

    async def write(self, data: bytes) -> None:
        if self.closed or self.status is not None:
            raise BrokenPipeError
        self._ahead += len(data)
        self._connection.send(INPUT, self.number, data)
        await self.until(lambda: self._ahead <= _AHEAD_BYTES or self.closed or self.status is not None)
        if self.closed:
            raise BrokenPipeError

    def write_eof(self) -> None:
        if not self.closed:
            self._connection.send(INPUT_END, self.number)

    def close(self) -> None:
        """Also ends the command where it has not ended."""
        if not self.closed:
            self.closed = True
            self._connection.send(CREDIT, self.number, struct.pack("<I", 0))

    def _hold_back(self) -> None:
        if self._owed >= _CREDIT_BYTES and not self._is_full and not self.closed:
            self._connection.send(CREDIT, self.number, struct.pack("<I", self._owed))
            self._owed = 0


class AgentConnection:
    """One port. ``lost`` says, once it has ended by itself, how."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader = reader
        self._writer = writer
        self._host = host
        self._channels: dict[int, AgentChannel] = {}
        self._last = 0
        self._reading: asyncio.Task[None] | None = None
        self.lost: HostError | None = None

    @classmethod
    async def open(cls, path: str, host: str, *, gone: Callable[[], bool], timeout_s: float) -> AgentConnection:
        """Greets until the agent answers: a guest that is not up yet reads it later. HostError; TimeoutError."""
        async with asyncio.timeout(timeout_s):
            try:
                reader, writer = await asyncio.open_unix_connection(path, limit=2**20)
            except OSError as error:
                raise PortLostError(f"nobody listens at {path}: {error.strerror}", place=host) from error
            connection = cls(reader, writer, host)
            try:
                await connection._greet(gone)
            except BaseException:
                writer.close()
                raise
        connection._reading = asyncio.create_task(connection._read())
        return connection

    async def start(self, command: Sequence[str], environment: Mapping[str, str] | None) -> tuple[AgentChannel, int]:
        """The command running, and its process id."""
        wanted = {"command": list(command), "environment": dict(environment or {})}
        channel = await self._ask(START, json.dumps(wanted).encode(), lambda asked: asked.pid is not None)
        if channel.refusal is not None:
            number, words = channel.refusal
            if number in (errno.ENOENT, errno.EACCES):
                raise NotReadyError(
                    f"{command[0]}: command not found",
                    place=self._host,
                    next_step="install it on this machine, whose programs the guest has, and start the guest anew",
                )
            raise HostError(f"{command[0]} cannot be started: {words}", place=self._host)
        return channel, channel.pid or 0

    async def read_file(self, path: str) -> bytes | None:
        """Its content, None where it does not exist; HostError with the system's words."""
        channel = await self._ask(READ, path.encode(), lambda asked: asked.content is not None)
        if channel.refusal is not None:
            if channel.refusal[0] in (errno.ENOENT, errno.ENOTDIR, errno.ESRCH):
                return None
            raise HostError(f"cannot read {path}: {_words(channel.refusal)}", place=self._host)
        return channel.content

    async def write_file(self, path: str, content: bytes) -> None:
        """In one call; HostError with the system's words."""
        name = path.encode()
        body = struct.pack("<I", len(name)) + name + content
        channel = await self._ask(WRITE, body, lambda asked: asked.content is not None)
        if channel.refusal is not None:
            text = content.decode(errors="replace").strip()
            raise HostError(f"cannot write {text!r} to {path}: {_words(channel.refusal)}", place=self._host)

    async def signal(self, pid: int, number: int) -> None:
        """To the command's process group."""
        for channel in self._channels.values():
            if channel.pid == pid:
                self.send(SIGNAL, channel.number, struct.pack("<I", number))

    def release(self, channel: Channel) -> None:
        """A command has ended, or nobody cares any more."""
        channel.close()
        if isinstance(channel, AgentChannel):
            self._channels.pop(channel.number, None)

    def failure(self) -> HostError:
        """How the connection ended, for whoever waits for something on it."""
        return self.lost or PortLostError("cannot be reached any more", place=self._host)

    def send(self, kind: int, number: int, body: bytes = b"") -> None:
        """One frame."""
        if self.lost is None and not self._writer.is_closing():
            self._writer.write(_HEAD.pack(_HEAD_BYTES + len(body), kind, number) + body)

    async def close(self) -> None:
        """What still runs there is killed."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait((self._reading,))
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        self._lose("it was closed")

    async def _ask(self, kind: int, body: bytes, answered: Callable[[AgentChannel], bool]) -> AgentChannel:
        if self.lost is not None:
            raise self.lost
        if len(body) > _MOST_BYTES:
            raise HostError(f"more than {_MOST_BYTES} bytes at once", place=self._host)
        self._last += 1
        channel = self._channels[self._last] = AgentChannel(self, self._last)
        self.send(kind, channel.number, body)
        try:
            await channel.until(lambda: answered(channel) or channel.refusal is not None or channel.closed)
        except BaseException:
            self.release(channel)
            raise
        if not answered(channel) and channel.refusal is None:
            self._channels.pop(channel.number, None)
            raise self.failure()
        if kind != START or channel.refusal is not None:
            self._channels.pop(channel.number, None)
        return channel

    async def _greet(self, gone: Callable[[], bool]) -> None:
        token = secrets.token_hex(16)
        line = f"{GREETING}{token}\n".encode()
        self._writer.write(line)
        # What an earlier conversation left on the port comes first.
        answer = asyncio.create_task(self._reader.readuntil(line))
        try:
            while not (await asyncio.wait((answer,), timeout=0.2))[0]:
                if gone():
                    raise PortLostError("the guest has ended", place=self._host)
            await answer
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as error:
            raise PortLostError("the guest's port was closed", place=self._host) from error
        finally:
            answer.cancel()

    async def _read(self) -> None:
        try:
            while True:
                length, kind, number = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
                if not _HEAD_BYTES <= length <= _HEAD_BYTES + _MOST_BYTES:
                    self._lose(f"a frame of {length} bytes came")
                    return
                body = await self._reader.readexactly(length - _HEAD_BYTES)
                if (channel := self._channels.get(number)) is not None:
                    channel.see(kind, body)
        except (asyncio.IncompleteReadError, OSError):
            self._lose("the guest's port was closed")
        except struct.error:
            self._lose("a frame came whose content is none of its kind")

    def _lose(self, why: str) -> None:
        if self.lost is None:
            self.lost = PortLostError(f"cannot be reached any more: {why}", place=self._host)
        for channel in list(self._channels.values()):
            channel.lose()


def _number(body: bytes) -> int:
    return int(struct.unpack_from("<I", body)[0])


def _words(refusal: tuple[int, str]) -> str:
    return os.strerror(refusal[0]) if refusal[0] else refusal[1]
