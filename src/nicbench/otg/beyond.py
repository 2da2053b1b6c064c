"""``/nicbench/v1``: what nicbench knows of a session beyond OTG, with null where something is not known."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from nicbench.core.trial import Trial
from nicbench.otg.checks import MOST_FLOWS
from nicbench.otg.headers import ENCODERS
from nicbench.otg.refusals import OtgError
from nicbench.otg.sessions import Sessions
from nicbench.report import build
from nicbench.store.folder import RunFolder

_PREFIX: Final = "/nicbench/v1"
Answer = Callable[[Request], Awaitable[Response]]


class Beyond:
    """The requests, all of which only read."""

    def __init__(self, sessions: Sessions, turn: Callable[[], Awaitable[None]]) -> None:
        """``turn`` waits until a request may pass."""
        self._sessions = sessions
        self._turn = turn

    def routes(self) -> list[Route]:
        """Returns the paths and what answers them."""
        answers = {
            "session": self._session,
            "flows": self._flows,
            "transmissions": self._transmissions,
            "capabilities": self._capabilities,
            "report": self._report,
        }
        return [Route(f"{_PREFIX}/{name}", self._paced(answer)) for name, answer in answers.items()]

    def _paced(self, answer: Answer) -> Answer:
        async def paced(request: Request) -> Response:
            await self._turn()
            return await answer(request)

        return paced

    async def _session(self, request: Request) -> Response:
        session, folder = self._sessions.current, self._sessions.folder
        state = "empty" if session is None else "transmitting" if session.is_transmitting else "configured"
        return JSONResponse({"state": state, "run_folder": None if folder is None else str(folder.path)})

    async def _flows(self, request: Request) -> Response:
        """The counts of each flow with its whole latency distribution (HdrHistogram V2 in base64, nanoseconds)."""
        session = self._sessions.current
        if session is None:
            raise OtgError(["there is no configuration: set one first"])
        return JSONResponse(await session.tally())

    async def _transmissions(self, request: Request) -> Response:
        folder = self._folder()
        trials = await asyncio.to_thread(folder.journal.trials)
        return JSONResponse({"transmissions": [_describe(trial) for trial in trials.values()]})

    async def _capabilities(self, request: Request) -> Response:
        return JSONResponse({"headers": sorted(ENCODERS), "flows": MOST_FLOWS})

    async def _report(self, request: Request) -> Response:
        """The report of the session as it is now, or of the last one."""
        return FileResponse(await asyncio.to_thread(build, self._folder().path), media_type="text/html")

    def _folder(self) -> RunFolder:
        if self._sessions.folder is None:
            raise OtgError(["there was no session yet: set a configuration first"])
        return self._sessions.folder


def _describe(trial: Trial) -> dict[str, Any]:
    """One transmission: counts, verdict, where frames were lost, and the state of the machines."""
    reading = trial.reading
    return {
        "id": trial.id,
        "at_s": trial.at_s,
        "valid": trial.verdict.valid,
        "findings": [finding.model_dump(mode="json") for finding in trial.verdict.findings],
        "counts": reading.counts.model_dump(mode="json"),
        "ledger": [place.model_dump(mode="json") for place in reading.ledger],
        "ledger_beside": [place.model_dump(mode="json") for place in reading.ledger_beside],
        "ledger_faults": list(reading.ledger_faults),
        "unexplained": reading.unexplained,
        "latency": reading.latency.model_dump(mode="json") if reading.latency is not None else None,
        "health": reading.health.model_dump(mode="json"),
        "machine": reading.machine.model_dump(mode="json") if reading.machine is not None else None,
    }
