"""HTTP: the requests of OTG, and ``/nicbench/v1``, what nicbench knows of a session beyond it, as JSON."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nicbench.core.errors import NicbenchError
from nicbench.otg import v1
from nicbench.otg.api import LARGEST_BODY_BYTES, MOST_AT_ONCE, error_message
from nicbench.otg.line import Calls
from nicbench.otg.model import OtgError, parse_message
from nicbench.web.security import Door

_PREFIX: Final = "/nicbench/v1"
_PROTO: Final = Path(v1.__file__).with_name("nicbench.proto")


_TOLD: Final = ("session", "flows", "transmissions", "hosts", "capabilities")


BODY_WITHIN_S: Final = 30.0
"""A whole body comes within this time."""
MOST_BODIES: Final = 32
"""The number of bodies received at once; a further one ends the one that has taken longest."""
ANSWER_WITHIN_S: Final = 120.0
"""A client takes a whole answer within this time."""
_JSON: Final = "application/json"
_PCAP: Final = "application/octet-stream"


def make_app(calls: Calls, door: Door) -> ASGIApp:
    """Makes the application that answers clients; ``door`` says whom it admits."""

    def got(name: str) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            return Response(await calls.ask(name), media_type=_JSON)

        return answer

    def posted(name: str) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            return Response(await calls.ask(name, await _message(request)), media_type=_JSON)

        return answer

    async def get_capture(request: Request) -> Response:
        return FileResponse(from_json(await calls.ask("get_capture", await _message(request))), media_type=_PCAP)

    async def report(request: Request) -> Response:
        return FileResponse(from_json(await calls.ask("report")), media_type="text/html")

    async def proto(request: Request) -> Response:
        return FileResponse(_PROTO, media_type="text/plain")

    routes = [
        Route("/config", posted("set_config"), methods=["POST"]),
        Route("/config", got("get_config"), methods=["GET"]),
        Route("/config", posted("update_config"), methods=["PATCH"]),
        Route("/config/append", posted("append_config"), methods=["PATCH"]),
        Route("/config/delete", posted("delete_config"), methods=["PATCH"]),
        Route("/control/state", posted("set_control_state"), methods=["POST"]),
        Route("/control/action", posted("set_control_action"), methods=["POST"]),
        Route("/monitor/metrics", posted("get_metrics"), methods=["POST"]),
        Route("/monitor/states", posted("get_states"), methods=["POST"]),
        Route("/monitor/capture", get_capture, methods=["POST"]),
        Route("/capabilities/version", got("get_version"), methods=["GET"]),
        *(Route(f"{_PREFIX}/{name}", got(name)) for name in _TOLD),
        Route(f"{_PREFIX}/report", report),
        Route(f"{_PREFIX}/nicbench.proto", proto),
    ]
    handlers: dict[Any, Any] = {NicbenchError: _explain, OSError: _explain, Exception: _explain}
    app = Starlette(routes=routes, exception_handlers={**handlers, 404: _unknown, 405: _unknown})
    return _Entrance(app, door)


class _Entrance:
    """Admits clients, and limits requests at once; requests of web pages are refused.

    Only what is being answered counts: a client that is slow to send its body, or to take its answer, keeps no other
    one out.
    """

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door
        self._at_once = asyncio.Semaphore(MOST_AT_ONCE)
        self._coming: deque[asyncio.Timeout] = deque()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request; only HTTP is spoken."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refused = self._door.refuse_stranger(headers)
        if refused is None and "origin" in headers:
            refused = PlainTextResponse("nicbench: pages of browsers may not ask for that\n", 403)
        if refused is not None:
            await refused(scope, receive, send)
            return
        try:
            body = await self._body(receive)
        except OtgError as error:
            message = error_message(error)
            refusal = JSONResponse(message, int(message["code"]), headers={"connection": "close"})
            await refusal(scope, receive, send)
            return
        if body is not None:
            await self._answer(scope, body, receive, send)

    async def _body(self, receive: Receive) -> bytes | None:
        """Returns a whole body; None where the client went away. OtgError where it is too large, or late."""
        parts: list[bytes] = []
        size = 0
        while len(self._coming) >= MOST_BODIES:
            self._coming.popleft().reschedule(0.0)
        try:
            async with asyncio.timeout(BODY_WITHIN_S) as patience:
                self._coming.append(patience)
                try:
                    while (told := await receive())["type"] == "http.request":
                        parts.append(told.get("body", b""))
                        size += len(parts[-1])
                        if size > LARGEST_BODY_BYTES:
                            raise OtgError([f"the body has more than {LARGEST_BODY_BYTES // 2**20} MiB"])
                        if not told.get("more_body", False):
                            return b"".join(parts)
                finally:
                    with contextlib.suppress(ValueError):  # a further one ended it
                        self._coming.remove(patience)
        except TimeoutError as error:
            why = f"it did not come within {BODY_WITHIN_S:g} s, or {MOST_BODIES} others came meanwhile"
            raise OtgError([f"the body is not whole: {why}"]) from error
        return None

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Has a request answered; whatever is wrong with it or its client is one line at most."""
        waits = iter([{"type": "http.request", "body": body, "more_body": False}])
        turn = contextlib.AsyncExitStack()
        patience = asyncio.timeout(None)

        async def told() -> Message:
            return next(waits, None) or await receive()

        async def say(message: Message) -> None:
            if message["type"] == "http.response.start":  # it is answered: others may be, while this client reads
                patience.reschedule(asyncio.get_running_loop().time() + ANSWER_WITHIN_S)
                await turn.aclose()
            await send(message)

        # Whoever took longer than that is gone; and of an unexpected error ``_explain`` has said all.
        with contextlib.suppress(TimeoutError, Exception):
            async with turn, patience:
                await turn.enter_async_context(self._at_once)
                await self._app(scope, told, say)


async def _message(request: Request) -> Mapping[str, Any]:
    """Returns the message in a body. OtgError for anything but a JSON object."""
    return await asyncio.to_thread(parse_message, await request.body())


async def _explain(request: Request, error: Exception) -> Response:
    message = error_message(error)
    return JSONResponse(message, int(message["code"]))


async def _unknown(request: Request, error: Exception) -> Response:
    errors = [f"{request.method} {request.url.path[:200]}: is not known"]
    return JSONResponse({"code": 404, "kind": "validation", "errors": errors}, 404)
