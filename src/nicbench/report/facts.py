"""Any disclosed value (inventory, settings, commands) as labelled text: units from the names, unknown in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Any

from nicbench.report.disclosure import cpu_mask
from nicbench.report.numbers import UNKNOWN, whole
from nicbench.units import format_bits_per_s, format_duration_s, format_rate

# Words that are written in capitals, whatever the fact is called.
_CAPITALS = frozenset(
    {
        *(
            "bios",
            "cpu",
            "dns",
            "dpdk",
            "dut",
            "eal",
            "fec",
            "gro",
            "id",
            "iommu",
            "ip",
            "irq",
            "mac",
            "mtu",
            "nic",
            "numa",
            "os",
            "pci",
        ),
        *("fec", "lldp", "ram", "rps", "rss", "smt", "tsc", "udp", "uuid", "vm", "xdp", "xps"),
    }
)
_SPELLINGS = MappingProxyType(
    {"ipv4": "IPv4", "ipv6": "IPv6", "pcie": "PCIe", "nvme": "NVMe", "selinux": "SELinux", "apparmor": "AppArmor"}
)

# Names that read badly when taken apart word by word.
_LABELS = MappingProxyType(
    {
        "hz": "Frequency",
        "page_bytes": "Page size",
        "options": "Options, as asked for",
        "reasons_null": "Why a fact is unknown",
        "tester_gro": "Tester's GRO",
        "shared": "Tester and DUT share a CPU",
        "housekeeping": "CPUs kept for other work",
        "worker": "Tester's CPU",
        "dut": "DUT",
        "cpus_isolated": "Isolated CPUs",
        "cpus_online": "Online CPUs",
        "txqueuelen": "Transmit queue",
    }
)
_PATHS = MappingProxyType(
    {
        "CPU, CPUs": "CPUs",
        "CPU, isolated CPUs": "Isolated CPUs",
        "CPU, online CPUs": "Online CPUs",
        "CPU, CPUs without timer tick": "CPUs without timer tick",
        "NUMA, CPUs by node": "NUMA",
    }
)
_MASKS = frozenset({"default_interrupt_cpu_mask", "rps_cpus", "rps_cpu_masks", "receive_packet_steering"})
_WHOLE = _MASKS | {"goals", "cpus_by_node", "node_by_interface"}  # one line each
# Their entries are called by names of hosts, interfaces or programs, which are no words of ours.
_BY_NAME = frozenset(
    {
        *("aggregates", "channels", "coalescing", "commands", "drivers", "flow_steering", "interfaces"),
        *("link_settings", "offloads_on", "queueing", "rings", "software", "time_stamping", "versions"),
    }
)
_ROLES = frozenset({"dut", "tester"})
_VERBATIM = frozenset({"attributes", "pending"})  # names that a BIOS chose are no words of ours
# Facts that only some devices have: where they are missing there is nothing to know.
_MAY_NOT_APPLY = frozenset({"rings", "channels", "bus", "firmware", "numa_node", "xdp_program"})


Rows = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """One row: text, or lines of code, or further facts below it, or things side by side (``heads`` and ``rows``)."""

    label: str
    text: str | None = None
    code: tuple[str, ...] = ()
    children: tuple[Fact, ...] = ()
    heads: tuple[str, ...] = ()
    rows: Rows = ()


def facts(values: Mapping[str, Any]) -> tuple[Fact, ...]:
    """Every entry, in its order, two levels deep; what lies deeper is named by its path, for a phone is narrow."""
    return tuple(_fact(str(name), value) for name, value in values.items())


def columns(hosts: Mapping[str, Any], named: Callable[[str], str] = str) -> tuple[tuple[str, ...], Rows]:
    """Facts of hosts side by side: the hosts, and rows of (label, a text for each). Equal hosts share a column."""
    merged: dict[str, dict[str, str]] = {}
    for name, values in hosts.items():
        flat = dict(_flat(values)) if isinstance(values, Mapping) else {"": plain("", values)}
        name = named(name)
        twin = next((other for other, known in merged.items() if known == flat), None)
        if twin is None:
            merged[name] = flat
        else:
            merged = {(f"{twin} and {name}" if key == twin else key): known for key, known in merged.items()}
    labels = dict.fromkeys(label for known in merged.values() for label in known)
    rows = tuple((label, tuple(known.get(label, UNKNOWN) for known in merged.values())) for label in labels)
    return tuple(merged), rows


def known_rows(rows: Rows) -> Rows:
    """Without those of which nobody knows anything; why a fact is unknown has a row of its own."""
    return tuple(row for row in rows if not {*row[1]} <= {UNKNOWN, "unknown"})


def spans(texts: Sequence[str | None]) -> tuple[tuple[str | None, int], ...]:
    """Each text with how many in succession are the same."""
    return tuple((text, len(tuple(alike))) for text, alike in groupby(texts))


def label_of(name: str) -> str:
    """A name as a label: without its unit, words apart. Names of the kernel (net.ipv4.ip_forward) stay as they are."""
    if any(character in name for character in "./: ") or name.startswith("-"):
        return name
    if name in _LABELS:
        return _LABELS[name]
    if name not in _SPELLINGS and (re.fullmatch(r"[a-z]+\d+[a-z]?", name) or "-" in name):
        return name  # of a device, a host, a program or a library
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    words = [_spelled(word) for word in name.split("_") if word]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def named(name: str) -> str:
    """A host as it is called; those that nicbench calls so by their role: "DUT", "Tester, fast"."""
    role, comma, configuration = name.partition(",")
    return f"{label_of(role)}{comma}{configuration}" if role in _ROLES else name


def _entry(name: str, of: str) -> str:
    """What an entry of a fact is called."""
    return named(name) if of in _BY_NAME else label_of(name)


def _spelled(word: str) -> str:
    if word in _SPELLINGS:
        return _SPELLINGS[word]
    if word in _CAPITALS:
        return word.upper()
    return f"{word[:-1].upper()}s" if word.endswith("s") and word[:-1] in _CAPITALS else word


def plain(name: str, value: object) -> str:
    """A single value as text; its unit is the end of its name."""
    if value is None:
        return UNKNOWN if name in _MAY_NOT_APPLY else "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        name = _OPTIONS.get(name, name)
        for suffix, text in _SUFFIXES.items():
            if f"_{name}".endswith(suffix):
                return text(value)
        return str(value) if isinstance(value, int) else f"{value:.6g}"
    if isinstance(value, list | tuple):
        return _together([plain(name, item) for item in value]) or "none"
    if isinstance(value, Mapping):
        if name == "cpus_by_node":
            return "; ".join(f"node {node}: CPUs {cpus}" for node, cpus in value.items())
        if name in _MASKS:
            return ", ".join(f"{queue} {cpu_mask(str(mask))}" for queue, mask in value.items())
        if name == "node_by_interface":
            return ", ".join(f"{port} {UNKNOWN if node is None else node}" for port, node in value.items())
        if name == "goals":  # of a search: loss ratios by name
            return ", ".join(f"{goal} {plain('_ratio', ratio)}" for goal, ratio in value.items())
        return ", ".join(f"{_entry(str(key), name)} {plain(str(key), item)}" for key, item in value.items()) or "none"
    words = str(value)
    if name in _MASKS:
        return cpu_mask(words)
    return words.removeprefix("DPDK ") if name == "dpdk" else words


def _fact(name: str, value: object) -> Fact:
    label = label_of(name)
    if isinstance(value, Mapping) and value:
        if name in _MASKS:
            return Fact(
                label, children=tuple(Fact(str(inner), text=cpu_mask(str(mask))) for inner, mask in value.items())
            )
        return Fact(label, children=tuple(Fact(inner, text=text) for inner, text in _flat(value, of=name)))
    if isinstance(value, list | tuple) and value:
        if all(isinstance(item, Mapping) for item in value):
            heads, rows = columns(
                {str(item.get("name", number)): _unnamed(item) for number, item in enumerate(value, 1)}
            )
            return Fact(label, heads=heads, rows=rows)
        if any(isinstance(item, str) and (" " in item or item.startswith("-")) for item in value):
            return Fact(label, code=_code_lines(value))
    return Fact(label, text=plain(name, value))


def _unnamed(item: Mapping[str, Any]) -> dict[str, Any]:
    """An entry without its name, which stands above it."""
    return {name: value for name, value in item.items() if name != "name"}


def _code_lines(items: Iterable[object]) -> tuple[str, ...]:
    """Arguments of one command stand on one line, commands on a line each."""
    texts = [str(item) for item in items]
    return (" ".join(texts),) if any(text.startswith("-") for text in texts) else tuple(texts)


def _within(label: str) -> str:
    """A label in the middle of a path: small, unless its first word is written in capitals."""
    return label if label[1:2].isupper() else f"{label[:1].lower()}{label[1:]}"


def _flat(values: Mapping[str, Any], above: str = "", of: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        label = _entry(str(name), of)
        if above:
            label = f"{above}, {label if of in _BY_NAME else _within(label)}"
        label = _PATHS.get(label, label)
        if isinstance(value, Mapping) and value and name in _VERBATIM:
            yield from ((f"{label}, {inner}", plain("", text)) for inner, text in value.items())
        elif isinstance(value, Mapping) and len(value) > 1 and name not in _WHOLE:
            yield from _flat(value, label, str(name))
        else:
            yield label, plain(str(name), value)


def _together(texts: list[str]) -> str:
    """Texts in a row; a unit that all share is said once: "64, 128, 256 bytes"."""
    parted = [text.rpartition(" ") for text in texts]
    units = {unit for _, _, unit in parted}
    if len(texts) > 1 and len(units) == 1 and all(number[:1].isdigit() for number, _, _ in parted):
        return f"{', '.join(number for number, _, _ in parted)} {units.pop()}"
    return ", ".join(texts)


def _bytes(value: float) -> str:
    if value < 2**16:
        return f"{whole(value)} bytes"  # a frame or an MTU: every byte counts
    for size, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{whole(value)} bytes"


def _hertz(value: float) -> str:
    return f"{value / 1e9:.3f} GHz" if value >= 1e9 else f"{value / 1e6:.4g} MHz"


# Options of a bench file carry their unit in the value ("200 ms"); resolved, they are plain numbers of these units.
_OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "duration": "duration_s",
        "drain": "drain_s",
        "settle": "settle_s",
        "precision": "precision_ratio",
        "validation": "validation_s",
        "start": "start_ratio",
        "step": "step_ratio",
        "first_share": "first_share_ratio",
        "loads": "loads_percent",
        "minimum_load": "minimum_load_frames_per_s",
        "rate": "rate_frames_per_s",
        "memory": "memory_bytes",
        "send_buffer": "send_buffer_bytes",
        "catch_up": "catch_up_s",
        "mtu": "mtu_bytes",
        "txqueuelen": "txqueuelen_frames",
        "burst": "burst_frames",
        "bins": "bins_s",
        "load_step": "load_step_percent",
        "longest_burst": "longest_burst_s",
        "overload": "overload_percent",
        "recovery": "recovery_percent",
        "overload_time": "overload_time_s",
        "recovery_time": "recovery_time_s",
        "after": "after_s",
        "interval": "interval_s",
        "of": "of_frames_per_s",
    }
)

# The longest first: `_frames_per_s` also ends with `_s`.
_SUFFIXES: Mapping[str, Callable[[float], str]] = MappingProxyType(
    {
        "_frames_per_s": format_rate,
        "_bits_per_s": format_bits_per_s,
        "_ratio": lambda value: f"{value * 100:.3g} %",
        "_percent": lambda value: f"{value:.3g} %",
        "_frames": lambda value: f"{whole(value)} frames",
        "_bytes": _bytes,
        "_mt_per_s": lambda value: f"{whole(value)} MT/s",
        "_us": lambda value: f"{value:g} µs",
        "_mib": lambda value: f"{value:g} MiB",
        "_hz": _hertz,
        "_ns": lambda value: f"{whole(value) if value >= 100 else f'{value:.3g}'} ns",
        "_share": lambda value: f"{value * 100:.3g} %",
        "_ms": lambda value: f"{value:g} ms",
        "_s": lambda value: format_duration_s(value).replace(" us", " µs"),
    }
)
