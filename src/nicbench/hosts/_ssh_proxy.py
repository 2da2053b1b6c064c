"""A command whose stdin and stdout are the connection, as ssh's ProxyCommand; it ends with the connection."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence

# Like any child it must not outlive the controller.
_DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")


class Proxy:
    """``socket`` is our end. What the command says on stderr is the terminal's, as with ssh."""

    def __init__(self, process: asyncio.subprocess.Process, ours: socket.socket) -> None:
        self._process = process
        self.socket = ours

    @classmethod
    async def start(cls, command: Sequence[str]) -> Proxy:
        """OSError where it cannot be started."""
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                *_DIES_WITH_US, *command, stdin=theirs.fileno(), stdout=theirs.fileno(), start_new_session=True
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(process, ours)

    async def close(self) -> None:
        self.socket.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
