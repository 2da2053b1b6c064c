"""Looks like the parts of ZeroMQ's binding by which events of a server are heard, on one TCP port alone."""

from __future__ import annotations

import os
from multiprocessing.connection import Client
from typing import Any

SUB, SUBSCRIBE, RCVTIMEO = 2, 6, 27


class Again(Exception):  # noqa: N818 - its name there
    """Nothing came."""


class Context:
    def socket(self, kind: int) -> Socket:
        return Socket()

    def term(self) -> None:
        pass


class Socket:
    def connect(self, address: str) -> None:
        self._port = int(address.rpartition(":")[2])

    def setsockopt(self, option: int, value: Any) -> None:
        pass

    def recv(self) -> bytes:
        with Client(os.environ["FAKE_TREX"]) as server:
            server.send(("publishes_at", (self._port,), {}))
            if not server.recv()[1]:
                raise Again
        return b"{}"

    def close(self, linger: int) -> None:
        pass
