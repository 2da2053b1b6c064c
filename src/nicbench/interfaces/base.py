"""The ports of a bench file while they are made: each step of ``stages/ports.py`` takes what the last one has left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nicbench.bench_file.models import Port
from nicbench.hosts.base import Host
from nicbench.hosts.netns import NetnsHost
from nicbench.tuning.changes import Changes


@dataclass
class Making:
    """``hosts`` are live, by name. A step that gives a port another device puts the changed port into ``ports``.

    ``created`` are the namespaces that nicbench makes (``create: true``), ``facts`` what the report tells of it all.
    """

    hosts: Mapping[str, Host]
    ports: dict[str, Port]
    changes: Changes
    created: tuple[NetnsHost, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    def network_of(self, port: Port) -> Host:
        """Where the interfaces of a port are, once all is made."""
        return self.hosts[port.host].network

    def ports_in(self, namespace: NetnsHost) -> dict[str, Port]:
        """Those whose host is this namespace, or a container that has its network from it."""
        spec = namespace.spec()
        return {name: port for name, port in self.ports.items() if self.network_of(port).spec() == spec}

    def tell(self, fact: str, name: str, value: Any) -> None:
        """One line of a fact with several."""
        self.facts.setdefault(fact, {})[name] = value


def origin_of(making: Making, port: Port) -> Host:
    """Where a card of the port is before anything is made: outside of a namespace that nicbench makes."""
    network = making.network_of(port)
    created = any(network.spec() == made.spec() for made in making.created)
    return network.inner if created and isinstance(network, NetnsHost) else network


def place_of(port: Port, name: str) -> str:
    """For an error: the host and the port, as the bench file calls them."""
    return f"{port.host}, port {name}"
