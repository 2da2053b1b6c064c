"""Questions to a DPDK process over its telemetry socket (DPDK's programmer's guide, "Telemetry Library").

The process shares memory with the tester, so it is on this machine, and its socket is a file here.
"""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

from nicbench.errors import HostError

_ANSWER_BYTES = 64 * 1024
_ANSWER_S = 5.0


def socket_path(prefix: str) -> str:
    """Of the process with this file prefix."""
    return f"/run/dpdk/{prefix}/dpdk_telemetry.v2"


async def ask(path: str, command: str) -> dict[str, Any]:
    """One question, one answer; the greeting that comes first is read and thrown away."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.setblocking(False)
        try:
            async with asyncio.timeout(_ANSWER_S):
                await loop.sock_connect(connection, path)
                await loop.sock_recv(connection, _ANSWER_BYTES)
                await loop.sock_sendall(connection, command.encode())
                answer = json.loads(await loop.sock_recv(connection, _ANSWER_BYTES))
        except (OSError, TimeoutError, ValueError) as error:
            raise HostError(f"DPDK's telemetry does not answer {command}: {error}", place=path) from error
    return answer if isinstance(answer, dict) else {}


def port_statistics(answer: dict[str, Any]) -> dict[str, int]:
    """Of ``/ethdev/stats,N``: counters by name; those by queue are left out."""
    counters = answer.get("/ethdev/stats")
    if not isinstance(counters, dict):
        return {}
    return {name: value for name, value in counters.items() if isinstance(value, int)}
