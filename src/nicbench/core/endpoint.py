"""Where workloads run: ports of hosts by their addresses, and folders of the measured host that clients mount."""

from __future__ import annotations

from typing import ClassVar, Final

from pydantic import Field

from nicbench.core.base import Choice, Frozen


class EndpointFacts(Frozen):
    """Facts about an endpoint. ``port`` is the server port that a client is connected to; None for a server.

    Speeds are in bits per second. ``machine`` names the computer: two endpoints in namespaces of one machine share its
    CPUs. ``card`` tells ports of one adapter from those of another (the PCI device without its function); None where
    there is no card. ``bond_links`` is the number of links of the endpoint's bond, where nicbench made one.
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
    bucket_bytes: int | None = Field(default=None, exclude_if=lambda size: size is None)
    """What a token bucket on the link lets pass at once, where nicbench holds the link to its rate by one."""


# A share: a folder of the measured host that a client has mounted, and by which kind of server.


MOUNTS: Final = "/run/nicbench-mounts-"
"""Prefix of the path of every mount that nicbench makes on a client."""


class ShareChoice(Choice):
    """The choice of a file server: ``share: sftp``, or ``share: {kind: sftp, ...}`` with options of its plug-in."""

    plugins: ClassVar[str] = "nicbench.testbed.shares"


class Mount(Frozen):
    """Share number ``share`` (from 1) of the measured host, mounted on the host of the client ``endpoint``.

    ``directory`` is the mount point on that client's host. ``server_port`` names the measured port through which the
    share is reached, at ``address`` and the TCP port ``tcp_port``. Each mount has connections of its own, except with
    the kernel's NFS. ``survives_restart``: the mount works again after its server has been restarted.
    """

    share: int
    kind: str
    endpoint: str
    directory: str
    server_port: str
    address: str
    tcp_port: int
    survives_restart: bool = False
