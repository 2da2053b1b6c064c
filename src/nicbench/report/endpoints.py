"""The testbed of workloads as a table: the ports of the measured host, each followed by the clients that
connect to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nicbench.core.plan import Plan
from nicbench.core.round import EndpointFacts
from nicbench.core.units import format_bits_per_s
from nicbench.report.numbers import UNKNOWN

ENDPOINTS = "endpoints"
"""The name under which the facts of a plan have the endpoints."""


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """One port. ``is_server`` is True for a port of the host that is measured; ``leads_to`` is, for the port of a
    client, the port of the server that it connects to.
    """

    name: str
    is_server: bool
    host: str
    machine: str
    address: str
    device: str
    leads_to: str
    link: str
    card: str
    numa_node: str
    namespace: str


def endpoint_rows(plan: Plan | None) -> tuple[EndpointRow, ...]:
    """Returns each port of the server, followed by those of its clients; nothing where frames were measured."""
    known: Mapping[str, Any] = (plan.facts.get(ENDPOINTS) or {}) if plan else {}
    spaces: Mapping[str, str] = (plan.facts.get("namespaces") or {}) if plan else {}
    ends = [EndpointFacts.model_validate({"name": name, **facts}) for name, facts in known.items()]
    ordered = [
        end for server in ends if server.port is None for end in (server, *(e for e in ends if e.port == server.name))
    ]
    return tuple(_row(end, spaces) for end in ordered)


def _row(end: EndpointFacts, spaces: Mapping[str, str]) -> EndpointRow:
    return EndpointRow(
        name=end.name,
        is_server=end.port is None,
        host=end.host,
        machine=end.machine,
        address=end.address,
        device=end.device or UNKNOWN,
        leads_to=end.port or UNKNOWN,
        link=UNKNOWN if end.link_bits_per_s is None else format_bits_per_s(end.link_bits_per_s),
        card=end.card or UNKNOWN,
        numa_node=UNKNOWN if end.numa_node is None else str(end.numa_node),
        namespace=spaces.get(end.host, UNKNOWN),
    )
