"""The ports of a bench file while they are prepared: the steps of ``stages/hosts.py`` work on one ``Making``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.interfaces.options import Port
from nicbench.tuning.changes import Changes


@dataclass
class Making:
    """The state that the steps of making ports share; a step that changes a port's device replaces it in ``ports``.

    ``hosts`` are the live hosts by name, ``created`` the namespaces that nicbench makes (``create: true``), ``facts``
    what the report says of the ports.
    """

    hosts: Mapping[str, Host]
    ports: dict[str, Port]
    changes: Changes
    created: tuple[NetnsHost, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    def network_of(self, port: Port) -> Host:
        """The host in whose network stack a port's interfaces are at the end."""
        return self.hosts[port.host].network

    def ports_in(self, namespace: NetnsHost) -> dict[str, Port]:
        """The ports whose host is this namespace, or a container that uses its network."""
        spec = namespace.spec()
        return {name: port for name, port in self.ports.items() if self.network_of(port).spec() == spec}

    def tell(self, fact: str, name: str, value: Any) -> None:
        """Adds one line to a fact of the report that has several."""
        self.facts.setdefault(fact, {})[name] = value


def origin_of(making: Making, port: Port) -> Host:
    """The host where the port's card is before anything is made: outside any namespace that nicbench makes."""
    network = making.network_of(port)
    created = any(network.spec() == made.spec() for made in making.created)
    return network.inner if created and isinstance(network, NetnsHost) else network


def place_of(port: Port, name: str) -> str:
    """The place of an error: the host and the port, as the bench file names them."""
    return f"{port.host}, port {name}"
