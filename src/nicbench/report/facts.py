"""Any disclosed value (inventory, settings, commands) as labelled text: units from the names, unknown in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from nicbench.report.numbers import significant, whole
from nicbench.units import format_bits_per_s, format_duration_s, format_rate

# Words that are written in capitals, whatever the fact is called.
_CAPITALS = frozenset(
    {
        *("bios", "cpu", "cpus", "dpdk", "eal", "id", "ip", "ipv4", "ipv6", "irq", "mac", "mtu", "nic", "numa", "os"),
        *("pci", "ram", "rps", "rss", "tsc", "udp", "vm", "xdp"),
    }
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One row: text, or lines of code, or further facts below it."""

    label: str
    text: str | None = None
    code: tuple[str, ...] = ()
    children: tuple[Fact, ...] = ()


def facts(values: Mapping[str, Any]) -> tuple[Fact, ...]:
    """Every entry, in its order."""
    return tuple(_fact(str(name), value) for name, value in values.items())


def columns(hosts: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]:
    """Facts of hosts side by side: the hosts, and rows of (label, a text for each). Equal hosts share a column."""
    merged: dict[str, dict[str, str]] = {}
    for name, values in hosts.items():
        flat = dict(_flat(values)) if isinstance(values, Mapping) else {"": plain("", values)}
        twin = next((other for other, known in merged.items() if known == flat), None)
        if twin is None:
            merged[name] = flat
        else:
            merged = {(f"{twin} and {name}" if key == twin else key): known for key, known in merged.items()}
    labels = dict.fromkeys(label for known in merged.values() for label in known)
    rows = tuple((label, tuple(known.get(label, "unknown") for known in merged.values())) for label in labels)
    return tuple(merged), rows


def label_of(name: str) -> str:
    """A name as a label: without its unit, words apart. Names of the kernel (net.ipv4.ip_forward) stay as they are."""
    if any(character in name for character in "./: ") or name.startswith("-"):
        return name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix) if name != suffix.lstrip("_") else name
    words = [word.upper() if word in _CAPITALS else word for word in name.split("_") if word]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def plain(name: str, value: object) -> str:
    """A single value as text; its unit is the end of its name."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        for suffix, text in _SUFFIXES.items():
            if name.endswith(suffix):
                return text(value)
        return str(value) if isinstance(value, int) else f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(plain(name, item) for item in value) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{label_of(str(key))} {plain(str(key), item)}" for key, item in value.items()) or "none"
    return str(value)


def _fact(name: str, value: object) -> Fact:
    label = label_of(name)
    if isinstance(value, Mapping) and value:
        return Fact(label, children=facts(value))
    if isinstance(value, list | tuple) and value:
        if all(isinstance(item, Mapping) for item in value):
            named = ((str(item.get("name", number)), item) for number, item in enumerate(value, start=1))
            return Fact(label, children=tuple(Fact(title, children=facts(item)) for title, item in named))
        if any(isinstance(item, str) and (" " in item or item.startswith("-")) for item in value):
            return Fact(label, code=_code_lines(value))
    return Fact(label, text=plain(name, value))


def _code_lines(items: Iterable[object]) -> tuple[str, ...]:
    """Arguments of one command stand on one line, commands on a line each."""
    texts = [str(item) for item in items]
    return (" ".join(texts),) if any(text.startswith("-") for text in texts) else tuple(texts)


def _flat(values: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        label = f"{above}, {label_of(str(name))}" if above else label_of(str(name))
        if isinstance(value, Mapping) and value and len(value) > 1:
            yield from _flat(value, label)
        else:
            yield label, plain(str(name), value)


def _bytes(value: float) -> str:
    for size, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{whole(value)} B"


def _hertz(value: float) -> str:
    return f"{value / 1e9:.3f} GHz" if value >= 1e9 else f"{value / 1e6:.4g} MHz"


# The longest first: `_frames_per_s` also ends with `_s`.
_SUFFIXES: Mapping[str, Callable[[float], str]] = MappingProxyType(
    {
        "_frames_per_s": format_rate,
        "_bits_per_s": format_bits_per_s,
        "_percent": lambda value: f"{significant(value)} %",
        "_frames": lambda value: f"{whole(value)} frames",
        "_bytes": _bytes,
        "_mib": lambda value: f"{value:g} MiB",
        "_hz": _hertz,
        "_ns": lambda value: f"{whole(value)} ns",
        "_ms": lambda value: f"{value:g} ms",
        "_s": format_duration_s,
    }
)
