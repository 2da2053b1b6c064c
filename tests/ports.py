"""Ports of the machine's own loopback, for tests whose programs listen there."""

from __future__ import annotations

import itertools
import os
import socket

# Below the ports that the kernel gives out, and apart for each worker of xdist: nobody else asks for them.
_PORTS = itertools.count(20_000 + 1_000 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")))


def free_port() -> int:
    """Returns a TCP port that nothing listens on, another one at each call."""
    for port in _PORTS:
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
    raise AssertionError("no port is free")
