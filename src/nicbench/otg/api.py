"""The requests that clients make: those of OTG, and those beyond it.

Every message is checked against the model first. A change of flows makes a new whole configuration, which is checked as
one that was set.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from nicbench import __version__
from nicbench.core.errors import EngineError, NicbenchError, UsageError
from nicbench.core.trial import Trial
from nicbench.otg.configuration import LARGEST_CAPTURE_BYTES, MOST_FLOWS, check_locations
from nicbench.otg.headers import ENCODERS
from nicbench.otg.model import (
    INVALID,
    MOST_VALUES,
    MOST_VALUES_OF_FLOW,
    NOT_IMPLEMENTED,
    OtgError,
    Problems,
    check_message,
)
from nicbench.otg.session import Session
from nicbench.otg.sessions import Sessions
from nicbench.report import build
from nicbench.store.folder import RunFolder

Config = Mapping[str, Any]


def update(config: Config, message: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the configuration with rates or sizes of flows replaced (OTG ``config_update``). OtgError."""
    if message.get("choice", "flows") != "flows":
        raise OtgError(["config_update.protocols: IS-IS and OSPF are not emulated"], code=NOT_IMPLEMENTED)
    given = message.get("flows") or {}
    new = {str(flow.get("name")): flow for flow in given.get("flows") or ()}
    _require_known(config, list(new), "config_update.flows.flows[{index}].name")
    keys = given.get("property_names") or ()
    flows = [
        {**flow, **{key: new[flow["name"]][key] for key in keys if key in new[flow["name"]]}}
        if flow["name"] in new
        else flow
        for flow in _flows(config)
    ]
    return {**config, "flows": flows}


def append(config: Config, message: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the configuration with more flows, behind those that it has (OTG ``config_append``)."""
    added = [flow for part in message.get("config_append_list") or () for flow in part.get("flows") or ()]
    return {**config, "flows": [*_flows(config), *added]}


def delete(config: Config, message: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the configuration without the flows of these names (OTG ``config_delete``). OtgError for unknown ones."""
    names = [str(name) for part in message.get("config_delete_list") or () for name in part.get("flows") or ()]
    _require_known(config, names, "config_delete.config_delete_list: flow {index}")
    gone = set(names)
    return {**config, "flows": [flow for flow in _flows(config) if flow["name"] not in gone]}


def _flows(config: Config) -> Sequence[Mapping[str, Any]]:
    return config.get("flows") or ()


def _require_known(config: Config, names: Sequence[str], path: str) -> None:
    known = {str(flow.get("name")) for flow in _flows(config)}
    problems = Problems()
    for index, name in enumerate(names):
        if name not in known:
            problems.invalid(path.format(index=index), f"no flow of the configuration is called {name[:80]!r}")
    problems.raise_any()


Message = Mapping[str, Any]
Change = Callable[[Message, Message], dict[str, Any]]
LARGEST_BODY_BYTES: Final = 64 * 2**20
MOST_AT_ONCE: Final = 8
MOST_PER_S: Final = 100
API_VERSIONS: Final = ">=1.30.0,<2.0.0"
"""Clients read it as the constraint that their own version of the API must meet."""
_NEIGHBOURS: Final = {"ipv4_neighbors": 4, "ipv6_neighbors": 6}
_PINGS: Final = {"ipv4": 4, "ipv6": 6}
_SESSIONS: Final = {"bgpv4": 4, "bgpv6": 6}
_METRICS: Final = {key: f"{key}_metrics" for key in ("port", "lag", "flow", *_SESSIONS)}


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
            return {"warnings": []}
        if not config.get("ports"):
            raise OtgError(["config.ports: is missing: name the ports of this server that are used"])
        check_locations(config, self.sessions.ports, self.sessions.locations)
        session = await self.sessions.begin()
        warnings = await session.set_config(config)
        return {"warnings": list(warnings)}

    async def get_config(self) -> dict[str, Any]:
        """Returns the configuration that was set; empty without a session."""
        await self.turn()
        session = self.sessions.current
        return dict(session.config) if session is not None else {}

    async def update_config(self, message: Message) -> dict[str, Any]:
        """Changes rates and sizes of flows, while none is sending. Returns warnings."""
        return await self._change("ConfigUpdate", message, "config_update", update)

    async def append_config(self, message: Message) -> dict[str, Any]:
        """Adds flows, while none is sending. Returns warnings."""
        return await self._change("ConfigAppend", message, "config_append", append)

    async def delete_config(self, message: Message) -> dict[str, Any]:
        """Removes flows, while none is sending. Returns warnings."""
        return await self._change("ConfigDelete", message, "config_delete", delete)

    async def _change(self, kind: str, message: Message, path: str, change: Change) -> dict[str, Any]:
        await self._check(kind, message, path)
        warnings = await self._session().change_config(lambda config: change(config, message), path)
        return {"warnings": list(warnings)}

    async def set_control_state(self, message: Message) -> dict[str, Any]:
        """Controls flows, captures, links or the emulated hosts."""
        await self._check("ControlState", message, "control_state")
        await self._control(self._session(), message)
        return {"warnings": []}

    async def _control(self, session: Session, message: Message) -> None:
        choice = message["choice"]
        if choice == "traffic":
            transmit = (message.get("traffic") or {}).get("flow_transmit") or {}
            if "state" not in transmit:
                raise OtgError(["control_state.traffic.flow_transmit: is missing"])
            await session.control_flows(transmit["state"], transmit.get("flow_names") or ())
            return
        port = message.get("port") or {}
        if choice == "port" and port.get("choice") == "capture" and port.get("capture"):
            await session.control_captures(port["capture"]["state"], port["capture"].get("port_names") or ())
            return
        if choice == "port" and port.get("choice") == "link" and port.get("link"):
            await session.control_links(port["link"]["state"], port["link"].get("port_names") or ())
            return
        protocol = message.get("protocol") or {}
        if choice == "protocol" and protocol.get("choice") == "all" and protocol.get("all"):
            await session.control_hosts(protocol["all"]["state"])
            return
        if choice == "protocol" and protocol.get("choice") == "route" and protocol.get("route"):
            await session.control_routes(protocol["route"]["state"], protocol["route"].get("names") or ())
            return
        if choice == "protocol" and protocol.get("choice") == "bgp" and (protocol.get("bgp") or {}).get("peers"):
            peers = protocol["bgp"]["peers"]
            await session.control_peers(peers["state"], peers.get("peer_names") or ())
            return
        inner = (port if choice == "port" else protocol).get("choice")
        raise OtgError([f"control_state.{choice}.{inner}: is not emulated, or has no state"], code=NOT_IMPLEMENTED)

    async def set_control_action(self, message: Message) -> dict[str, Any]:
        """Has emulated hosts ping, and returns what became of it; no other action is served."""
        await self._check("ControlAction", message, "control_action")
        protocol = message.get("protocol") or {}
        kind = protocol.get("choice")
        ping = (protocol.get(kind) or {}).get("ping")
        if kind not in _PINGS or ping is None:
            path = ".".join(str(word) for word in ("control_action", message["choice"], kind) if word)
            raise OtgError([f"{path}: is not emulated; pings of IPv4 and IPv6 are"], code=NOT_IMPLEMENTED)
        path = f"control_action.protocol.{kind}.ping.requests"
        responses = await self._session().ping(_PINGS[kind], ping.get("requests") or (), path)
        told = {"choice": "ping", "ping": {"responses": responses}}
        return {
            "warnings": [],
            "response": {"choice": "protocol", "protocol": {"choice": kind, kind: told}},
        }

    async def get_metrics(self, message: Message) -> dict[str, Any]:
        """Returns metrics of ports or flows, without waiting for a change in progress."""
        await self._check("MetricsRequest", message, "metrics_request")
        choice = message.get("choice", "port")
        if choice not in _METRICS:
            told = ", ".join(_METRICS)
            raise OtgError([f"metrics_request.{choice}: is not measured; {told} are"], code=NOT_IMPLEMENTED)
        session, wanted = self._session(), message.get(choice) or {}
        if choice == "port":
            found = await session.port_metrics(wanted.get("port_names") or (), wanted.get("column_names") or ())
        elif choice == "lag":
            found = await session.lag_metrics(wanted.get("lag_names") or (), wanted.get("column_names") or ())
        elif choice in _SESSIONS:
            names, columns = wanted.get("peer_names") or (), wanted.get("column_names") or ()
            path = f"metrics_request.{choice}.peer_names"
            found = await session.routers.metrics(_SESSIONS[choice], names, columns, path)
        else:
            names, columns = wanted.get("flow_names") or (), wanted.get("metric_names") or ()
            found = await session.flow_metrics(names, columns, wanted.get("tagged_metrics"))
        return {"choice": _METRICS[choice], _METRICS[choice]: found}

    async def get_states(self, message: Message) -> dict[str, Any]:
        """Returns the neighbours of emulated hosts, or the routes that peers of routers announced."""
        await self._check("StatesRequest", message, "states_request")
        choice = message.get("choice", "ipv4_neighbors")
        if choice == "bgp_prefixes":
            wanted = message.get(choice) or {}
            found = await self._session().routers.prefixes(wanted, f"states_request.{choice}")
            return {"choice": choice, choice: found}
        if choice not in _NEIGHBOURS:
            raise OtgError([f"states_request.{choice}: is not emulated"], code=NOT_IMPLEMENTED)
        names, path = (message.get(choice) or {}).get("ethernet_names") or (), f"states_request.{choice}.ethernet_names"
        return {"choice": choice, choice: await self._session().neighbours(_NEIGHBOURS[choice], names, path)}

    async def get_capture(self, message: Message) -> Path:
        """Returns the file of a port's capture."""
        await self._check("CaptureRequest", message, "capture_request")
        if (message.get("packets") or {}).get("choice", "all") != "all":
            raise OtgError(["capture_request.packets.slice: captures are given whole"], code=NOT_IMPLEMENTED)
        return await self._session().capture(str(message["port_name"]))

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

    async def transmissions(self) -> dict[str, Any]:
        """Returns verdict, counts, ledger and health of each transmission that has ended."""
        await self._turn()
        trials = await asyncio.to_thread(self._folder().journal.trials)
        return {"transmissions": [_describe(trial) for trial in trials.values()]}

    async def hosts(self) -> dict[str, Any]:
        """Returns what emulated hosts know of their neighbours, who else has their addresses, and what they did."""
        await self._turn()
        return await self._session().hosts()

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
        """Makes the report of the session in its present state, or of the last one, and returns its file (HTML)."""
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


def handlers_of(sessions: Sessions) -> dict[str, Callable[[Message], Awaitable[Any]]]:
    """Returns what handles each request, by its name."""
    api = Api(sessions)
    beyond = Beyond(sessions, api.turn)
    told: tuple[Callable[[], Awaitable[Any]], ...] = (
        *(api.get_config, api.get_version),
        *(beyond.session, beyond.flows, beyond.ports, beyond.transmissions),
        *(beyond.hosts, beyond.capabilities, beyond.report),
    )
    asked: tuple[Callable[[Message], Awaitable[Any]], ...] = (
        *(api.set_config, api.update_config, api.append_config, api.delete_config),
        *(api.set_control_state, api.set_control_action, api.get_metrics, api.get_states, api.get_capture),
    )

    def without_message(tell: Callable[[], Awaitable[Any]]) -> Callable[[Message], Awaitable[Any]]:
        return lambda _: tell()

    async def refuse(message: Message) -> Any:
        await api.refuse(str(message["what"]))

    return {
        **{each.__name__: without_message(each) for each in told},
        **{each.__name__: each for each in (*asked, refuse)},
    }


_OF_THE_CLIENT: Final = frozenset({"bad_request", "frame_size", "unsupported"})
"""Kinds of the engine's errors by which it refuses what a client asked for."""


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
