"""A share: a folder of the measured host that a client has mounted, as methods of workloads see it."""

from __future__ import annotations

from nicbench.model.base import Frozen


class Mount(Frozen):
    """Share number ``share`` (from 1) of the measured host, mounted on the host of the client ``endpoint``.

    ``directory`` is where its files are on that client's host. ``server_port`` names the measured port that it is
    reached by, at ``address`` and the TCP port ``tcp_port``. Every mount has connections of its own.
    """

    share: int
    kind: str
    endpoint: str
    directory: str
    server_port: str
    address: str
    tcp_port: int
