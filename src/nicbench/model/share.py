"""A share: a folder of the measured host that a client has mounted, and by which kind of server."""

from __future__ import annotations

from typing import Final

from nicbench.model.base import Frozen
from nicbench.model.choice import Choice

MOUNTS: Final = "/run/nicbench-mounts-"
"""On clients, where the path of each mount of ours begins."""


class ShareChoice(Choice):
    """``share: sftp`` or ``share: {kind: sftp, ...}``: a kind of server, and options that ``shares/`` understands."""


class Mount(Frozen):
    """Share number ``share`` (from 1) of the measured host, mounted on the host of the client ``endpoint``.

    ``directory`` is where its files are on that client's host. ``server_port`` names the measured port that it is
    reached by, at ``address`` and the TCP port ``tcp_port``. Its connections are its own, but for the kernel's NFS.
    ``survives_restart``: it is used again once its server was ended and started.
    """

    share: int
    kind: str
    endpoint: str
    directory: str
    server_port: str
    address: str
    tcp_port: int
    survives_restart: bool = False
