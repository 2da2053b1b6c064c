"""An endpoint: a port of a host by its address, as methods of workloads see it."""

from __future__ import annotations

from pydantic import Field

from nicbench.model.base import Frozen


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
