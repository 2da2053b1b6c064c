"""Where workloads run: ports of hosts by their addresses, and folders of the measured host that clients have
mounted.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pydantic import Field

from nicbench.core.base import Choice, Frozen


class EndpointFacts(Frozen):
    """``port`` is the server's port that a client leads to; None of a server's own. Speeds in bits per second.

    ``machine`` names the computer: two endpoints in namespaces of one machine share its CPUs. ``card`` tells ports of
    one adapter from those of another (the PCI device without its function); None where there is no card. ``bond_links``
    is how many links its bond has, where nicbench made one.
    """

    name: str
    host: str
    machine: str
    address: str
    device: str | None = None
    port: str | None = None
    link_bits_per_s: float | None = None
    card: str | None = None
    numa_node: int | None = None
    bond_links: int | None = Field(default=None, exclude_if=lambda links: links is None)


# A share: a folder of the measured host that a client has mounted, and by which kind of server.


MOUNTS: Final = "/run/nicbench-mounts-"
"""On clients, where the path of each mount of ours begins."""


class ShareChoice(Choice):
    """``share: sftp`` or ``share: {kind: sftp, ...}``: a kind of server, and options that ``shares/`` understands."""

    plugins: ClassVar[str] = "nicbench.testbed.shares"


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
