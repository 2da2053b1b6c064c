"""What nicbench knows of a session beyond OTG, over gRPC: the service of ``v1/nicbench.proto``.

Messages have the names of the JSON under ``/nicbench/v1``. What may be long comes in pieces: clients take no message
above 4 MiB unless they are told to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any, Final, TypeVar

from google.protobuf import json_format

from nicbench.otg.beyond import Beyond
from nicbench.otg.grpc_errors import abort
from nicbench.otg.v1 import nicbench_pb2 as messages
from nicbench.otg.v1 import nicbench_pb2_grpc as service

_PIECE_BYTES: Final = 2**20
Answer = TypeVar("Answer")


class BeyondService(service.NicbenchServicer):  # type: ignore[misc]
    """The remote procedures."""

    def __init__(self, beyond: Beyond) -> None:
        self._beyond = beyond

    async def GetSession(self, request: Any, context: Any) -> Any:
        return _message(await _answer(self._beyond.session(), context), messages.Session())

    async def GetFlows(self, request: Any, context: Any) -> AsyncIterator[Any]:
        told = await _answer(self._beyond.flows(), context)
        for flow in told["flows"]:
            yield _message(flow, messages.Flow())

    async def GetPorts(self, request: Any, context: Any) -> Any:
        told = await _answer(self._beyond.ports(), context)
        return _message(told, messages.Ports())

    async def GetTransmissions(self, request: Any, context: Any) -> AsyncIterator[Any]:
        for transmission in await _answer(self._beyond.transmissions(), context):
            yield _message(transmission, messages.Transmission())

    async def GetCapabilities(self, request: Any, context: Any) -> Any:
        return _message(await _answer(self._beyond.capabilities(), context), messages.Capabilities())

    async def GetReport(self, request: Any, context: Any) -> AsyncIterator[Any]:
        path = await _answer(self._beyond.report(), context)
        html = await asyncio.to_thread(path.read_bytes)
        for at in range(0, len(html), _PIECE_BYTES):
            yield messages.ReportPart(html=html[at : at + _PIECE_BYTES])


def _message(told: dict[str, Any], message: Any) -> Any:
    """Fills a message; what is None is not set, and what the message does not have is left out."""
    return json_format.ParseDict(told, message, ignore_unknown_fields=True)


async def _answer(asked: Awaitable[Answer], context: Any) -> Answer:
    try:
        return await asked
    except Exception as error:
        await abort(context, error)
        raise
