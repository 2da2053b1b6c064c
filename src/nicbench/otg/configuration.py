"""Captures of a configuration in the engine's terms: OTG's filters become bytes and masks at offsets of the frame."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

from nicbench.core.errors import UsageError
from nicbench.core.units import format_bits_per_s, l1_bits_per_s
from nicbench.otg.bgp import Router, read_routers, routes_of
from nicbench.otg.devices import Devices, Gateway, Source, as_port_flows, read_devices, read_lags
from nicbench.otg.flows import Flow, ServedPort, read_flow, receivers
from nicbench.otg.model import Problems

_ETHERNET_BYTES: Final = 14
_TAG_BYTES: Final = 4
_MOST_FILTERS: Final = 16
LARGEST_CAPTURE_BYTES: Final = 256 * 2**20

_FIELDS: Final[Mapping[str, Mapping[str, tuple[int, int]]]] = {
    "ethernet": {"dst": (0, 48), "src": (48, 48), "ether_type": (96, 16)},
    "vlan": {"priority": (0, 3), "cfi": (3, 1), "id": (4, 12), "protocol": (16, 16)},
    "ipv4": {
        "version": (0, 4),
        "header_length": (4, 4),
        "priority": (8, 8),
        "total_length": (16, 16),
        "identification": (32, 16),
        "reserved": (48, 1),
        "dont_fragment": (49, 1),
        "more_fragments": (50, 1),
        "fragment_offset": (51, 13),
        "time_to_live": (64, 8),
        "protocol": (72, 8),
        "header_checksum": (80, 16),
        "src": (96, 32),
        "dst": (128, 32),
    },
    "ipv6": {
        "version": (0, 4),
        "traffic_class": (4, 8),
        "flow_label": (12, 20),
        "payload_length": (32, 16),
        "next_header": (48, 8),
        "hop_limit": (56, 8),
        "src": (64, 128),
        "dst": (192, 128),
    },
}
"""Bit offset and bits of each field of a filter, in its header."""


@dataclass(frozen=True, slots=True)
class Capture:
    """What one port captures: frames that match all filters, the first bytes of each, the first or the last frames."""

    port: str
    filters: tuple[dict[str, Any], ...]
    overwrite: bool
    snap_bytes: int | None
    form: str


def read_captures(config: Mapping[str, Any], problems: Problems) -> dict[str, Capture]:
    """Reads the captures of a configuration, by the name of their port."""
    captures = {}
    for index, message in enumerate(config.get("captures") or ()):
        path = f"config.captures[{index}]"
        filters = read_filters(message.get("filters") or (), f"{path}.filters", problems)
        snap = message.get("packet_size")
        for port in message.get("port_names") or ():
            overwrite = bool(message.get("overwrite", True))
            form = str(message.get("format", "pcap"))
            captures[str(port)] = Capture(str(port), filters, overwrite, int(snap) if snap else None, form)
    return captures


def read_filters(filters: Any, path: str, problems: Problems) -> tuple[dict[str, Any], ...]:
    """Reads filters: of successive headers, or of bytes at an offset of the frame."""
    if len(filters) > _MOST_FILTERS:
        problems.invalid(path, f"are {len(filters)}, of at most {_MOST_FILTERS}")
        return ()
    made: list[dict[str, Any]] = []
    at = 0
    for index, message in enumerate(filters):
        choice = message.get("choice", "custom")
        here, body = f"{path}[{index}].{choice}", message.get(choice) or {}
        if choice == "custom":
            made += _custom(body, here, problems)
            continue
        if choice == "ethernet":
            at = 0
        elif choice == "vlan" or at < _ETHERNET_BYTES:
            at = max(at, _ETHERNET_BYTES)
        for name, given in body.items():
            if name not in _FIELDS[choice]:
                problems.not_implemented(f"{here}.{name}", "is not looked at: leave it out")
                continue
            offset, bits = _FIELDS[choice][name]
            made += _filter(8 * at + offset, bits, given, f"{here}.{name}", problems)
        at += {"ethernet": _ETHERNET_BYTES, "vlan": _TAG_BYTES}.get(choice, 0)
    return tuple(made)


def _custom(message: Mapping[str, Any], path: str, problems: Problems) -> list[dict[str, Any]]:
    offset, bits = int(message.get("offset", 0)), int(message.get("bit_length", 8))
    if not 1 <= bits <= 1024 or offset > 65_535:
        problems.invalid(path, "bit_length is 1 to 1024, and offset a bit of the frame")
        return []
    return _filter(offset, bits, message, path, problems)


def _filter(at: int, bits: int, message: Mapping[str, Any], path: str, problems: Problems) -> list[dict[str, Any]]:
    """The engine's filter of a field at a bit of the frame; none where its mask is 0, which every frame passes."""
    value = _number(str(message.get("value", "00")), bits, f"{path}.value", problems)
    mask = _number(str(message.get("mask", "00")), bits, f"{path}.mask", problems)
    if not mask:
        if message.get("negate"):
            problems.invalid(f"{path}.mask", "is 0, so that no frame passes what is negated")
        return []
    first, last = at // 8, (at + bits + 7) // 8
    shift = 8 * last - at - bits
    count = last - first
    return [
        {
            "offset": first,
            "bytes": (value << shift).to_bytes(count, "big").hex(),
            "mask": (mask << shift).to_bytes(count, "big").hex(),
            "negate": bool(message.get("negate", False)),
        }
    ]


def _number(digits: str, bits: int, path: str, problems: Problems) -> int:
    try:
        number = int(digits, 16)
    except ValueError:
        number = -1
    if not 0 <= number < 1 << bits:
        problems.invalid(path, f"{digits[:80]!r} is no hexadecimal number of {bits} bits")
        return 0
    return number


MOST_FLOWS: Final = 4096
MOST_FLOW_PORTS: Final = 64
_Named = Mapping[str, "_Named"]
_PEERS: Final[_Named] = {"peers": {"v4_routes": {}, "v6_routes": {}}}
_NAMED: Final[_Named] = {
    **{key: {} for key in ("ports", "lags", "layer1", "captures", "flows")},
    "devices": {
        "ethernets": {"ipv4_addresses": {}, "ipv6_addresses": {}, "vlans": {}},
        "bgp": {f"ipv{version}_interfaces": _PEERS for version in (4, 6)},
    },
}
"""What has a name, and what within it."""

_PARTS: Final = {
    "events": "events of convergence tests",
    "lldp": "the emulation of LLDP",
    "stateful_flows": "stateful flows",
    "egress_only_tracking": "tracking by egress headers",
}
"""Parts of the model that are refused by their names."""

_OPTIONS: Final = (
    ("protocol_options", "options of emulated protocols"),
    ("per_port_options", "options for single ports"),
)


def check_configuration(config: Mapping[str, Any], served: Mapping[str, ServedPort], problems: Problems) -> None:
    """Reports every problem of names, references and limits; ``served`` are the ports of the bench file by name."""
    for part, words in _PARTS.items():
        if config.get(part):
            problems.not_implemented(f"config.{part}", f"{words} is not there: leave it out")
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
    ends = names | {str(lag.get("name")) for lag in config.get("lags") or ()}
    for index, flow in enumerate(flows):
        _check_endpoints(flow, ends, f"config.flows[{index}].tx_rx", problems)


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


def _check_names(config: Mapping[str, Any], problems: Problems) -> None:
    """Names are unique in the whole configuration, as the model wants them."""
    first: dict[str, str] = {}
    for name, place in _names_of(config, "config", _NAMED):
        if name in first:
            problems.invalid(f"{place}.name", f"{name[:80]!r} is the name of {first[name]} too: names are unique")
        first.setdefault(name, place)


def _names_of(message: Mapping[str, Any], path: str, named: _Named) -> Iterator[tuple[str, str]]:
    """The names of the parts of a message, with their places."""
    for key, inner in named.items():
        found = message.get(key) or ()
        if isinstance(found, Mapping):
            yield from _names_of(found, f"{path}.{key}", inner)
            continue
        for index, item in enumerate(found):
            place = f"{path}.{key}[{index}]"
            if "name" in item:
                yield str(item["name"]), place
            yield from _names_of(item, place, inner)


def with_further(ports: Mapping[str, ServedPort], further: Mapping[str, str]) -> dict[str, ServedPort]:
    """Returns ports by their locations, also by ``further`` ones, each with the name of its port."""
    return {**ports, **{each: replace(ports[name], location=each) for each, name in further.items() if name in ports}}


def check_further(further: Mapping[str, str], known: Sequence[str]) -> None:
    """Raises UsageError for further locations that name no port, where the names of the ports are known."""
    for location, name in further.items():
        if known and name not in known:
            step = f"its ports are {', '.join(known)}"
            raise UsageError(f"--location {location}={name}: the bench file has no port {name}", next_step=step)


def check_locations(config: Mapping[str, Any], known: Sequence[str], further: Mapping[str, str]) -> None:
    """Raises OtgError for ports that a server does not have, of which ``known`` are all; none: it is not known yet."""
    problems = Problems()
    if known:
        served = with_further({name: ServedPort(number, name, None) for number, name in enumerate(known)}, further)
        _check_ports(config.get("ports") or (), served, problems)
    problems.raise_any()


def _check_ports(ports: Iterable[Mapping[str, Any]], served: Mapping[str, ServedPort], problems: Problems) -> None:
    taken: dict[int, str] = {}
    for index, port in enumerate(ports):
        location, path = location_of(port), f"config.ports[{index}].location"
        if location not in served:
            known = ", ".join(served) or "none"
            problems.invalid(path, f"{location[:80]!r} is no port of this server; its ports are {known}")
            continue
        number = served[location].number
        if number in taken:
            problems.invalid(path, f"{location!r} is the location of port {taken[number]!r} too")
        taken.setdefault(number, str(port.get("name")))


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


_ABOVE: Final = 1.001
_MOST_WARNINGS: Final = 10
"""Of one kind: thousands of flows may all be alike."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """``ports`` by their names in the configuration; ``warnings`` go to the client.

    A flow of OTG is one of ``flows`` for each port that sends it, with the same name. ``needs`` are the gateways of
    each of them that has some, by its number, ``sources`` the addresses of devices that send it. ``macs`` are those
    that frames have, ``lags`` are ports by group.
    """

    ports: Mapping[str, ServedPort]
    flows: tuple[Flow, ...]
    captures: Mapping[str, Capture]
    warnings: tuple[str, ...] = ()
    devices: Devices = field(default_factory=Devices)
    needs: Mapping[int, frozenset[Gateway]] = field(default_factory=dict)
    sources: Mapping[int, frozenset[Source]] = field(default_factory=dict)
    macs: Mapping[Gateway, str] = field(default_factory=dict)
    lags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tells_loss_duration: bool = False
    routers: tuple[Router, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it ends a session."""
        return not self.ports


EMPTY: Final = Configuration({}, (), {})


def read_configuration(
    config: Mapping[str, Any],
    served: Mapping[str, ServedPort],
    seed: int,
    macs: Mapping[Gateway, str] | None = None,
) -> Configuration:
    """Reads a configuration that conforms to the model; ``macs`` are gateways that are known. OtgError with every
    problem that it has.
    """
    problems = Problems()
    known = macs or {}
    check_configuration(config, served, problems)
    names = {str(port.get("name")) for port in config.get("ports") or ()}
    lags = read_lags(config, names, problems)
    devices = read_devices(config, names, lags, problems)
    routers = read_routers(config, devices, problems)
    devices = replace(devices, routes=routes_of(routers))
    parts = [
        (f"config.flows[{index}]", part)
        for index, flow in enumerate(config.get("flows") or ())
        for part in as_port_flows(flow, devices, lags, known, f"config.flows[{index}]", problems)
    ]
    if len(parts) > MOST_FLOWS >= len(config.get("flows") or ()):
        problems.invalid("config.flows", f"are {len(parts)} with one for each port that sends, of at most {MOST_FLOWS}")
    problems.raise_any()
    ports = resolve_ports(config, served)
    captures = read_captures(config, problems)
    flows = tuple(read_flow(part.flow, seed + index, ports, path, problems) for index, (path, part) in enumerate(parts))
    paths = [path for path, _ in parts]
    _tell_apart(flows, paths, problems)
    problems.raise_any()
    return Configuration(
        ports,
        flows,
        captures,
        (*_warn(config), *problems.warnings, *islice(_warn_of_rates(flows, paths, ports), _MOST_WARNINGS)),
        devices,
        {index: part.needs for index, (_, part) in enumerate(parts) if part.needs},
        {index: part.sources for index, (_, part) in enumerate(parts) if part.sources},
        known,
        lags,
        bool(((config.get("options") or {}).get("flow_options") or {}).get("packet_loss_duration")),
        routers,
    )


def _warn_of_rates(flows: Sequence[Flow], paths: Sequence[str], ports: Mapping[str, ServedPort]) -> Iterator[str]:
    """Yields a warning for each flow that asks for more than its link carries; bursts are sent at the link's rate."""
    for path, flow in zip(paths, flows, strict=True):
        asked = l1_bits_per_s(flow.program["rate_frames_per_s"], flow.mean_frame_bytes)
        link = ports[flow.transmit].link_bits_per_s
        if link is not None and flow.program["burst"] is None and asked > _ABOVE * link:
            told = f"{format_bits_per_s(asked)} are asked for, and its port's link carries {format_bits_per_s(link)}"
            yield f"{path}.rate: {told}: frames will be late or unsent"


def _warn(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns a warning for each setting that has no effect: links stay as they are."""
    warnings = []
    for index, layer in enumerate(config.get("layer1") or ()):
        keys = sorted(set(layer) - {"name", "port_names"})
        if keys:
            warnings.append(f"config.layer1[{index}]: links stay as they are: {', '.join(keys)} are not set")
    return tuple(warnings)


def _tell_apart(flows: Sequence[Flow], paths: Sequence[str], problems: Problems) -> None:
    """Reports flows that are counted by their headers and differ neither in these nor in their frame sizes."""
    alike: dict[str, list[int]] = {}
    for index, flow in enumerate(flows):
        if flow.counted == "headers":
            for port in flow.receive:
                alike.setdefault(f"{port}: {json.dumps(flow.program['match']['fields'])}", []).append(index)
    for indices in alike.values():
        if len(indices) == 1:
            continue
        sizes = [flows[index].program["sizes"].get("fixed") for index in indices]
        for index, size in zip(indices, sizes, strict=True):
            if size is None or sizes.count(size) > 1:
                problems.invalid(
                    paths[index],
                    "is counted by its headers, for its frames have no room for a signature, and another flow has the "
                    "same: send larger frames, or other ports or addresses",
                )
            flows[index].program["match"]["bytes"] = [size]
