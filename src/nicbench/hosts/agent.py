"""Connections to the agents of virtual machines (protocol/agent.md): one for each guest of an event loop."""

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
from weakref import WeakKeyDictionary

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.channel import Channel

# Why not sshd on the port: an emulated guest needs 2 to 5 s more CPU until its first command (11 to 12 s with the
# agent); sshd refuses signals for root, commands outlive a lost controller, and what they left on the port breaks the
# next connection.

GREETING: Final = "nicbench-agent 1 "
START, INPUT, INPUT_END, SIGNAL, CREDIT, READ, WRITE = range(1, 8)
STARTED, FAILED, OUTPUT, ERRORS, OUTPUT_END, EXITED, CONTENT, TAKEN = range(101, 109)
_HEAD: Final = struct.Struct("<IBI")
_HEAD_BYTES: Final = 5
_SIGNED: Final = struct.Struct("<i")
_MOST_BYTES: Final = 64 * 1024 * 1024
_AHEAD_BYTES: Final = 1024 * 1024
"""Bytes of stdin that may be sent before the command has read them."""
_CREDIT_BYTES: Final = 256 * 1024
"""Credit for output that was read is granted in pieces of this size."""


class PortLostError(HostError):
    """The guest's port was closed or carries invalid frames, as happens when the guest itself has ended."""


class AgentChannel(Channel):
    """One command that the agent runs, or one request to it."""

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
        """Handles a frame of the agent for this channel."""
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
        """Ends the channel because its connection was lost."""
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
        """Closes the channel and ends its command if that still runs."""
        if not self.closed:
            self.closed = True
            self._connection.send(CREDIT, self.number, struct.pack("<I", 0))

    def _hold_back(self) -> None:
        if self._owed >= _CREDIT_BYTES and not self._is_full and not self.closed:
            self._connection.send(CREDIT, self.number, struct.pack("<I", self._owed))
            self._owed = 0


class AgentConnection:
    """A connection over one port. ``lost`` is the error once the connection has ended by itself."""

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
        """Greets the agent and waits for its answer, which a booting guest gives later. HostError; TimeoutError."""
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
        """Starts a command; returns its channel and process id."""
        wanted = {"command": list(command), "environment": dict(environment or {})}
        channel = await self._request(START, json.dumps(wanted).encode(), lambda channel: channel.pid is not None)
        if channel.refusal is not None:
            number, reason = channel.refusal
            if number in (errno.ENOENT, errno.EACCES):
                raise NotReadyError(
                    f"{command[0]}: command not found",
                    place=self._host,
                    next_step="install it on this machine, whose programs the guest has, and start the guest anew",
                )
            raise HostError(f"{command[0]} cannot be started: {reason}", place=self._host)
        return channel, channel.pid or 0

    async def read_file(self, path: str) -> bytes | None:
        """Reads a file; None where it does not exist. HostError with the system's reason."""
        channel = await self._request(READ, path.encode(), lambda channel: channel.content is not None)
        if channel.refusal is not None:
            if channel.refusal[0] in (errno.ENOENT, errno.ENOTDIR, errno.ESRCH):
                return None
            raise HostError(f"cannot read {path}: {_refusal_reason(channel.refusal)}", place=self._host)
        return channel.content

    async def write_file(self, path: str, content: bytes) -> None:
        """Writes a file in one system call. HostError with the system's reason."""
        name = path.encode()
        body = struct.pack("<I", len(name)) + name + content
        channel = await self._request(WRITE, body, lambda channel: channel.content is not None)
        if channel.refusal is not None:
            text = content.decode(errors="replace").strip()
            raise HostError(f"cannot write {text!r} to {path}: {_refusal_reason(channel.refusal)}", place=self._host)

    async def signal(self, pid: int, number: int) -> None:
        """Sends a signal to a command's process group."""
        for channel in self._channels.values():
            if channel.pid == pid:
                self.send(SIGNAL, channel.number, struct.pack("<I", number))

    def release(self, channel: Channel) -> None:
        """Closes and forgets the channel of a command that has ended or is not needed any more."""
        channel.close()
        if isinstance(channel, AgentChannel):
            self._channels.pop(channel.number, None)

    def failure(self) -> HostError:
        """Returns the error for whoever waits for something on this connection after it was lost."""
        return self.lost or PortLostError("cannot be reached any more", place=self._host)

    def send(self, kind: int, number: int, body: bytes = b"") -> None:
        """Sends one frame; nothing happens when the connection is lost."""
        if self.lost is None and not self._writer.is_closing():
            self._writer.write(_HEAD.pack(_HEAD_BYTES + len(body), kind, number) + body)

    async def close(self) -> None:
        """Closes the connection; the agent kills the commands that still run."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait((self._reading,))
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        self._lose("it was closed")

    async def _request(self, kind: int, body: bytes, answered: Callable[[AgentChannel], bool]) -> AgentChannel:
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
        # What an earlier connection left on the port comes first and is skipped.
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
                    self._lose(f"a frame of {length} bytes arrived")
                    return
                body = await self._reader.readexactly(length - _HEAD_BYTES)
                if (channel := self._channels.get(number)) is not None:
                    channel.see(kind, body)
        except (asyncio.IncompleteReadError, OSError):
            self._lose("the guest's port was closed")
        except struct.error:
            self._lose("a malformed frame arrived")

    def _lose(self, why: str) -> None:
        if self.lost is None:
            self.lost = PortLostError(f"cannot be reached any more: {why}", place=self._host)
        for channel in list(self._channels.values()):
            channel.lose()


def _number(body: bytes) -> int:
    return int(struct.unpack_from("<I", body)[0])


def _refusal_reason(refusal: tuple[int, str]) -> str:
    return os.strerror(refusal[0]) if refusal[0] else refusal[1]


# Hosts are made again from their specs in many places, so connections are kept by event loop and path.
_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Port]] = WeakKeyDictionary()


class Port:
    """A guest's serial port, by the path of its socket. After a lost connection every use fails until ``reopen``."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: AgentConnection | None = None
        self._opening = asyncio.Lock()

    async def connection(self, host: str, gone: Callable[[], bool], timeout_s: float) -> AgentConnection:
        """Returns the open connection, or opens one. HostError where an earlier one was lost or the guest is silent."""
        async with self._opening:
            if self._connection is None:
                try:
                    self._connection = await AgentConnection.open(self._path, host, gone=gone, timeout_s=timeout_s)
                except TimeoutError:
                    message = f"the guest does not answer within {timeout_s:g} s"
                    raise HostError(message, place=host) from None
            if self._connection.lost is not None:
                raise self._connection.lost
            return self._connection

    async def reopen(self) -> None:
        """Forgets a lost connection; the next command opens another."""
        if self._connection is not None and self._connection.lost is not None:
            await self.close()

    async def close(self) -> None:
        """Closes the connection, which kills its commands in the guest; a later command opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def port(path: str) -> Port:
    """Returns the port with this path in the running event loop."""
    return _pools.setdefault(asyncio.get_running_loop(), {}).setdefault(path, Port(path))


async def close_ports() -> None:
    """Closes every port of the running event loop."""
    await asyncio.gather(*(each.close() for each in _pools.pop(asyncio.get_running_loop(), {}).values()))
