"""What nicbench knows of a session beyond OTG, as plain data with None where something is not known. It only reads.

Two fronts offer it: ``/nicbench/v1`` over HTTP, and the service of ``v1/nicbench.proto`` over gRPC.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from nicbench.core.trial import Trial
from nicbench.otg.api import LARGEST_BODY_BYTES, MOST_PER_S
from nicbench.otg.captures import LARGEST_CAPTURE_BYTES
from nicbench.otg.checks import MOST_FLOWS
from nicbench.otg.headers import ENCODERS
from nicbench.otg.refusals import MOST_VALUES, MOST_VALUES_OF_FLOW, OtgError
from nicbench.otg.session import Session
from nicbench.otg.sessions import Sessions
from nicbench.report import build
from nicbench.store.folder import RunFolder


class Beyond:
    """The requests. OtgError where there is nothing to tell of."""

    def __init__(self, sessions: Sessions, turn: Callable[[], Awaitable[None]]) -> None:
        """``turn`` waits until a request may pass."""
        self._sessions = sessions
        self._turn = turn

    async def session(self) -> dict[str, Any]:
        """Returns the session's state and its run folder."""
        await self._turn()
        session, folder = self._sessions.current, self._sessions.folder
        state = "empty" if session is None else "transmitting" if session.is_transmitting else "configured"
        return {"state": state, "run_folder": None if folder is None else str(folder.path)}

    async def flows(self) -> dict[str, Any]:
        """Returns the counts of flows and ports, with latency distributions (HdrHistogram V2 in base64, ns)."""
        await self._turn()
        return await self._session().tally()

    async def ports(self) -> dict[str, Any]:
        """Returns the counts of ports alone."""
        await self._turn()
        return await self._session().tally(flows=())

    async def transmissions(self) -> list[dict[str, Any]]:
        """Returns verdict, counts, ledger and health of each transmission that has ended."""
        await self._turn()
        trials = await asyncio.to_thread(self._folder().journal.trials)
        return [_describe(trial) for trial in trials.values()]

    async def capabilities(self) -> dict[str, Any]:
        """Returns headers and limits."""
        await self._turn()
        return {
            "headers": sorted(ENCODERS),
            "flows": MOST_FLOWS,
            "values_of_flow": MOST_VALUES_OF_FLOW,
            "values": MOST_VALUES,
            "body_bytes": LARGEST_BODY_BYTES,
            "capture_bytes": LARGEST_CAPTURE_BYTES,
            "requests_per_s": MOST_PER_S,
        }

    async def report(self) -> Path:
        """Makes the report of the session as it is now, or of the last one, and returns its file (HTML)."""
        await self._turn()
        return await asyncio.to_thread(build, self._folder().path)

    def _session(self) -> Session:
        session = self._sessions.current
        if session is None:
            raise OtgError(["there is no configuration: set one first"])
        return session

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
        "uncounted": None if reading.uncounted is None else reading.uncounted.model_dump(mode="json"),
        "ledger": [place.model_dump(mode="json") for place in reading.ledger],
        "ledger_beside": [place.model_dump(mode="json") for place in reading.ledger_beside],
        "ledger_faults": list(reading.ledger_faults),
        "unexplained": reading.unexplained,
        "latency": reading.latency.model_dump(mode="json") if reading.latency is not None else None,
        "health": reading.health.model_dump(mode="json"),
        "machine": reading.machine.model_dump(mode="json") if reading.machine is not None else None,
    }
