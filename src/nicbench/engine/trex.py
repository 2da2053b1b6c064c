"""The conversation with TRex's Python client, which runs in a process of its own (``trex_process``)."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

from nicbench.core.errors import EngineError, HostError, NotReadyError
from nicbench.hosts.base import Host, Process

# The folder is where modules are looked for until ours are loaded, so that none of TRex's is hidden by one of ours.
_PROGRAM: Final = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); "
    "from trex_process import main; del sys.path[0]; main()"
)
# Loading the client takes a second or two, and a server that does not answer is asked several times.
REPLY_TIMEOUT_S: Final = 60.0
_END_TIMEOUT_S: Final = 10.0


class TrexError(EngineError):
    """The client refused or failed. ``details`` has what its process reported in addition to the message."""

    def __init__(self, kind: str, message: str, place: str, details: Mapping[str, Any]) -> None:
        super().__init__(message, kind=kind, place=place)
        self.details: Final = MappingProxyType(dict(details))


class TrexClient:
    """A client process, in a Python of the version ``python``. Its requests are answered one after the other."""

    def __init__(self, process: Process, place: str) -> None:
        self._process = process
        self._place = place
        self._last = 0
        self.python = ""

    @classmethod
    async def start(cls, host: Host, python: str, folder: str, place: str) -> Self:
        """Starts the process in the interpreter ``python`` and loads the client in ``folder``.

        TrexError or NotReadyError where that fails.
        """
        try:
            # Isolated (-I): neither this folder nor PYTHONPATH is where modules are looked for.
            client = cls(await host.start((python, "-I", "-c", _PROGRAM)), place)
            client.python = (await client.ask("load", client=folder))["python"]
        except NotReadyError as error:
            raise NotReadyError(
                f"there is no {python}", place="tester, python", next_step="name an interpreter that is installed"
            ) from error
        return client

    async def ask(
        self,
        command: str,
        *,
        within_s: float = REPLY_TIMEOUT_S,
        on_event: Callable[[dict[str, Any]], None] | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """The reply to a request; TrexError where it is an error, HostError where the process is gone or silent.

        Keys that are numbers come back as numbers.
        """
        self._last += 1
        number = self._last
        await self._process.write_line(json.dumps({"id": number, "command": command, **fields}))
        while True:
            line = await self._process.read_line(timeout_s=within_s)
            if line is None:
                raise await self._describe_end()
            message = json.loads(line)
            if "event" in message:
                if on_event is not None:
                    on_event(message)
            elif message["id"] == number:  # others answer requests that were abandoned with their trial
                return _require_ok(message, self._place)

    async def close(self) -> None:
        """Ends the process; never raises."""
        with contextlib.suppress(HostError):
            await self.ask("close", within_s=_END_TIMEOUT_S)
        with contextlib.suppress(HostError):
            await self._process.signal(signal.SIGKILL)
            await self._process.wait(timeout_s=_END_TIMEOUT_S)

    async def _describe_end(self) -> EngineError:
        status = await self._process.wait(timeout_s=_END_TIMEOUT_S)
        words = " ".join(self._process.stderr_tail().split()[-100:])
        return EngineError(
            f"the process of TRex's client ended with status {status}" + (f": {words}" if words else ""),
            place=self._place,
            next_step="everything measured so far is saved: `nicbench resume` continues the run",
        )


def _require_ok(reply: dict[str, Any], place: str) -> dict[str, Any]:
    if not reply["ok"]:
        details = dict(reply["error"])
        raise TrexError(str(details.pop("kind")), str(details.pop("message")), place, details)
    return {key: _with_numbers(value) for key, value in reply.items()}


def _with_numbers(value: Any) -> Any:
    """The value with numbers in place of JSON's texts of them as keys."""
    if isinstance(value, dict):
        return {int(key) if key.isdecimal() else key: _with_numbers(each) for key, each in value.items()}
    return [_with_numbers(each) for each in value] if isinstance(value, list) else value
