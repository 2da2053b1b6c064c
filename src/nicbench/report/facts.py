"""What a plan discloses, prepared for display: each option once, choices in words, no directories of the machine."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Final

from nicbench.core.described import NOTHING, DescribedPlugin, OneLine, Shape, Unit, shape_of, words_of
from nicbench.core.frozen import frozen
from nicbench.core.plan import Plan
from nicbench.core.registry import find
from nicbench.core.traffic import Traffic
from nicbench.core.units import (
    format_bits_per_s,
    format_digits,
    format_duration_s,
    format_rate,
    format_ratio,
    uncapitalise,
)
from nicbench.report.numbers import UNKNOWN, whole

_HIDDEN = ("--runs", "--output", "-o")  # where a run was put says nothing of what was measured


_MEASURED = frozenset({"clock", "eal_arguments"})
"""Properties of the tester that differ each time it starts."""


_ENDPOINTS = "endpoints"


def shares_cores(plan: Plan) -> bool:
    """Returns whether tester and DUT share a CPU, or have hyperthreads of one physical core."""
    return bool(plan.cores.get("shared") or plan.cores.get("halved_cores"))


def of_configurations(plan: Plan, *parts: str) -> tuple[tuple[str, Plan], ...]:
    """Returns one plan for each distinct content of ``parts``, with the names of its configurations; "" where all plans
    are alike.
    """
    found: list[tuple[list[str], Plan]] = []
    for each in plan.each:
        names = next((names for names, other in found if _content(other, parts) == _content(each, parts)), None)
        if names is None:
            found.append(([each.configuration], each))
        else:
            names.append(each.configuration)
    return tuple(("" if len(found) == 1 else ", ".join(names), each) for names, each in found)


def _content(plan: Plan, parts: Sequence[str]) -> list[Any]:
    found = [getattr(plan, part) for part in parts]
    return [_settings(each) if isinstance(each, dict) else each for each in found]


def _settings(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in _MEASURED}


def differing(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of ``other`` that ``first`` has otherwise, beneath the keys that lead to them; what ``other``
    lacks is "not given".
    """
    found: dict[str, Any] = {key: "not given" for key in first if key not in other}
    for key, value in other.items():
        had = first.get(key)
        if value != had:
            found[key] = _differing(had, value)
    return found


def _differing(had: Any, value: Any) -> Any:
    match had, value:
        case Mapping(), Mapping():
            return differing(had, value)
        case [Mapping(), *_], [Mapping(), *_] if len(had) == len(value):
            return [_differing(*pair) for pair in zip(had, value, strict=True)]
    return value


def direction(way: Mapping[str, Any], traffic: Mapping[str, Any]) -> dict[str, Any]:
    """Returns how frames of a direction are addressed, without what holds for all traffic."""
    return {name: value for name, value in way.items() if value is not False and (name, value) not in traffic.items()}


def dut(plan: Plan) -> dict[str, Any]:
    """Returns what the DUT disclosed, without ports that its commands describe; what it did for IPv6 only where frames
    may have it.
    """
    shown = plan.dut_disclosure or plan.dut
    shown = {name: value for name, value in shown.items() if not (name == "ports" and shown.get("commands"))}
    match shown.get("ipv6"), plan.traffic.get("ip"):
        case {"settings": _, "commands": _}, 4:
            shown["ipv6"] = "set up as well, not used"
        case {"settings": settings, "commands": commands}, _:
            both = {"settings": {**shown["settings"], **settings}, "commands": [*shown["commands"], *commands]}
            shown = {**shown, **both, "ipv6": True}
    return shown


def lab(plan: Plan) -> dict[str, Any]:
    """Returns options and facts of the lab in one mapping; a fact that repeats an option is left out."""
    options = dict(plan.lab or {})
    facts = {name: value for name, value in plan.facts.items() if not (name == "lab" and value == options.get("kind"))}
    # The pictures have the links; the testbed of workloads has a table of its own.
    facts = {name: value for name, value in facts.items() if name not in (_ENDPOINTS, "links", "namespaces")}
    return in_bits({**options, **facts}) if _ENDPOINTS in plan.facts else {**options, **facts}


def in_bits(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of workloads with names that carry their units: rates in bits per second,
    windows in bytes.
    """
    names = {"rate": "rate_bits_per_s", "window": "window_bytes"}
    return {names.get(name, name): value for name, value in options.items()}


XDP: Final = "xdp"
"""The driver of a tester whose frames programs in the kernel make and judge."""

_DPDK_OPTIONS: Final = frozenset(
    {"huge_pages", "memory", "transmit_descriptors", "receive_descriptors", "send_buffer", "timestamps"}
)


def tester(plan: Plan) -> dict[str, Any]:
    """Returns what is disclosed of the tester: a program by its name without the path; a worker CPU that nobody
    asked for as the one that was chosen, and such a driver with the reason.
    """
    shown = dict(plan.tester)
    command = shown.get("command")
    if isinstance(command, list | tuple) and command:
        shown["command"] = [PurePath(str(command[0])).name, *command[1:]]
        if shown["command"] == [(shown.get("engine") or {}).get("engine")]:
            del shown["command"]
    options = shown.get("options")
    if isinstance(options, Mapping):
        repeated = [name for name, value in shown.items() if options.get(name.removesuffix("_s"), shown) == value]
        shown = {name: value for name, value in shown.items() if name not in repeated}
    worker = plan.cores.get("worker")
    if isinstance(options, Mapping) and "worker_cpu" in options and options["worker_cpu"] is None:
        chosen = "chosen" if worker is None else f"chosen: CPU {worker}"
        shown["options"] = {**options, "worker_cpu": chosen}
    because = shown.pop("driver_because", None)
    if isinstance(shown.get("options"), Mapping):
        shown["options"] = asked_options(_of_driver(shown["options"], because))
    return shown


def _of_driver(options: Mapping[str, Any], because: object) -> dict[str, Any]:
    """Returns options with the driver that the run chose and why; programs in the kernel have no use of DPDK's."""
    driver = options.get("driver")
    known = {name: value for name, value in options.items() if driver != XDP or name not in _DPDK_OPTIONS}
    return known if because is None else {**known, "driver": f"chosen: {driver} ({because})"}


def asked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options that somebody asked for, without unset and empty ones."""
    shown = {
        name: asked_options(value) if isinstance(value, Mapping) else value
        for name, value in options.items()
        if value is not None
    }
    return {name: value for name, value in shown.items() if value not in ({}, [], ())}


def command(plan: Plan) -> tuple[str, ...]:
    """Returns the command as it can be repeated on another machine: the name of the program, without the place of its
    output.
    """
    shown: list[str] = []
    words = iter(plan.command)
    for word in words:
        if word in _HIDDEN:
            next(words, None)
        elif not word.startswith(("--runs=", "--output=")):
            shown.append(word if shown else PurePath(word).name)
    return tuple(shown)


def threshold_why(why: str, gap_floor_ns: int | None) -> str:
    """Returns the reason for a threshold, with the gap floor written as a time."""
    if gap_floor_ns is None:
        return why
    return why.replace("over the gap floor", f"longer than {gap_floor_ns / 1e6:g} ms")


def cpu_mask(mask: str) -> str:
    """Returns a CPU mask of the kernel, hexadecimal in groups of eight digits, with its CPUs: "mask 2 (CPU 1)"."""
    try:
        bits = int(mask.replace(",", ""), 16)
    except ValueError:
        return mask
    cpus = [str(cpu) for cpu in range(bits.bit_length()) if bits >> cpu & 1]
    named = f"CPU{'s' if len(cpus) > 1 else ''} {', '.join(cpus)}" if cpus else "off"
    return f"mask {mask} ({named})"


Shapes = Mapping[str, Shape]

_FACTS: Final = "nicbench.system.inventory.facts"
_METHODS: Final = "nicbench.methods"
_ITEMS: Final = "nicbench.tuning.items"
_LABS: Final = "nicbench.testbed.labs"
_DUTS: Final = "nicbench.testbed.duts"
_TESTERS: Final = "nicbench.testbed.testers"


@functools.cache
def inventory_shapes() -> Shapes:
    """Returns the shape of each fact of inventory.json."""
    return MappingProxyType({kind: shape_of(fact.shape) for kind, fact in find(_FACTS, DescribedPlugin).items()})


def method_shapes(kind: str) -> Shapes:
    """Returns the shapes of the options of a method."""
    return _options(_METHODS, kind)


def item_shapes(kind: str) -> Shapes:
    """Returns the shapes of the values of a tuning item."""
    return _options(_ITEMS, kind)


def lab_shapes(plan: Plan) -> Shapes:
    """Returns the shapes of the options of the plan's lab."""
    return _of_choice(_LABS, plan.lab)


def dut_shapes(plan: Plan) -> Shapes:
    """Returns the shapes of the options of the plan's DUT."""
    return _of_choice(_DUTS, plan.dut)


def tester_shapes(plan: Plan) -> Shapes:
    """Returns the shapes of the options of the plan's tester, which the plan also discloses under ``options``."""
    options = Shape(label="Options, as asked for", fields=_of_choice(_TESTERS, plan.tester))
    return MappingProxyType({**options.fields, "options": options})


@functools.cache
def traffic_shapes() -> Shapes:
    """Returns the shapes of the section ``traffic``; a plan has the streams of that section by their names."""
    fields = shape_of(Traffic).fields
    return MappingProxyType({**fields, "streams": Shape(entries=fields["streams"])})


def with_kind(shape: Shape, value: Mapping[str, Any]) -> Shape:
    """Returns the shape of a choice among plug-ins with the options of the plug-in that ``value`` chooses."""
    kind = value.get("kind")
    if shape.plugins is None or not isinstance(kind, str):
        return shape
    return replace(shape, fields={**_options(shape.plugins, kind), **shape.fields})


def _of_choice(package: str, chosen: Mapping[str, Any] | None) -> Shapes:
    kind = (chosen or {}).get("kind")
    return _options(package, kind) if isinstance(kind, str) else NOTHING.fields


@functools.cache
def _options(package: str, kind: str) -> Shapes:
    found = find(package, DescribedPlugin).get(kind)
    return NOTHING.fields if found is None else shape_of(found.Options).fields


_ROLES: Final = frozenset({"dut", "peer", "tester"})
_MASKS: Final = Shape(unit=Unit.CPU_MASK, one_line=OneLine(), entries=Shape(unit=Unit.CPU_MASK))
_UNDECLARED: Final = MappingProxyType(
    {
        "aggregates": Shape(entries=NOTHING),
        "bus": Shape(is_everywhere=False),
        "commands": Shape(entries=NOTHING),
        "dut": Shape(label="DUT"),
        "peer": Shape(label="Second tester"),
        "firmware": Shape(is_everywhere=False),
        "halved_cores": Shape(label="Physical cores of which tester and DUT have a hyperthread each"),
        "hz": Shape(label="Frequency", unit=Unit.HERTZ),
        "housekeeping": Shape(label="CPUs kept for other work"),
        "numa_node": Shape(is_everywhere=False),
        "options": Shape(label="Options, as asked for"),
        "reasons_null": Shape(label="Why a fact is unknown"),
        "rps_cpus": _MASKS,
        "receive_packet_steering": _MASKS,
        "shared": Shape(label="Tester and DUT share a CPU"),
        "tester_gro": Shape(label="Tester's GRO"),
        "dut_gro": Shape(label="DUT's GRO"),
        "transmit_budget_frames": Shape(is_everywhere=False),
        "versions": Shape(entries=NOTHING),
        "worker": Shape(label="Tester's CPU"),
        "xdp_program": Shape(is_everywhere=False),
    }
)
"""The shapes of what testers, labs and DUTs disclose in ``tester``, ``facts``, ``cores`` and ``dut_disclosure`` of
plan.json.
"""


Rows = tuple[tuple[str, tuple[str, ...]], ...]


@frozen
class Fact:
    """One row: a text, lines of code, further facts below it, or things side by side (``heads`` and ``rows``)."""

    label: str
    text: str | None = None
    code: tuple[str, ...] = ()
    children: tuple[Fact, ...] = ()
    heads: tuple[str, ...] = ()
    rows: Rows = ()


def facts(values: Mapping[str, Any], shapes: Shapes = MappingProxyType({})) -> tuple[Fact, ...]:
    """Returns a fact for every entry, in order and two levels deep. What lies deeper is named by its path, because a
    phone is narrow.
    """
    return tuple(_fact(str(name), value, _shape(shapes, str(name))) for name, value in values.items())


def columns(hosts: Mapping[str, Any], named: Callable[[str], str] = str) -> tuple[tuple[str, ...], Rows]:
    """Returns facts of hosts side by side: the hosts, and rows of (label, a text for each host). Hosts with equal facts
    share a column.
    """
    return _columns(hosts, Shape(fields=inventory_shapes()), named)


def _columns(hosts: Mapping[str, Any], shape: Shape, named: Callable[[str], str] = str) -> tuple[tuple[str, ...], Rows]:
    merged: dict[str, dict[str, str]] = {}
    for name, values in hosts.items():
        flat = dict(_flat(values, shape)) if isinstance(values, Mapping) else {"": plain("", values)}
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
    """Returns the rows without those that are unknown for every host; another row says why a fact is unknown."""
    return tuple(row for row in rows if not {*row[1]} <= {UNKNOWN, "unknown"})


def spans(texts: Sequence[str | None]) -> tuple[tuple[str | None, int], ...]:
    """Returns each text with the number of times that it occurs in succession."""
    return tuple((text, len(tuple(alike))) for text, alike in groupby(texts))


def label_of(name: str, shape: Shape | None = None) -> str:
    """Returns the label of a value: the declared one, or its name in words."""
    return (shape or _shape({}, name)).label or words_of(name)


def written_text(written: Mapping[str, Any], shape: Shape, between: str = ", ") -> str:
    """Returns what somebody wrote on one line, with labels and units; text stays unchanged."""
    shape = with_kind(shape, written)
    return between.join(
        f"{uncapitalise(_entry(str(name), shape))} {_written_value(str(name), value, _part(shape, str(name)))}"
        for name, value in written.items()
    )


def _written_value(name: str, value: object, shape: Shape) -> str:
    if isinstance(value, Mapping):
        return written_text(value, shape, between="; ")
    if isinstance(value, list):
        return " and ".join(_written_value(name, each, shape) for each in value) or "none"
    if isinstance(value, str):
        return shape.words.get(value, value)
    return "none" if value is None else plain(name, value, shape)


def host_name(name: str) -> str:
    """Returns the name of a host; a host that nicbench names by its role is written "DUT" or "Tester, fast"."""
    role, comma, configuration = name.partition(",")
    return f"{label_of(role)}{comma}{configuration}" if role in _ROLES else name


def plain(name: str, value: object, shape: Shape | None = None) -> str:
    """Returns a value on one line, in its declared unit or else in the unit that its name ends with."""
    shape = shape or _shape({}, name)
    if value is None:
        return "unknown" if shape.is_everywhere else UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if unit := shape.unit or Unit.of_name(name):
            return _TEXTS[unit](value)
        return str(value) if isinstance(value, int) else format_digits(value, 6)
    if isinstance(value, list | tuple):
        return _join_texts([plain(name, item, shape) for item in value]) or "none"
    if isinstance(value, Mapping):
        shape, way = with_kind(shape, value), shape.one_line or OneLine()
        entries = ((_entry(str(key), shape), _part(shape, str(key)), item) for key, item in value.items())
        texts = (way.entry.format(name=label, value=plain(label, item, part)) for label, part, item in entries)
        return way.between.join(texts) or "none"
    words = str(value)
    if words in shape.words:
        return shape.words[words]
    if shape.unit is Unit.CPU_MASK:
        return cpu_mask(words)
    return words.removeprefix("DPDK ") if name == "dpdk" else words


def _shape(shapes: Shapes, name: str) -> Shape:
    """Returns the declared shape of a name; for an undeclared name, a shape with the unit at the end of that name."""
    return shapes.get(name) or _UNDECLARED.get(name) or Shape(unit=Unit.of_name(name))


def _part(shape: Shape, name: str) -> Shape:
    """Returns the declared shape of one entry of a mapping."""
    return shape.entries or _shape(shape.fields, name)


def _entry(name: str, shape: Shape) -> str:
    """Returns the label of one entry of a mapping; names that nicbench did not choose stay as they are."""
    return host_name(name) if shape.entries is not None else label_of(name, _part(shape, name))


def _fact(name: str, value: object, shape: Shape) -> Fact:
    label = label_of(name, shape)
    if isinstance(value, Mapping) and value:
        shape = with_kind(shape, value)
        if shape.unit is Unit.CPU_MASK:
            return Fact(
                label, children=tuple(Fact(str(inner), text=cpu_mask(str(mask))) for inner, mask in value.items())
            )
        return Fact(label, children=tuple(Fact(inner, text=text) for inner, text in _merge_ports(_flat(value, shape))))
    if isinstance(value, list | tuple) and value:
        if all(isinstance(item, Mapping) for item in value):
            heads, rows = _columns(
                {str(item.get("name", number)): _drop_name(item) for number, item in enumerate(value, 1)}, shape
            )
            return Fact(label, heads=heads, rows=known_rows(rows))
        if any(isinstance(item, str) and (" " in item or item.startswith("-")) for item in value):
            return Fact(label, code=_code_lines(value))
    return Fact(label, text=plain(name, value, shape))


def _drop_name(item: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an entry without its name, which stands above it."""
    return {name: value for name, value in item.items() if name != "name"}


def _code_lines(items: Iterable[object]) -> tuple[str, ...]:
    """Returns lines of code: the arguments of one command on one line, or several commands on a line each."""
    texts = [str(item) for item in items]
    return (" ".join(texts),) if any(text.startswith("-") for text in texts) else tuple(texts)


def _merge_ports(rows: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """Yields the rows; a sysctl that several ports have with one value is one row: net/ipv4/conf/d0, d1/rp_filter."""
    merged: dict[tuple[str, str, str], list[str]] = {}
    for label, text in rows:
        before, conf, after = label.partition("/conf/")
        port, slash, setting = after.partition("/")
        merged.setdefault((before + conf, slash + setting, text), []).append(port)
    for (before, after, text), ports in merged.items():
        yield f"{before}{', '.join(ports)}{after}", text


def _flat(values: Mapping[str, Any], shape: Shape, above: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        part = _part(shape, str(name))
        label = _entry(str(name), shape)
        if above and not part.is_alone:
            label = f"{above}, {label if shape.entries is not None else uncapitalise(label)}"
        if isinstance(value, Mapping) and len(value) > 1 and part.one_line is None:
            yield from _flat(value, with_kind(part, value), label)
        else:
            yield label, plain(str(name), value, part)


def _join_texts(texts: list[str]) -> str:
    """Returns texts in a row; a unit that all share is written once: "64, 128, 256 bytes"."""
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
            return f"{format_digits(value / size, 4)} {unit}"
    return f"{whole(value)} bytes"


def _hertz(value: float) -> str:
    return f"{value / 1e9:.3f} GHz" if value >= 1e9 else f"{format_digits(value / 1e6, 4)} MHz"


_TEXTS: Final[Mapping[Unit, Callable[[float], str]]] = MappingProxyType(
    {
        Unit.FRAMES_PER_S: format_rate,
        Unit.BITS_PER_S: format_bits_per_s,
        Unit.RATIO: format_ratio,
        Unit.PERCENT: lambda value: f"{format_digits(value)} %",
        Unit.FRAMES: lambda value: f"{whole(value)} frames",
        Unit.BYTES: _bytes,
        Unit.MEGATRANSFERS_PER_S: lambda value: f"{whole(value)} MT/s",
        Unit.MICROSECONDS: lambda value: f"{value:g} µs",
        Unit.MEBIBYTES: lambda value: f"{value:g} MiB",
        Unit.HERTZ: _hertz,
        Unit.NANOSECONDS: lambda value: f"{whole(value) if value >= 100 else format_digits(value)} ns",
        Unit.SHARE: lambda value: f"{format_digits(value * 100)} %",
        Unit.MILLISECONDS: lambda value: f"{value:g} ms",
        Unit.SECONDS: format_duration_s,
        Unit.CPU_MASK: lambda value: cpu_mask(f"{value:g}"),
    }
)
