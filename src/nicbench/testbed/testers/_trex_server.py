"""A TRex server: its Python client, loaded from the user's installation, and its ports, acquired, checked and
released as they were.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol

from nicbench.core.errors import NotReadyError
from nicbench.testbed.testers.base import TesterFacts

# The places of the client in a release, in a clone of trex-core, and in the client package of a release.
CLIENT_FOLDERS: Final = (
    "automation/trex_control_plane/interactive",
    "scripts/automation/trex_control_plane/interactive",
    "interactive",
    ".",
)
_API: Final = Path("trex/stl/api.py")


def load_api(folder: str) -> ModuleType:
    """``trex.stl.api`` of the installation in ``folder``; NotReadyError where there is none, or it does not load."""
    given = Path(folder).expanduser()
    found = next((place for name in CLIENT_FOLDERS if ((place := given / name) / _API).is_file()), None)
    if found is None:
        raise NotReadyError(
            f"there is no TRex client in {given}: it has no {CLIENT_FOLDERS[0]}/{_API}",
            place="tester, client",
            next_step="name the folder of an unpacked TRex release, or of a clone of trex-core",
        )
    _forget_another(found)
    sys.path.insert(0, str(found))
    try:
        return importlib.import_module("trex.stl.api")
    except (Exception, SystemExit) as error:  # it exits where its libraries do not fit
        raise NotReadyError(
            f"the TRex client in {found} does not load: {words_of(error)}",
            place="tester, client",
            next_step="use a release that supports this Python, complete with its `external_libs`",
        ) from error
    finally:
        sys.path.remove(str(found))


def _forget_another(found: Path) -> None:
    """Removes the modules of another installation that this process loaded before."""
    loaded = sys.modules.get("trex.stl.api")
    if loaded is None or Path(str(loaded.__file__)).resolve() != (found / _API).resolve():
        for name in [name for name in sys.modules if name == "trex" or name.startswith("trex.")]:
            del sys.modules[name]


def words_of(error: BaseException) -> str:
    """The message of a TRex error on one line."""
    return " ".join(str(error).split()) or type(error).__name__


_SMALLEST_FRAME_BYTES, _LARGEST_FRAME_BYTES = 64, 9216


class ServerOptions(Protocol):
    """The address of the server, and whether ports may be taken from others (``force``)."""

    @property
    def server(self) -> str: ...
    @property
    def sync_port(self) -> int: ...
    @property
    def async_port(self) -> int: ...
    @property
    def force(self) -> bool: ...


class TrexPorts:
    """The ports of a run: ``names`` of the testbed by TRex's numbers, ``macs`` the addresses of their frames.

    ``client`` is the connected ``STLClient``; None before ``take`` and after ``give_back``. Every method blocks.
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
        """Connects, acquires the ports, by default only free ones, and checks their links."""
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
                f"there is no answer from a TRex server: {words_of(error)}",
                place=self.place,
                next_step="start it on that machine: `./t-rex-64 -i --hdrh`, or correct `server` and `sync_port`",
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
                f"its ports cannot be acquired: {words_of(error)}",
                place=self.place,
                next_step="release them (`release` in TRex's console), or write `force: true` to take them",
            ) from error
        try:
            return self._prepare_ports()
        except api.TRexError as error:
            step = "see `portattr` in TRex's console for the ports"
            raise NotReadyError(
                f"its ports cannot be used: {words_of(error)}", place=self.place, next_step=step
            ) from error

    def _prepare_ports(self) -> TesterFacts:
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
                    next_step="check the cable and the DUT's port; see `portattr` in TRex's console for the links",
                )
            own = str(info.get("src_mac", "")).lower()
            if info.get("prom_supported") == "no" and own != mac:
                raise NotReadyError(
                    f"port {number} cannot be promiscuous, and frames to {mac} would not reach it",
                    place=self.place,
                    next_step=f"give its own address: `macs: [.., {own or 'MAC'}, ..]`, in the order of `ports`",
                )
        not_promiscuous = [n for n, info in zip(ports, infos, strict=True) if info.get("prom") == "off"]
        if not_promiscuous:
            client.set_port_attr(not_promiscuous, promiscuous=True)
            self._made_promiscuous = not_promiscuous
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
        """The numbers of the ports whose link is down."""
        infos = self.client.get_port_info(self.numbers)
        return frozenset(n for n, info in zip(self.numbers, infos, strict=True) if info.get("link") == "DOWN")

    def give_back(self) -> None:
        """Stops and releases the ports and disconnects; never raises, also where the server is gone."""
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
