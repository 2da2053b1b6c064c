"""The line between the process that hears clients, which has no rights, and the one that makes labs and sends frames.

A message is a head, of its number, whether it is an answer that was found, and its length, and JSON: a request
``{"do": NAME, "of": MESSAGE}``, the answer to the request of that number, or OTG's error.
"""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from pydantic_core import from_json, to_json

from nicbench.otg.api import LARGEST_BODY_BYTES, error_message
from nicbench.otg.model import OtgError

Handle = Callable[[Mapping[str, Any]], Awaitable[Any]]
_HEAD: Final = struct.Struct(">I?I")
_MOST_BYTES: Final = 4 * LARGEST_BODY_BYTES
"""Of a message: written anew, a request may be longer than it came."""
_MOST_WAITING: Final = 1024


class Calls:
    """Asks the process with the rights."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._numbers = itertools.count(1)
        self._waits: dict[int, asyncio.Future[bytes]] = {}

    async def ask(self, name: str, message: Mapping[str, Any] | None = None) -> bytes:
        """Returns the answer as JSON. OtgError where the request is refused."""
        asked = {"do": name, "of": message or {}}
        try:
            content = await asyncio.to_thread(to_json, asked, inf_nan_mode="constants")
        except ValueError as error:
            raise OtgError([f"the message cannot be written: {error}"]) from error
        number = next(self._numbers)
        self._waits[number] = asyncio.get_running_loop().create_future()
        try:
            _write(self._writer, number, content)
            await self._writer.drain()
            return await self._waits[number]
        finally:
            del self._waits[number]

    def tell(self, address: str) -> None:
        """Says where clients are heard."""
        _write(self._writer, 0, to_json(address))

    async def hear(self) -> None:
        """Takes answers until the other process closes the line."""
        while (received := await _read(self._reader)) is not None:
            number, is_found, content = received
            waits = self._waits.get(number)
            if waits is None or waits.done():  # its client is gone
                continue
            if is_found:
                waits.set_result(content)
            else:
                error = from_json(content)
                waits.set_exception(OtgError(error["errors"], code=error["code"]))
        for waits in self._waits.values():
            if not waits.done():
                waits.set_exception(OtgError(["the server ends"], code=500))


async def answer_calls(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    handlers: Mapping[str, Handle],
    tell: Callable[[str], None],
) -> None:
    """Has requests handled until the other process closes the line; what it said is done to its end."""
    tasks: set[asyncio.Task[None]] = set()
    room = asyncio.Semaphore(_MOST_WAITING)

    async def answer(number: int, content: bytes) -> None:
        try:
            asked = await asyncio.to_thread(from_json, content)
            told = await handlers[asked["do"]](asked["of"])
            found, is_found = await asyncio.to_thread(to_json, told), True
        except Exception as error:
            found, is_found = to_json(error_message(error)), False
        finally:
            room.release()
        if not writer.is_closing():
            _write(writer, number, found, is_found=is_found)
            await writer.drain()

    while (received := await _read(reader)) is not None:
        number, _, content = received
        if number == 0:
            tell(str(from_json(content)))
            continue
        await room.acquire()
        task = asyncio.ensure_future(answer(number, content))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


def _write(writer: asyncio.StreamWriter, number: int, content: bytes, *, is_found: bool = True) -> None:
    writer.write(_HEAD.pack(number, is_found, len(content)))
    writer.write(content)


async def _read(reader: asyncio.StreamReader) -> tuple[int, bool, bytes] | None:
    """Returns one message; None if the other process is gone, or sends anything else."""
    try:
        number, is_found, length = _HEAD.unpack(await reader.readexactly(_HEAD.size))
        if length > _MOST_BYTES:
            return None
        return number, is_found, await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
