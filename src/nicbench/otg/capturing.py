"""Captures of a session: they begin and end independently of the flows, with one file for each port.

Where the tester is on another machine, its engine writes there, and the file is fetched when the capture has ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

from nicbench.core.errors import EngineError
from nicbench.otg.captures import LARGEST_CAPTURE_BYTES
from nicbench.otg.configuration import Configuration
from nicbench.otg.refusals import OtgError
from nicbench.stages.served import Bed


class Capturing:
    """The captures in progress, and the files of those that have ended, by the names of their ports."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._configuration = Configuration({}, (), {})
        self._going: set[str] = set()
        self._files: dict[str, Path] = {}
        self._begun = 0

    @property
    def going(self) -> Collection[str]:
        """The ports with a capture in progress."""
        return self._going

    async def configure(self, configuration: Configuration) -> None:
        """Ends all captures, and takes those of a new configuration, of which none is begun."""
        await self.stop_all()
        self._configuration, self._files = configuration, {}

    async def control(self, action: str, names: Iterable[str]) -> None:
        """Starts or stops the captures of these ports; without names, all captures of the configuration."""
        configured = self._configuration.captures
        wanted = list(names) or list(configured)
        if action == "start" and not wanted:
            raise OtgError(["control_state.port.capture: the configuration has no capture: add one with its ports"])
        for index, name in enumerate(wanted):
            if name not in configured:
                path = f"control_state.port.capture.port_names[{index}]"
                raise OtgError([f"{path}: no capture of the configuration has port {name[:80]!r}"])
        if action == "start":
            await self._start([name for name in wanted if name not in self._going])
        else:
            await self._stop([name for name in wanted if name in self._going])

    async def stop_all(self) -> None:
        """Ends all captures. EngineError where a file is incomplete, HostError where it cannot be fetched."""
        await self._stop(list(self._going))

    def file(self, name: str) -> Path:
        """Returns the file of a port's capture, which has ended. OtgError where there is none."""
        if name not in self._configuration.ports:
            raise OtgError([f"capture_request.port_name: no port of the configuration is called {name[:80]!r}"])
        if name in self._going:
            raise OtgError([f"capture_request.port_name: the capture at {name!r} goes on: stop it first"])
        if name not in self._files:
            raise OtgError([f"capture_request.port_name: nothing was captured at {name!r}: start and stop its capture"])
        return self._files[name]

    async def _start(self, names: list[str]) -> None:
        folder = self._bed.folder_elsewhere or self._bed.folder.raw
        for name in names:
            capture = self._configuration.captures[name]
            self._begun += 1
            await self._bed.generator.start_capture(
                [self._configuration.ports[name].number],
                f"{folder}/capture-{self._begun:04d}-",
                filters=list(capture.filters),
                at_most_bytes=LARGEST_CAPTURE_BYTES,
                overwrite=capture.overwrite,
                snap_bytes=capture.snap_bytes,
            )
            self._going.add(name)
            self._files.pop(name, None)

    async def _stop(self, names: list[str]) -> None:
        for name in names:
            ports = [self._configuration.ports[name].number]
            self._going.discard(name)
            (file,) = await self._bed.generator.stop_capture(ports)
            if file.error:
                raise EngineError(f"the capture at {name} is not whole: {file.error}", kind="capture")
            self._files[name] = await self._fetch(file.path)

    async def _fetch(self, path: str) -> Path:
        if self._bed.folder_elsewhere is None:
            return Path(path)
        host, copy = self._bed.testbed.tester, self._bed.folder.raw / PurePosixPath(path).name
        await host.get(path, copy)
        await host.run(("rm", "-f", "--", path))
        return copy
