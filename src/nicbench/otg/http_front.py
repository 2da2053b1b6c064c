"""``/nicbench/v1``: what nicbench knows of a session beyond OTG, as JSON."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nicbench.core.errors import EngineError, NicbenchError, UsageError
from nicbench.otg import v1
from nicbench.otg.api import LARGEST_BODY_BYTES, MOST_AT_ONCE, Api, Beyond
from nicbench.otg.model import INVALID, OtgError, parse_message
from nicbench.web.security import Door

_PREFIX: Final = "/nicbench/v1"
_PROTO: Final = Path(v1.__file__).with_name("nicbench.proto")


def beyond_routes(beyond: Beyond) -> list[Route]:
    """Returns the paths and what answers them."""

    async def session(request: Request) -> Response:
        return JSONResponse(await beyond.session())

    async def flows(request: Request) -> Response:
        return JSONResponse(await beyond.flows())

    async def transmissions(request: Request) -> Response:
        return JSONResponse({"transmissions": await beyond.transmissions()})

    async def capabilities(request: Request) -> Response:
        return JSONResponse(await beyond.capabilities())

    async def report(request: Request) -> Response:
        return FileResponse(await beyond.report(), media_type="text/html")

    async def proto(request: Request) -> Response:
        return FileResponse(_PROTO, media_type="text/plain")

    answers = (session, flows, transmissions, capabilities, report)
    described = [Route(f"{_PREFIX}/{answer.__name__}", answer) for answer in answers]
    return [*described, Route(f"{_PREFIX}/nicbench.proto", proto)]


_OF_THE_CLIENT: Final = frozenset({"bad_request", "frame_size", "unsupported"})
"""Kinds of the engine's errors by which it refuses what a client asked for."""
BODY_WITHIN_S: Final = 30.0
"""A whole body comes within this time."""
MOST_BODIES: Final = 32
"""The number of bodies received at once; a further one ends the one that has taken longest."""
ANSWER_WITHIN_S: Final = 120.0
"""A client takes a whole answer within this time."""
_PCAP: Final = "application/octet-stream"


def make_app(api: Api, door: Door) -> ASGIApp:
    """Makes the application that answers clients; ``door`` says whom it admits."""

    def posted(handle: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            return _Json(await handle(await _message(request)))

        return answer

    async def get_config(request: Request) -> Response:
        return _Json(await api.get_config())

    async def get_version(request: Request) -> Response:
        return _Json(await api.get_version())

    async def get_capture(request: Request) -> Response:
        return FileResponse(await api.get_capture(await _message(request)), media_type=_PCAP)

    routes = [
        Route("/config", posted(api.set_config), methods=["POST"]),
        Route("/config", get_config, methods=["GET"]),
        Route("/config", posted(api.update_config), methods=["PATCH"]),
        Route("/config/append", posted(api.append_config), methods=["PATCH"]),
        Route("/config/delete", posted(api.delete_config), methods=["PATCH"]),
        Route("/control/state", posted(api.set_control_state), methods=["POST"]),
        Route("/control/action", posted(api.set_control_action), methods=["POST"]),
        Route("/monitor/metrics", posted(api.get_metrics), methods=["POST"]),
        Route("/monitor/states", posted(api.get_states), methods=["POST"]),
        Route("/monitor/capture", get_capture, methods=["POST"]),
        Route("/capabilities/version", get_version, methods=["GET"]),
        *beyond_routes(Beyond(api.sessions, api.turn)),
    ]
    handlers: dict[Any, Any] = {NicbenchError: _explain, OSError: _explain, Exception: _explain}
    app = Starlette(routes=routes, exception_handlers={**handlers, 404: _unknown, 405: _unknown})
    return _Entrance(app, door)


class _Json(JSONResponse):
    """Metrics of thousands of flows are megabytes, and clients ask for them all the time."""

    def render(self, content: Any) -> bytes:
        """Writes the content as JSON."""
        return to_json(content)


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
            await _Json(message, int(message["code"]), headers={"connection": "close"})(scope, receive, send)
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


def error_message(error: Exception) -> dict[str, Any]:
    """Returns an error as OTG's message; an unexpected one is also written to the server's log."""
    if isinstance(error, OtgError):
        return {"code": error.code, "kind": error.kind, "errors": error.errors}
    if isinstance(error, UsageError) or (isinstance(error, EngineError) and error.kind in _OF_THE_CLIENT):
        return {"code": INVALID, "kind": "validation", "errors": [str(error)]}
    if not isinstance(error, NicbenchError | OSError):
        sys.stderr.write(f"nicbench serve: {type(error).__name__}: {error}\n")
    words = str(error) if isinstance(error, NicbenchError) else f"{type(error).__name__}: {error}"
    return {"code": 500, "kind": "internal", "errors": [words]}


async def _explain(request: Request, error: Exception) -> Response:
    message = error_message(error)
    return _Json(message, int(message["code"]))


async def _unknown(request: Request, error: Exception) -> Response:
    errors = [f"{request.method} {request.url.path[:200]}: is not known"]
    return _Json({"code": 404, "kind": "validation", "errors": errors}, 404)
