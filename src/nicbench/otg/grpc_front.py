"""Errors over gRPC: OTG's message as JSON, with the status that fits its code."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, Final, TypeVar

import grpc
from google.protobuf import json_format
from pydantic_core import from_json
from snappi import otg_pb2 as messages
from snappi import otg_pb2_grpc as service

from nicbench.core.errors import NotReadyError
from nicbench.otg.api import MOST_AT_ONCE, error_message
from nicbench.otg.line import Calls
from nicbench.otg.model import MOST_PARTS, OtgError
from nicbench.otg.v1 import nicbench_pb2 as beyond_messages
from nicbench.otg.v1 import nicbench_pb2_grpc as beyond_service

_STATUS: Final = {400: grpc.StatusCode.INVALID_ARGUMENT, 501: grpc.StatusCode.UNIMPLEMENTED}


async def abort(context: Any, error: Exception) -> None:
    """Ends a call with OTG's error: its status, and its message as JSON."""
    message = error_message(error)
    await context.abort(_STATUS.get(message["code"], grpc.StatusCode.INTERNAL), json.dumps(message))


_PIECE_BYTES: Final = 2**20
Answer = TypeVar("Answer")


class BeyondService(beyond_service.NicbenchServicer):  # type: ignore[misc]
    """The remote procedures."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def _told(self, name: str, context: Any) -> Any:
        return from_json(await _answer(self._calls.ask(name), context))

    async def GetSession(self, request: Any, context: Any) -> Any:
        return _message(await self._told("session", context), beyond_messages.Session())

    async def GetFlows(self, request: Any, context: Any) -> AsyncIterator[Any]:
        told = await self._told("flows", context)
        for flow in told["flows"]:
            yield _message(flow, beyond_messages.Flow())

    async def GetPorts(self, request: Any, context: Any) -> Any:
        return _message(await self._told("ports", context), beyond_messages.Ports())

    async def GetTransmissions(self, request: Any, context: Any) -> AsyncIterator[Any]:
        told = await self._told("transmissions", context)
        for transmission in told["transmissions"]:
            yield _message(transmission, beyond_messages.Transmission())

    async def GetHosts(self, request: Any, context: Any) -> Any:
        return _message(await self._told("hosts", context), beyond_messages.Hosts())

    async def GetCapabilities(self, request: Any, context: Any) -> Any:
        return _message(await self._told("capabilities", context), beyond_messages.Capabilities())

    async def GetReport(self, request: Any, context: Any) -> AsyncIterator[Any]:
        path = Path(await self._told("report", context))
        html = await _answer(asyncio.to_thread(path.read_bytes), context)
        for at in range(0, len(html), _PIECE_BYTES):
            yield beyond_messages.ReportPart(html=html[at : at + _PIECE_BYTES])


def _message(told: dict[str, Any], message: Any) -> Any:
    """Fills a message; None leaves a field unset, and what the message does not have is left out."""
    return json_format.ParseDict(told, message, ignore_unknown_fields=True)


async def _answer(asked: Awaitable[Answer], context: Any) -> Answer:
    try:
        return await asked
    except Exception as error:
        await abort(context, error)
        raise


ADDRESS: Final = "127.0.0.1"
LARGEST_CALL_BYTES: Final = 16 * 2**20
"""Limit of a message, which is parsed before it is seen: an empty part has two bytes in it, and far more in memory."""
_CONNECTION_S: Final = 600
"""A connection is renewed after this time, and again as long later ended with the calls that never got a message."""
_OPTIONS: Final = [
    ("grpc.max_receive_message_length", LARGEST_CALL_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_connection_age_ms", 1000 * _CONNECTION_S),
    ("grpc.max_connection_age_grace_ms", 1000 * _CONNECTION_S),
    ("grpc.so_reuseport", 0),
]


async def serve_grpc(calls: Calls, ports: tuple[int, ...]) -> tuple[grpc.aio.Server, int]:
    """Starts the server at the first of these ports that is free, and returns it with the port. NotReadyError."""
    # No limit of calls: one without a message would count, and keep others out.
    server = grpc.aio.server(options=_OPTIONS)
    service.add_OpenapiServicer_to_server(_Service(calls), server)
    beyond_service.add_NicbenchServicer_to_server(BeyondService(calls), server)
    for port in ports:
        try:
            socket.create_server((ADDRESS, port)).close()  # grpc writes lines of its own where it cannot listen
            bound: int = server.add_insecure_port(f"{ADDRESS}:{port}")
        except (OSError, RuntimeError):
            continue
        await server.start()
        return server, bound
    raise NotReadyError(
        "cannot listen there", place=f"{ADDRESS}:{ports[0]}", next_step="name another port by --grpc-port, or 0 for any"
    )


def _refuse_parts(message: Any) -> None:
    """Raises OtgError for a message of more parts than any configuration has."""
    left, waits = MOST_PARTS, [message]
    while waits:
        for field, value in waits.pop().ListFields():
            if field.message_type is not None:
                parts = value if field.is_repeated else [value]
                left -= len(parts)
                if left < 0:
                    raise OtgError([f"the message has more than {MOST_PARTS} lists and objects"])
                waits.extend(parts)


def _plain(message: Any) -> dict[str, Any]:
    """Returns a message as plain data with the names of the model."""
    _refuse_parts(message)
    plain: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return plain


class _Service(service.OpenapiServicer):  # type: ignore[misc]
    """The remote procedures; their names are those of the model."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._at_once = asyncio.Semaphore(MOST_AT_ONCE)

    async def SetConfig(self, request: Any, context: Any) -> Any:
        return messages.SetConfigResponse(
            warning=await self._do(context, "set_config", request.config, messages.Warning)
        )

    async def GetConfig(self, request: Any, context: Any) -> Any:
        return messages.GetConfigResponse(config=await self._do(context, "get_config", None, messages.Config))

    async def UpdateConfig(self, request: Any, context: Any) -> Any:
        update = request.config_update
        return messages.UpdateConfigResponse(warning=await self._do(context, "update_config", update, messages.Warning))

    async def AppendConfig(self, request: Any, context: Any) -> Any:
        append = request.config_append
        return messages.AppendConfigResponse(warning=await self._do(context, "append_config", append, messages.Warning))

    async def DeleteConfig(self, request: Any, context: Any) -> Any:
        delete = request.config_delete
        return messages.DeleteConfigResponse(warning=await self._do(context, "delete_config", delete, messages.Warning))

    async def SetControlState(self, request: Any, context: Any) -> Any:
        return messages.SetControlStateResponse(
            warning=await self._do(context, "set_control_state", request.control_state, messages.Warning)
        )

    async def SetControlAction(self, request: Any, context: Any) -> Any:
        return messages.SetControlActionResponse(
            control_action_response=await self._do(
                context, "set_control_action", request.control_action, messages.ControlActionResponse
            )
        )

    async def GetMetrics(self, request: Any, context: Any) -> Any:
        """The message is made of the plain data at once: by way of JSON's rules it takes thirty times as long."""
        try:
            told = from_json(await self._calls.ask("get_metrics", _plain(request.metrics_request)))
            return messages.GetMetricsResponse(metrics_response=messages.MetricsResponse(**told))
        except Exception as error:
            await abort(context, error)
            raise

    async def GetStates(self, request: Any, context: Any) -> Any:
        return messages.GetStatesResponse(
            states_response=await self._do(context, "get_states", request.states_request, messages.StatesResponse)
        )

    async def GetCapture(self, request: Any, context: Any) -> Any:
        try:
            path = Path(from_json(await self._calls.ask("get_capture", _plain(request.capture_request))))
            content = await asyncio.to_thread(path.read_bytes)
        except Exception as error:
            await abort(context, error)
            raise
        return messages.GetCaptureResponse(response_bytes=content)

    async def GetVersion(self, request: Any, context: Any) -> Any:
        return messages.GetVersionResponse(version=await self._do(context, "get_version", None, messages.Version))

    async def streamSetConfig(self, requests: Any, context: Any) -> Any:
        await self._refuse(context, "streamSetConfig")

    async def streamSetControlState(self, requests: Any, context: Any) -> Any:
        await self._refuse(context, "streamSetControlState")

    async def streamSetControlAction(self, requests: Any, context: Any) -> Any:
        await self._refuse(context, "streamSetControlAction")

    async def streamGetConfig(self, request: Any, context: Any) -> Any:
        await self._refuse(context, "streamGetConfig")

    async def streamGetMetrics(self, request: Any, context: Any) -> Any:
        await self._refuse(context, "streamGetMetrics")

    async def streamGetStates(self, request: Any, context: Any) -> Any:
        await self._refuse(context, "streamGetStates")

    async def streamGetCapture(self, request: Any, context: Any) -> Any:
        await self._refuse(context, "streamGetCapture")

    async def _do(self, context: Any, name: str, request: Any, answer: Any) -> Any:
        """Handles a request as plain data, away from the event loop where that takes long."""
        try:
            async with self._at_once:
                plain = {} if request is None else await asyncio.to_thread(_plain, request)
            # A client whose deadline passes, or who is gone, cancels this call: what it asked for is done all the same.
            told = from_json(await self._calls.ask(name, plain))
            return await asyncio.to_thread(json_format.ParseDict, told, answer(), ignore_unknown_fields=True)
        except Exception as error:
            await abort(context, error)
            raise

    async def _refuse(self, context: Any, name: str) -> None:
        try:
            await self._calls.ask("refuse", {"what": name})
        except Exception as error:
            await abort(context, error)
            raise
