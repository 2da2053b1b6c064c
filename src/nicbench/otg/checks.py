"""Checks of a configuration as a whole: names, references, limits, and parts of the model that are not implemented."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from nicbench.otg.flows import receivers
from nicbench.otg.ports import ServedPort
from nicbench.otg.refusals import Problems

MOST_FLOWS: Final = 4096
MOST_FLOW_PORTS: Final = 64
_NAMED: Final = ("ports", "layer1", "captures", "flows")

_PARTS: Final = {
    "lags": "link aggregation",
    "devices": "the emulation of devices and their protocols",
    "events": "events of convergence tests",
    "lldp": "the emulation of LLDP",
    "stateful_flows": "stateful flows",
    "egress_only_tracking": "tracking by egress headers",
}
"""Parts of the model that are refused by their names."""

_NO_PROTOCOLS: Final = frozenset({"name", "ethernets", "ipv4_loopbacks", "ipv6_loopbacks"})
"""Members of a device that are no protocols."""

_OPTIONS: Final = (
    ("protocol_options", "options of emulated protocols"),
    ("per_port_options", "options for single ports"),
)


def check_configuration(config: Mapping[str, Any], served: Mapping[str, ServedPort], problems: Problems) -> None:
    """Reports every problem of names, references and limits; ``served`` are the ports of the bench file by name."""
    for part, words in _PARTS.items():
        if config.get(part):
            problems.not_implemented(f"config.{part}", f"{words} is not there: leave it out")
    for index, device in enumerate(config.get("devices") or ()):
        for protocol in sorted(set(device) - _NO_PROTOCOLS):
            problems.not_implemented(f"config.devices[{index}].{protocol}", "is not emulated: leave it out")
    _check_options(config.get("options") or {}, problems)
    _check_names(config, problems)
    _check_ports(config.get("ports") or (), served, problems)
    names = {str(port.get("name")) for port in config.get("ports") or ()}
    for key in ("layer1", "captures"):
        for index, item in enumerate(config.get(key) or ()):
            _check_references(item.get("port_names") or (), names, f"config.{key}[{index}].port_names", problems)
    _check_captures(config.get("captures") or (), problems)
    flows = config.get("flows") or ()
    if len(flows) > MOST_FLOWS:
        problems.invalid("config.flows", f"has {len(flows)} flows, of at most {MOST_FLOWS}")
        return
    for index, flow in enumerate(flows):
        _check_endpoints(flow, names, f"config.flows[{index}].tx_rx", problems)


def resolve_ports(config: Mapping[str, Any], served: Mapping[str, ServedPort]) -> dict[str, ServedPort]:
    """Returns the served port of each port of a configuration that was checked, by its name there."""
    return {str(port["name"]): served[location_of(port)] for port in config.get("ports") or ()}


def location_of(port: Mapping[str, Any]) -> str:
    """Returns the location of a port, which is its own name where none is given."""
    return str(port.get("location") or port.get("name"))


def _check_options(options: Mapping[str, Any], problems: Problems) -> None:
    for key, words in _OPTIONS:
        if options.get(key):
            problems.not_implemented(f"config.options.{key}", f"{words} are not there: leave it out")
    port_options = options.get("port_options") or {}
    for key in ("data_integrity", "frame_ordering_mode"):
        if port_options.get(key):
            problems.not_implemented(f"config.options.port_options.{key}", "is not there: leave it out")
    if (options.get("flow_options") or {}).get("packet_loss_duration"):
        problems.not_implemented("config.options.flow_options.packet_loss_duration", "is not there: leave it out")


def _check_names(config: Mapping[str, Any], problems: Problems) -> None:
    """Names are unique in the whole configuration, as the model wants them."""
    first: dict[str, str] = {}
    for key in _NAMED:
        for index, item in enumerate(config.get(key) or ()):
            name, place = str(item.get("name")), f"config.{key}[{index}]"
            if name in first:
                problems.invalid(f"{place}.name", f"{name[:80]!r} is the name of {first[name]} too: names are unique")
            first.setdefault(name, place)


def check_locations(config: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raises OtgError for ports that a server does not have, of which ``known`` are all; none: it is not known yet."""
    problems = Problems()
    if known:
        served = {name: ServedPort(number, name, None) for number, name in enumerate(known)}
        _check_ports(config.get("ports") or (), served, problems)
    problems.raise_any()


def _check_ports(ports: Iterable[Mapping[str, Any]], served: Mapping[str, ServedPort], problems: Problems) -> None:
    taken: dict[str, str] = {}
    for index, port in enumerate(ports):
        location, path = location_of(port), f"config.ports[{index}].location"
        if location not in served:
            known = ", ".join(served) or "none"
            problems.invalid(path, f"{location[:80]!r} is no port of this server; its ports are {known}")
        elif location in taken:
            problems.invalid(path, f"{location!r} is the location of port {taken[location]!r} too")
        taken.setdefault(location, str(port.get("name")))


def _check_references(given: Iterable[Any], known: set[str], path: str, problems: Problems) -> None:
    for index, name in enumerate(given):
        if name not in known:
            problems.invalid(f"{path}[{index}]", f"no port of the configuration is called {str(name)[:80]!r}")


def _check_captures(captures: Iterable[Mapping[str, Any]], problems: Problems) -> None:
    holders: dict[str, str] = {}
    for index, capture in enumerate(captures):
        for name in capture.get("port_names") or ():
            if name in holders:
                problems.invalid(
                    f"config.captures[{index}].port_names", f"port {name!r} is captured by {holders[name]!r} too"
                )
            holders.setdefault(str(name), str(capture.get("name")))


def _check_endpoints(flow: Mapping[str, Any], ports: set[str], path: str, problems: Problems) -> None:
    endpoints = flow.get("tx_rx") or {}
    if endpoints.get("choice", "port") == "device":
        problems.not_implemented(f"{path}.device", "devices are not emulated: give ports")
        return
    port = endpoints.get("port") or {}
    if port.get("tx_name") not in ports:
        problems.invalid(
            f"{path}.port.tx_name", f"no port of the configuration is called {str(port.get('tx_name'))[:80]!r}"
        )
    names = receivers(flow)
    _check_references(names, ports, f"{path}.port.rx_names", problems)
    if len(names) > MOST_FLOW_PORTS or len(set(names)) < len(names):
        problems.invalid(f"{path}.port.rx_names", f"are at most {MOST_FLOW_PORTS} different ports")
