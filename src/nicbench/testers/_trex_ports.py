"""The ports of a TRex server: taken from nobody, looked at, and given back as they were."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from nicbench.errors import NotReadyError
from nicbench.testers._trex_client import words_of
from nicbench.testers.base import TesterFacts

_SMALLEST_FRAME_BYTES, _LARGEST_FRAME_BYTES = 64, 9216


class ServerOptions(Protocol):
    """Where the server is, and whether ports may be taken from others."""

    @property
    def server(self) -> str: ...
    @property
    def sync_port(self) -> int: ...
    @property
    def async_port(self) -> int: ...
    @property
    def force(self) -> bool: ...


class TrexPorts:
    """``names`` are those of the testbed by TRex's numbers, ``macs`` what their frames bear.

    ``client`` is the connected ``STLClient``, None before and after. Every method blocks.
    """

    def __init__(self, options: ServerOptions, names: Mapping[int, str], macs: tuple[str, ...]) -> None:
        self._options = options
        self._names = names
        self._macs = macs
        self._made_promiscuous: list[int] = []
        self.numbers: Final = list(names)
        self.place: Final = f"TRex at {options.server}:{options.sync_port}"
        self.client: Any = None

    def take(self, api: Any) -> TesterFacts:
        """Connects, takes the ports without taking them from anybody, and looks at their links."""
        options = self._options
        try:
            client = api.STLClient(
                server=options.server,
                sync_port=options.sync_port,
                async_port=options.async_port,
                verbose_level="none",  # it would write to stdout
            )
            client.connect()
        except Exception as error:
            raise NotReadyError(
                f"no TRex server answers: {words_of(error)}",
                place=self.place,
                next_step="start it there as `./t-rex-64 -i --hdrh`, or correct `server` and `sync_port`",
            ) from error
        self.client = client
        there = list(client.get_all_ports())
        missing = [str(port) for port in self.numbers if port not in there]
        if missing:
            raise NotReadyError(
                f"the server has no port {', '.join(missing)}",
                place=self.place,
                next_step=f"its ports are {', '.join(map(str, there))}: name two of them under `ports`",
            )
        try:
            client.acquire(self.numbers, force=options.force)
        except Exception as error:
            raise NotReadyError(
                f"its ports cannot be taken: {words_of(error)}",
                place=self.place,
                next_step="have them released (`release` in TRex's console), or write `force: true` to take them",
            ) from error
        try:
            return self._made_ready()
        except api.TRexError as error:
            step = "`portattr` in TRex's console shows the ports"
            raise NotReadyError(
                f"its ports cannot be used: {words_of(error)}", place=self.place, next_step=step
            ) from error

    def _made_ready(self) -> TesterFacts:
        client, ports = self.client, self.numbers
        client.stop(ports)
        client.set_service_mode(ports, False)
        client.remove_all_streams(ports)
        infos = client.get_port_info(ports)
        for number, info, mac in zip(ports, infos, self._macs, strict=True):
            if info.get("link") == "DOWN":
                raise NotReadyError(
                    f"the link of port {number} is down",
                    place=self.place,
                    next_step="check the cable and the DUT's port; `portattr` in TRex's console shows the links",
                )
            own = str(info.get("src_mac", "")).lower()
            if info.get("prom_supported") == "no" and own != mac:
                raise NotReadyError(
                    f"port {number} cannot be promiscuous, and frames to {mac} would not reach it",
                    place=self.place,
                    next_step=f"give its own address: `macs: [.., {own or 'MAC'}, ..]`, in the order of `ports`",
                )
        off = [n for n, info in zip(ports, infos, strict=True) if info.get("prom") == "off"]
        if off:
            client.set_port_attr(off, promiscuous=True)
            self._made_promiscuous = off
        version = client.get_server_version()
        speeds = [float(info.get("speed") or 0) * 1e9 for info in infos]
        return TesterFacts(
            description={
                "engine": {"engine": "TRex", "version": str(version.get("version")), "mode": str(version.get("mode"))},
                "server": f"{self._options.server}:{self._options.sync_port}",
                "ports": [
                    {
                        "name": self._names[number],
                        "number": number,
                        "driver": info.get("driver"),
                        "description": info.get("description"),
                        "link_bits_per_s": speed or None,
                        "mac": mac,
                        "own_mac": info.get("src_mac"),
                    }
                    for number, info, speed, mac in zip(ports, infos, speeds, self._macs, strict=True)
                ],
            },
            minimum_frame_bytes=_SMALLEST_FRAME_BYTES,
            maximum_frame_bytes=_LARGEST_FRAME_BYTES,
            link_bits_per_s=min(speeds) if all(speeds) else None,
        )

    def down(self) -> frozenset[int]:
        """Those whose link is down."""
        infos = self.client.get_port_info(self.numbers)
        return frozenset(n for n, info in zip(self.numbers, infos, strict=True) if info.get("link") == "DOWN")

    def give_back(self) -> None:
        """Each step by itself: a server that is gone refuses them all."""
        client, ports = self.client, self.numbers
        self.client = None
        if client is None:
            return
        mine = [port for port in ports if port in client.get_acquired_ports()]
        steps: list[Callable[[], Any]] = []
        if mine:
            promiscuous = [port for port in self._made_promiscuous if port in mine]
            steps = [
                lambda: client.stop(mine),
                lambda: client.remove_all_streams(mine),
                lambda: client.set_port_attr(promiscuous, promiscuous=False) if promiscuous else None,
                lambda: client.release(mine),
            ]
        for step in (*steps, client.disconnect):
            with contextlib.suppress(Exception):
                step()
