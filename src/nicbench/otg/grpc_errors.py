"""Errors over gRPC: OTG's message as JSON, with the status that fits its code."""

from __future__ import annotations

import json
from typing import Any, Final

import grpc

from nicbench.otg.http_front import error_message

_STATUS: Final = {400: grpc.StatusCode.INVALID_ARGUMENT, 501: grpc.StatusCode.UNIMPLEMENTED}


async def abort(context: Any, error: Exception) -> None:
    """Ends a call with OTG's error: its status, and its message as JSON."""
    message = error_message(error)
    await context.abort(_STATUS.get(message["code"], grpc.StatusCode.INTERNAL), json.dumps(message))
