"""The requests of OTG, as plain data in and out; both fronts call them.

Each message is checked against the model, away from the event loop; what this server does not do is refused by name.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from nicbench import __version__
from nicbench.otg import changes
from nicbench.otg.checks import check_locations
from nicbench.otg.model import check_message
from nicbench.otg.refusals import NOT_IMPLEMENTED, OtgError, Problems
from nicbench.otg.session import Session
from nicbench.otg.sessions import Sessions

Message = Mapping[str, Any]
Change = Callable[[Message, Message], dict[str, Any]]
LARGEST_BODY_BYTES: Final = 64 * 2**20
MOST_AT_ONCE: Final = 8
MOST_PER_S: Final = 100
API_VERSIONS: Final = ">=1.30.0,<2.0.0"
"""Clients read it as the constraint that their own version of the API must meet."""
_METRICS: Final = {"port": "port_metrics", "flow": "flow_metrics"}


class Api:
    """The requests. OtgError where one is refused; other errors of nicbench are the server's fault."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self._pace = Pace()

    async def set_config(self, config: Message) -> dict[str, Any]:
        """Replaces the configuration; an empty one ends the session. Returns warnings."""
        await self._check("Config", config, "config")
        if not any(config.values()):
            await self.sessions.end()
            return {}
        if not config.get("ports"):
            raise OtgError(["config.ports: is missing: name the ports of this server that are used"])
        check_locations(config, self.sessions.locations)
        session = await self.sessions.begin()
        warnings = await session.set_config(config)
        return {"warnings": list(warnings)} if warnings else {}

    async def get_config(self) -> dict[str, Any]:
        """Returns the configuration as it was set; empty without a session."""
        await self.turn()
        session = self.sessions.current
        return dict(session.config) if session is not None else {}

    async def update_config(self, message: Message) -> dict[str, Any]:
        """Changes rates and sizes of flows, while none is sending. Returns warnings."""
        return await self._change("ConfigUpdate", message, "config_update", changes.update)

    async def append_config(self, message: Message) -> dict[str, Any]:
        """Adds flows, while none is sending. Returns warnings."""
        return await self._change("ConfigAppend", message, "config_append", changes.append)

    async def delete_config(self, message: Message) -> dict[str, Any]:
        """Removes flows, while none is sending. Returns warnings."""
        return await self._change("ConfigDelete", message, "config_delete", changes.delete)

    async def _change(self, kind: str, message: Message, path: str, change: Change) -> dict[str, Any]:
        await self._check(kind, message, path)
        warnings = await self._session().change_config(lambda config: change(config, message), path)
        return {"warnings": list(warnings)} if warnings else {}

    async def set_control_state(self, message: Message) -> dict[str, Any]:
        """Starts, stops, pauses or resumes flows, or starts or stops captures."""
        await self._check("ControlState", message, "control_state")
        session, choice = self._session(), message["choice"]
        if choice == "traffic":
            transmit = (message.get("traffic") or {}).get("flow_transmit") or {}
            if "state" not in transmit:
                raise OtgError(["control_state.traffic.flow_transmit: is missing"])
            await session.control_flows(transmit["state"], transmit.get("flow_names") or ())
            return {}
        port = message.get("port") or {}
        if choice == "port" and port.get("choice") == "capture" and port.get("capture"):
            await session.control_captures(port["capture"]["state"], port["capture"].get("port_names") or ())
            return {}
        what = "port.link: links stay up" if choice == "port" else f"{choice}: protocols are not emulated"
        raise OtgError([f"control_state.{what}"], code=NOT_IMPLEMENTED)

    async def set_control_action(self, message: Message) -> dict[str, Any]:
        """Refuses every action: they are of protocols, or restart ports."""
        await self._check("ControlAction", message, "control_action")
        raise OtgError([f"control_action.{message['choice']}: is not there"], code=NOT_IMPLEMENTED)

    async def get_metrics(self, message: Message) -> dict[str, Any]:
        """Returns metrics of ports or flows, without waiting for a change in progress."""
        await self._check("MetricsRequest", message, "metrics_request")
        choice = message.get("choice", "port")
        if choice not in _METRICS:
            raise OtgError([f"metrics_request.{choice}: is not measured; port and flow are"], code=NOT_IMPLEMENTED)
        session, wanted = self._session(), message.get(choice) or {}
        if choice == "port":
            found = await session.port_metrics(wanted.get("port_names") or (), wanted.get("column_names") or ())
        else:
            if (wanted.get("tagged_metrics") or {}).get("filters"):
                path = "metrics_request.flow.tagged_metrics.filters"
                raise OtgError([f"{path}: metrics by tag are not kept: leave it out"], code=NOT_IMPLEMENTED)
            found = await session.flow_metrics(wanted.get("flow_names") or (), wanted.get("metric_names") or ())
        return {"choice": _METRICS[choice], _METRICS[choice]: found}

    async def get_states(self, message: Message) -> dict[str, Any]:
        """Refuses every state: they are of protocols."""
        await self._check("StatesRequest", message, "states_request")
        choice = message.get("choice", "ipv4_neighbors")
        raise OtgError([f"states_request.{choice}: protocols are not emulated"], code=NOT_IMPLEMENTED)

    async def get_capture(self, message: Message) -> Path:
        """Returns the file of a port's capture."""
        await self._check("CaptureRequest", message, "capture_request")
        if (message.get("packets") or {}).get("choice", "all") != "all":
            raise OtgError(["capture_request.packets.slice: captures are given whole"], code=NOT_IMPLEMENTED)
        return self._session().capture(str(message["port_name"]))

    async def refuse(self, what: str) -> dict[str, Any]:
        """Refuses a request that this server does not know."""
        await self.turn()
        raise OtgError([f"{what}: is not there; set the whole configuration"], code=NOT_IMPLEMENTED)

    async def get_version(self) -> dict[str, str]:
        """Returns the versions of the API that are served, and those of snappi and nicbench."""
        await self.turn()
        return {"api_spec_version": API_VERSIONS, "sdk_version": version("snappi"), "app_version": __version__}

    async def turn(self) -> None:
        """Waits until a request may pass, and notes that the session is in use. OtgError where there are too many."""
        await self._pace.turn()
        self.sessions.touch()

    def _session(self) -> Session:
        session = self.sessions.current
        if session is None and self.sessions.failure is not None:
            raise OtgError([f"the session has ended: {self.sessions.failure.message}; set the configuration"], code=500)
        if session is None:
            raise OtgError(["there is no configuration: set one first"])
        return session

    async def _check(self, kind: str, message: Any, path: str) -> None:
        await self.turn()
        problems = Problems()
        await asyncio.to_thread(check_message, kind, message, path, problems)
        problems.raise_any()


class Pace:
    """Limits the rate of requests: excess requests wait, and are refused if they would wait for more than a second."""

    def __init__(self) -> None:
        self._next = 0.0

    async def turn(self) -> None:
        now = time.monotonic()
        self._next = max(self._next, now - 1.0) + 1.0 / MOST_PER_S
        wait_s = self._next - now
        if wait_s > 1.0:
            self._next -= 1.0 / MOST_PER_S
            raise OtgError([f"more than {MOST_PER_S} requests a second: ask less often"], code=500)
        if wait_s > 0:
            await asyncio.sleep(wait_s)
