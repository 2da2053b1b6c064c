"""The conversation with a guest's agent, where what comes is not what the protocol says (protocol/agent.md)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import struct
from pathlib import Path

import pytest

from nicbench.core.errors import HostError
from nicbench.hosts.agent import (
    CONTENT,
    EXITED,
    FAILED,
    OUTPUT,
    STARTED,
    TAKEN,
    AgentConnection,
    PortLostError,
)
from nicbench.hosts.kinds.vm import KNOWN_BY, VmHost
from nicbench.hosts.options import VmOptions
from nicbench.hosts.owner import start_ticks

_LOST_S = 10.0
_NUMBER = 1


def frame(kind: int, body: bytes, number: int = _NUMBER) -> bytes:
    return struct.pack("<IBI", 5 + len(body), kind, number) + body


async def conversation(path: Path, answer: bytes, *, repeats: bool = True) -> AgentConnection:
    """With an agent that repeats the greeting, says this to the first question whatever it is, and closes the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeting = await reader.readline()
        if repeats:
            writer.write(b"\0rest of an earlier conversation" + greeting)
            await reader.readexactly(9)
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, str(path))
    try:
        return await AgentConnection.open(str(path), "guest", gone=lambda: False, timeout_s=_LOST_S)
    finally:
        server.close()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"", "the port was closed"),
        (frame(CONTENT, b"x")[:-1], "the port was closed"),
        (frame(CONTENT, b"x")[:3], "the port was closed"),
        (b"\xff" * 9, "a frame of 4294967295 bytes arrived"),
        (bytes(9), "a frame of 0 bytes arrived"),
        (frame(STARTED, b"\1"), "a malformed frame arrived"),
        (frame(FAILED, b""), "a malformed frame arrived"),
        (frame(EXITED, b"\0\0\0\0\0"), "a malformed frame arrived"),
        (frame(TAKEN, b"123"), "a malformed frame arrived"),
        (frame(99, b"of no kind") + frame(CONTENT, b"x", number=77), "the port was closed"),
    ],
    ids=lambda given: given if isinstance(given, str) else given[:12].hex(),
)
async def test_what_is_no_answer_ends_the_conversation_and_whoever_waits_is_told(
    tmp_path: Path, answer: bytes, told: str
) -> None:
    connection = await conversation(tmp_path / "port", answer)
    async with asyncio.timeout(_LOST_S):
        with pytest.raises(PortLostError, match=told.replace("the port", "the guest's port")):
            await connection.read_file("/some/file")
        with pytest.raises(PortLostError):  # and everybody who asks later
            await connection.read_file("/some/file")
    await connection.close()


async def test_noise_ends_the_conversation_and_never_the_controller(tmp_path: Path, draw: random.Random) -> None:
    for number in range(30):
        connection = await conversation(tmp_path / f"port{number}", noise(draw))
        async with asyncio.timeout(_LOST_S):
            while connection.lost is None:
                with contextlib.suppress(HostError):
                    await connection.read_file("/some/file")
        await connection.close()


def noise(draw: random.Random) -> bytes:
    """Frames of random kinds with random bodies, some with a wrong length."""
    parts = []
    for _ in range(draw.randrange(1, 20)):
        body = draw.randbytes(draw.randrange(12))
        length = 5 + len(body) + draw.choice((0, 0, 0, 0, 1, -1))
        parts.append(struct.pack("<IBI", length, draw.choice((OUTPUT, *range(99, 111))), _NUMBER) + body)
    return b"".join(parts)


async def test_a_port_that_closes_before_it_greets_is_told(tmp_path: Path) -> None:
    with pytest.raises(PortLostError, match="the guest's port was closed"):
        await conversation(tmp_path / "port", b"", repeats=False)


async def test_a_guest_that_dies_is_told_as_dead_though_its_port_is_closed_before_it_is_gone(tmp_path: Path) -> None:
    dying = await asyncio.create_subprocess_exec("sleep", "0.5")
    (tmp_path / KNOWN_BY).write_text(f"{dying.pid} {start_ticks(dying.pid)}\n")
    (tmp_path / "console.log").write_text("Kernel panic - not syncing: Attempted to kill init!\n")
    host = VmHost(VmOptions(), "guest", str(tmp_path))  # nobody listens at its port any more
    with pytest.raises(HostError, match="has died; its console says: Kernel panic"):
        await host.read_file("/proc/cmdline")
    await dying.wait()
