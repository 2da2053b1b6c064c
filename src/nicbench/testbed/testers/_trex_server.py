"""A TRex server and its ports, by a client process: connected, acquired, checked, and released as they were."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from nicbench.core.errors import EngineError, HostError, NicbenchError, NotReadyError
from nicbench.engine.trex import TrexClient, TrexError
from nicbench.hosts.kinds.local import LocalHost
from nicbench.testbed.testers.base import TesterFacts
from nicbench.tuning.undo.adapters import FreeTrexPorts

_SMALLEST_FRAME_BYTES, _LARGEST_FRAME_BYTES = 64, 9216
_GIVE_BACK_S: Final = 20.0


class ServerOptions(Protocol):
    """The client and its interpreter, the address of the server, and whether ports may be taken from others."""

    @property
    def client(self) -> str: ...
    @property
    def python(self) -> str | None: ...
    @property
    def server(self) -> str: ...
    @property
    def sync_port(self) -> int: ...
    @property
    def async_port(self) -> int: ...
    @property
    def force(self) -> bool: ...


class TrexServer:
    """The server of a run: ``names`` of the testbed by TRex's numbers, ``macs`` the addresses of the ports' frames.

    ``owner`` is the name by which it holds its ports. Between ``connect`` and ``give_back`` it may be asked.
    """

    def __init__(self, options: ServerOptions, names: Mapping[int, str], macs: tuple[str, ...], owner: str) -> None:
        self._options = options
        self._names = names
        self._macs = macs
        self._owner = owner
        self._client: TrexClient | None = None
        self._version: Mapping[str, Any] = {}
        self._infos: Sequence[Mapping[str, Any]] = ()
        self._promiscuous: list[int] = []
        self.numbers: Final = list(names)
        self.place: Final = f"TRex at {options.server}:{options.sync_port}"

    async def connect(self) -> FreeTrexPorts:
        """Starts the client, connects and looks at the ports; gives what undoes that they are taken."""
        options = self._options
        python = options.python or sys.executable
        server: dict[str, Any] = {
            "server": options.server,
            "sync_port": options.sync_port,
            "async_port": options.async_port,
        }
        try:
            self._client = await TrexClient.start(LocalHost(), python, options.client, self.place)
            self._version = await self._client.ask("connect", **server, owner=self._owner)
            self._require_ports(self._version["ports"])
            self._infos = (await self._client.ask("look", ports=self.numbers))["ports"]
        except TrexError as error:
            raise self._not_ready(error) from error
        self._promiscuous = [n for n, info in zip(self.numbers, self._infos, strict=True) if info["prom"] == "off"]
        self._require_usable()
        return FreeTrexPorts(
            **server,
            client=options.client,
            python=python,
            owner=self._owner,
            ports=tuple(self.numbers),
            promiscuous=tuple(self._promiscuous),
        )

    async def take(self) -> TesterFacts:
        """Acquires the ports, by default only free ones, and has them receive whatever comes."""
        assert self._client is not None  # noqa: S101 - connect() made it
        try:
            await self._client.ask("take", ports=self.numbers, promiscuous=self._promiscuous, force=self._options.force)
        except TrexError as error:
            raise self._not_ready(error) from error
        speeds = [float(info["speed"] or 0) * 1e9 for info in self._infos]
        return TesterFacts(
            description={
                "engine": {"engine": "TRex", "version": self._version["version"], "mode": self._version["mode"]},
                "server": f"{self._options.server}:{self._options.sync_port}",
                "client_python": self._client.python,
                "ports": [
                    {
                        "name": self._names[number],
                        "number": number,
                        "driver": info["driver"],
                        "description": info["description"],
                        "link_bits_per_s": speed or None,
                        "mac": mac,
                        "own_mac": info["src_mac"],
                    }
                    for number, info, speed, mac in zip(self.numbers, self._infos, speeds, self._macs, strict=True)
                ],
            },
            minimum_frame_bytes=_SMALLEST_FRAME_BYTES,
            maximum_frame_bytes=_LARGEST_FRAME_BYTES,
            link_bits_per_s=min(speeds) if all(speeds) else None,
        )

    async def ask(
        self,
        command: str,
        within_s: float,
        on_event: Callable[[dict[str, Any]], None] | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """The reply to a command about the ports; EngineError where TRex refused, died, or somebody took a port."""
        if self._client is None:
            raise EngineError("the tester is not running", place=self.place)
        try:
            reply = await self._client.ask(command, within_s=within_s, on_event=on_event, ports=self.numbers, **fields)
        except TrexError as error:
            self._refuse_takers(error.details.get("takers") or {})
            step = "see the output of the server, and start it again"
            raise EngineError(f"TRex failed: {error.message}", place=self.place, next_step=step) from error
        self._refuse_takers(reply.get("takers") or {})
        return reply

    async def give_back(self) -> None:
        """Stops and releases the ports and ends the client; never raises, also where the server is gone."""
        client, self._client = self._client, None
        if client is None:
            return
        with contextlib.suppress(HostError):
            await client.ask("give_back", within_s=_GIVE_BACK_S, ports=self.numbers, promiscuous=self._promiscuous)
        await client.close()

    def _refuse_takers(self, takers: Mapping[Any, str]) -> None:
        """EngineError where somebody took ports while they were in use."""
        if not takers:
            return
        ports, who = ", ".join(map(str, takers)), " and ".join(sorted(set(takers.values())))
        raise EngineError(
            f"{who} took port {ports} by force while it was in use: the trial is lost",
            kind="taken",
            place=self.place,
            next_step=f"have {who} release it, then `nicbench resume`; what was measured is kept",
        )

    def _require_ports(self, there: Sequence[int]) -> None:
        missing = [str(port) for port in self.numbers if port not in there]
        if missing:
            raise NotReadyError(
                f"the server has no port {', '.join(missing)}",
                place=self.place,
                next_step=f"its ports are {', '.join(map(str, there))}: name two of them under `ports`",
            )

    def _require_usable(self) -> None:
        """NotReadyError where a link is down, or a port would not receive the frames that are sent to it."""
        for number, info, mac in zip(self.numbers, self._infos, self._macs, strict=True):
            if info["link"] == "DOWN":
                raise NotReadyError(
                    f"the link of port {number} is down",
                    place=self.place,
                    next_step="check the cable and the DUT's port; see `portattr` in TRex's console for the links",
                )
            own = str(info["src_mac"] or "").lower()
            if info["prom_supported"] == "no" and own != mac:
                raise NotReadyError(
                    f"port {number} cannot be promiscuous, and frames to {mac} would not reach it",
                    place=self.place,
                    next_step=f"give its own address: `macs: [.., {own or 'MAC'}, ..]`, in the order of `ports`",
                )

    def _not_ready(self, error: TrexError) -> NicbenchError:
        """What keeps the ports from being taken, with what to do about it."""
        message, place, step = error.message, self.place, "see `portattr` in TRex's console for the ports"
        match error.kind:
            case "absent":
                place, step = (
                    "tester, client",
                    "name the folder of an unpacked TRex release, or of a clone of trex-core",
                )
            case "load":
                place = "tester, client"
                step = (
                    "name in `python` an interpreter that the release supports (3.06: up to Python 3.11, 3.08: up to "
                    "3.12), and leave `external_libs` beside its client"
                )
            case "unreachable":
                message = f"there is no answer from a TRex server: {message}"
                step = "start it on that machine: `./t-rex-64 -i --hdrh`, or correct `server` and `sync_port`"
            case "mismatch":
                theirs = error.details.get("server")
                message = f"client and server are of different releases: {message}"
                step = f"name in `client` the folder of the server's own release{f', {theirs}' if theirs else ''}"
            case "events":
                message = f"no events come from its port {self._options.async_port}: {message}"
                step = "correct `async_port` (the server prints it at its start), and let firewalls pass it"
            case "busy":
                message = f"its ports cannot be acquired: {message}"
                step = "release them (`release` in TRex's console), or write `force: true` to take them"
            case _:
                message = f"its ports cannot be used: {message}"
        return NotReadyError(message, place=place, next_step=step)
