"""``/nicbench/v1``: what nicbench knows of a session beyond OTG, as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from nicbench.otg import v1
from nicbench.otg.beyond import Beyond

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
