"""l3fwd's files of rules and its map of ports, queues and cores. Pure."""

from __future__ import annotations

from ipaddress import ip_network

from nicbench.duts._networks import network_behind
from nicbench.errors import UsageError

Entry = tuple[int, int, int]
"""Port, queue, core: as l3fwd's ``--config`` has them; cores are counted from 0."""


def rules(ip: int, ports: int) -> str:
    """The longest-prefix-match table: the network behind each port leads to it; with one port, both lead to it."""
    networks = range(max(2, ports))
    lines = (
        f"R{_spelled(network_behind(ip, network, len(networks)))} {min(network, ports - 1)}" for network in networks
    )
    return "".join(f"{line}\n" for line in lines)


def default_map(ports: int, cores: int) -> tuple[Entry, ...]:
    """One queue for each port, the cores in turn."""
    return tuple((port, 0, port % cores) for port in range(ports))


def checked_map(entries: tuple[Entry, ...], ports: int, cores: int) -> tuple[Entry, ...]:
    """UsageError where it names a port, queue or core that is not there, or leaves a port out."""
    for port, queue, core in entries:
        if port >= ports or core >= cores or queue != 0:
            raise UsageError(
                f"the entry ({port},{queue},{core}) of the map names what is not there: the ports are 0 to "
                f"{ports - 1}, each with queue 0, the cores 0 to {cores - 1}",
                place="dut, port_queue_core_map",
                next_step="correct it, or leave it out",
            )
    if sorted(port for port, _, _ in entries) != list(range(ports)):
        raise UsageError(
            "the map must name each port once",
            place="dut, port_queue_core_map",
            next_step="correct it, or leave it out",
        )
    return entries


def config_argument(entries: tuple[Entry, ...]) -> str:
    """``(0,0,0),(1,0,0)``."""
    return ",".join(f"({port},{queue},{core})" for port, queue, core in entries)


def _spelled(network: str) -> str:
    """l3fwd reads IPv6 addresses with all their groups written out."""
    parsed = ip_network(network)
    return f"{parsed.network_address.exploded}/{parsed.prefixlen}"
