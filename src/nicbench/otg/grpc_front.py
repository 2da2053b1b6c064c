"""OTG over gRPC, with messages and service of snappi's own package, and beside it nicbench's own. On loopback alone."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import grpc
from google.protobuf import json_format
from snappi import otg_pb2 as messages
from snappi import otg_pb2_grpc as service

from nicbench.core.errors import NotReadyError
from nicbench.otg.api import MOST_AT_ONCE, Api
from nicbench.otg.beyond import Beyond
from nicbench.otg.grpc_beyond import BeyondService
from nicbench.otg.grpc_errors import abort
from nicbench.otg.model import MOST_PARTS
from nicbench.otg.refusals import OtgError
from nicbench.otg.v1 import nicbench_pb2_grpc as beyond_service

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
Handle = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]


async def serve_grpc(api: Api, ports: tuple[int, ...]) -> tuple[grpc.aio.Server, int]:
    """Starts the server at the first of these ports that is free, and returns it with the port. NotReadyError."""
    # No limit of calls: one without a message would count, and keep others out.
    server = grpc.aio.server(options=_OPTIONS)
    service.add_OpenapiServicer_to_server(_Service(api), server)
    beyond_service.add_NicbenchServicer_to_server(BeyondService(Beyond(api.sessions, api.turn)), server)
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

    def __init__(self, api: Api) -> None:
        self._api = api
        self._at_once = asyncio.Semaphore(MOST_AT_ONCE)

    async def SetConfig(self, request: Any, context: Any) -> Any:
        return messages.SetConfigResponse(
            warning=await self._do(context, self._api.set_config, request.config, messages.Warning)
        )

    async def GetConfig(self, request: Any, context: Any) -> Any:
        async def get(_: Mapping[str, Any]) -> dict[str, Any]:
            return await self._api.get_config()

        return messages.GetConfigResponse(config=await self._do(context, get, None, messages.Config))

    async def UpdateConfig(self, request: Any, context: Any) -> Any:
        update = request.config_update
        return messages.UpdateConfigResponse(
            warning=await self._do(context, self._api.update_config, update, messages.Warning)
        )

    async def AppendConfig(self, request: Any, context: Any) -> Any:
        append = request.config_append
        return messages.AppendConfigResponse(
            warning=await self._do(context, self._api.append_config, append, messages.Warning)
        )

    async def DeleteConfig(self, request: Any, context: Any) -> Any:
        delete = request.config_delete
        return messages.DeleteConfigResponse(
            warning=await self._do(context, self._api.delete_config, delete, messages.Warning)
        )

    async def SetControlState(self, request: Any, context: Any) -> Any:
        return messages.SetControlStateResponse(
            warning=await self._do(context, self._api.set_control_state, request.control_state, messages.Warning)
        )

    async def SetControlAction(self, request: Any, context: Any) -> Any:
        return messages.SetControlActionResponse(
            control_action_response=await self._do(
                context, self._api.set_control_action, request.control_action, messages.ControlActionResponse
            )
        )

    async def GetMetrics(self, request: Any, context: Any) -> Any:
        """The message is made of the plain data at once: by way of JSON's rules it takes thirty times as long."""
        try:
            told = await self._api.get_metrics(_plain(request.metrics_request))
            return messages.GetMetricsResponse(metrics_response=messages.MetricsResponse(**told))
        except Exception as error:
            await abort(context, error)
            raise

    async def GetStates(self, request: Any, context: Any) -> Any:
        return messages.GetStatesResponse(
            states_response=await self._do(
                context, self._api.get_states, request.states_request, messages.StatesResponse
            )
        )

    async def GetCapture(self, request: Any, context: Any) -> Any:
        try:
            path = await self._api.get_capture(_plain(request.capture_request))
            content = await asyncio.to_thread(path.read_bytes)
        except Exception as error:
            await abort(context, error)
            raise
        return messages.GetCaptureResponse(response_bytes=content)

    async def GetVersion(self, request: Any, context: Any) -> Any:
        async def get(_: Mapping[str, Any]) -> dict[str, Any]:
            return dict(await self._api.get_version())

        return messages.GetVersionResponse(version=await self._do(context, get, None, messages.Version))

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

    async def _do(self, context: Any, handle: Handle, request: Any, answer: Any) -> Any:
        """Handles a request as plain data, away from the event loop where that takes long."""
        try:
            async with self._at_once:
                plain = {} if request is None else await asyncio.to_thread(_plain, request)
            # A client whose deadline passes, or who is gone, cancels this call: what it asked for is done all the same.
            handling = asyncio.ensure_future(handle(plain))
            handling.add_done_callback(lambda done: done.cancelled() or done.exception())
            told = await asyncio.shield(handling)
            return await asyncio.to_thread(json_format.ParseDict, told, answer(), ignore_unknown_fields=True)
        except Exception as error:
            await abort(context, error)
            raise

    async def _refuse(self, context: Any, name: str) -> None:
        try:
            await self._api.refuse(name)
        except Exception as error:
            await abort(context, error)
            raise
