"""A command whose stdin and stdout are the connection, as ssh's ProxyCommand; it ends with the connection."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Sequence

# Like any child it must not outlive the controller.
_DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
_END_TIMEOUT_S = 0.5


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
        """It ends by itself when nobody is at the other end; killed where it does not."""
        self.socket.close()
        try:
            async with asyncio.timeout(_END_TIMEOUT_S):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
