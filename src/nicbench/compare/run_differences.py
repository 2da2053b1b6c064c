"""How likely a setting that differs is to change results, and the text of its values."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from functools import cache
from itertools import takewhile
from typing import Any, Final, Literal

from nicbench.core.frozen import frozen
from nicbench.core.redaction import is_redacted
from nicbench.core.turn import DEFAULT
from nicbench.store.folder import RunFolder

NOT_RECORDED: Final = object()
"""Marks a value that a run does not record at all, as opposed to one that it records as unknown."""
LONGEST: Final = 160


def last_name_of(path: str) -> str:
    """Returns the last name of a path: two paths that share it, and their values, tell of one setting."""
    return path.rpartition(".")[2].rpartition("/")[2]


def shorten(value: Any, path: str, longest: int = LONGEST) -> str:
    """Returns a value as one line of text, cut where it is longer than ``longest`` characters."""
    if value is NOT_RECORDED:
        return "not tuned" if path.startswith("tuning.") else "not recorded"
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else json.dumps(_without_point_zero(value), ensure_ascii=False)
    return cut(text, longest)


def shorten_apart(values: Sequence[Any], path: str, longest: int = LONGEST) -> tuple[str, ...]:
    """Returns values that differ as texts that do: of long ones that begin alike, the part around the difference."""
    whole = [shorten(value, path, sys.maxsize) for value in values]
    texts = tuple(cut(text, longest) for text in whole)
    if len(set(texts)) == len(set(whole)):
        return texts
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*whole, strict=False))
    begin = max(0, sum(1 for _ in alike) - longest // 4)
    return tuple(cut(f"…{text[begin:]}" if begin else text, longest) for text in whole)


def cut(text: str, longest: int) -> str:
    """Returns at most ``longest`` characters of the text, the last of them an ellipsis where some are left out."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _without_point_zero(value: Any) -> Any:
    """Returns the value with 500000 for 500000.0, also in lists and mappings: a reader need not know of floats."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, Mapping):
        return {name: _without_point_zero(each) for name, each in value.items()}
    return [_without_point_zero(each) for each in value] if isinstance(value, list | tuple) else value


@frozen
class Importance:
    """How much a setting matters: ``rank`` counts from 1, the most important; ``why`` explains it to the reader."""

    rank: int
    why: str


# Patterns of ``subject.fact.field``, without the machine; the first that matches applies. `*` also matches dots.
_TABLE: Final = (
    (("dut", "dut.*"), "another DUT, or other options of it"),
    (("tuning", "tuning.*"), "set for the test by its tuning"),
    (("lab", "lab.*", "testbed.*", "cores.*"), "the testbed: what is wired, and which CPU does what"),
    (("traffic", "traffic.*", "addressing", "addressing.*"), "other frames"),
    (("tester", "tester.kind", "tester.options.*", "tester.ports*"), "another tester, or other options of it"),
    (("tests", "tests.*", "runs"), "measured in another way"),
    (("thresholds*", "seed"), "judged or drawn otherwise"),
    (("declared*",), "declared in the bench file"),
    (("hypervisors*",), "set in the hypervisor"),
    (("inventory.bios_settings.attributes*",), "a BIOS setting"),
    (
        ("inventory.core_clock_policy*", "inventory.power_policy*", "inventory.tuned*"),
        "the core clock follows it",
    ),
    (("inventory.cpu", "inventory.cpu.*", "inventory.smt*", "inventory.hypervisor*"), "another processor, or its CPUs"),
    (("inventory.mitigations*",), "mitigations cost every system call and indirect branch"),
    (("inventory.idle_states*",), "waking from a C-state costs latency"),
    (
        ("inventory.drivers*", "inventory.interfaces.*.driver*", "inventory.pci_adapters*", "inventory.*firmware*"),
        "another adapter, driver or firmware",
    ),
    (("inventory.devlink*",), "settings of the adapter's firmware"),
    (
        ("inventory.*offloads*", "inventory.coalescing*", "inventory.private_flags*", "inventory.energy_eff*"),
        "what the adapter does to frames and interrupts",
    ),
    (
        ("inventory.*rings*", "inventory.*channels*", "inventory.receive_hashing*", "inventory.flow_*"),
        "queues, their length, and what fills them",
    ),
    (
        ("inventory.link_settings*", "inventory.forward_error*", "inventory.pci_express*", "inventory.modules*"),
        "the link and the slot of the card",
    ),
    (("inventory.interfaces*", "inventory.aggregates*", "inventory.virtual_functions*"), "the interfaces of the test"),
    (
        ("inventory.interrupts*", "inventory.rps*", "inventory.irqbalance*", "inventory.default_interrupt*"),
        "which CPU handles frames",
    ),
    (("inventory.numa*", "inventory.iommu*", "inventory.memory_modules*"), "the way between card, memory and CPU"),
    (("inventory.kernel*",), "another kernel, or other boot parameters"),
    (
        ("inventory.sysctls*", "inventory.queueing*", "inventory.huge_pages*", "inventory.data_centre*"),
        "settings of the kernel's network and memory",
    ),
    (("inventory.firewall*", "inventory.security_modules*"), "code in the path of every frame or system call"),
    (("inventory.clock_source*",), "reading the clock may be slow"),
    (("software.*", "tester.*", "inventory.software.nicbench", "inventory.software.dpdk"), "the tester's own version"),
    (
        ("inventory.operating_system*", "inventory.last_updates*", "inventory.software*"),
        "versions of what surrounds the path",
    ),
    (
        (
            "inventory.memory*",
            "inventory.storage*",
            "inventory.drives*",
            "inventory.fans*",
            "inventory.power_supplies*",
        ),
        "the rest of the machine",
    ),
)
_OTHERWISE: Final = Importance(len(_TABLE) + 1, "not known to matter")

_VOLATILE: Final = (
    *("plan.*", "testbed.namespaces*", "*.run_id", "*.wall_time", "*.pid", "*.estimate_s", "*.ifindex"),
    *("tester.clock*", "tester.eal_arguments*", "tester.command*", "dut.disclosure.pid"),
    *("inventory.memory.available_bytes", "inventory.huge_pages.free_pages", "inventory.fans.speed_per_minute*"),
    *("inventory.*temperature*", "inventory.*uptime*", "inventory.*_dbm*", "inventory.*voltage*", "inventory.*bias_*"),
    *("inventory.*counters*", "inventory.*statistics*", "inventory.*current_hz*", "inventory.*xdp*.id"),
    *("inventory.interrupts.*.number", "inventory.queueing.*.handle", "inventory.queueing.*.parent"),
)
"""Patterns of facts that differ at every reading and are not settings."""

_IDENTITY: Final = (
    *("inventory.*serial*", "inventory.*uuid*", "inventory.*asset_tag", "inventory.*.mac", "inventory.*macs*"),
    *("inventory.*guid*", "inventory.bios_settings.identity*", "addressing*mac*", "tester.*mac*"),
)
"""Patterns of facts that identify one specimen of a device and not its type."""


def importance_of(path: str) -> Importance:
    """Returns the importance of a difference at this path."""
    for rank, (patterns, why) in enumerate(_TABLE, 1):
        if _compile(patterns).fullmatch(path):
            return Importance(rank, why)
    return _OTHERWISE


def is_volatile(path: str) -> bool:
    """Whether the fact at this path differs even between two runs with the same settings."""
    return _compile(_VOLATILE).fullmatch(path) is not None


def is_identity(path: str) -> bool:
    """Whether the fact identifies one specimen; another specimen of the same type gives the same results."""
    return _compile(_IDENTITY).fullmatch(path) is not None


@cache
def _compile(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{translate(pattern)})" for pattern in patterns))


_REASONS: Final = "reasons_null"
_STATES: Final = ("during", "asked")
"""State of a tuned setting: what was read during the test, or what was asked for where nothing was read."""


def read_settings(folder: RunFolder, configuration: str | None = None) -> dict[str, dict[str, Any]]:
    """Returns all settings that a run discloses, by machine; the run itself has the key "".

    They are the resolved bench file, tuning, inventory, map of cores and versions. If the run compares configurations,
    each configuration has a key of its own; with ``configuration``, only that one is returned, under "".
    """
    plan = folder.plan()
    found: dict[str, dict[str, Any]] = {"": {}}
    for each in plan.each if plan is not None else ():
        if configuration is not None and plan is not None and plan.compared and each.configuration != configuration:
            continue
        place = each.configuration if plan is not None and plan.compared and configuration is None else ""
        content = each.model_dump(mode="json")
        found.setdefault(place, {}).update(
            {
                **{name: content[name] for name in ("lab", "dut", "cores", "traffic", "addressing", "tester", "seed")},
                "dut": {**content["dut"], "disclosure": content["dut_disclosure"]},
                "tests": {test["name"]: {**test["options"], "method": test["method"]} for test in content["tests"]},
                "thresholds": {row["name"]: row["value"] for row in content["thresholds"]},
                "runs": plan.runs.words if plan is not None else "",
                "declared": content["declared"],
                "hypervisors": content["hypervisors"],
                "testbed": _not_of_the_lab(content["facts"], content["lab"]),
                "plan": {"command": content["command"]},
                "software": {"nicbench": content["nicbench_version"]},
            }
        )
    inventory = folder.read_json("inventory.json")
    names = plan.compared if plan is not None and configuration is not None else ()
    for host, facts in inventory.items() if isinstance(inventory, Mapping) else ():
        machine, _, of = str(host).rpartition(", ")
        if of in names and of != configuration:
            continue
        found.setdefault(machine if of in names else host, {})["inventory"] = _drop_reasons(facts)
    for host, settings in _tuning_of(folder, configuration).items():
        found.setdefault(host, {})["tuning"] = settings
    return found


def _not_of_the_lab(facts: Mapping[str, Any], lab: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the facts of a testbed but those that only repeat an option of its lab, which is a setting already."""
    options = lab or {}
    return {name: value for name, value in facts.items() if name not in options or options[name] != value}


def index_by_name(value: Any) -> dict[str, Any] | None:
    """Maps the items of a list of mappings by their names, an unnamed one by its number; None for any other value."""
    if not isinstance(value, list) or not value or not all(isinstance(item, Mapping) for item in value):
        return None
    return {str(item.get("name", number)): item for number, item in enumerate(value, 1)}


def _drop_reasons(facts: Any) -> Any:
    """Removes the reasons why facts are unknown, because they add no information to be compared."""
    if isinstance(facts, Mapping):
        return {name: _drop_reasons(value) for name, value in facts.items() if name != _REASONS}
    return [_drop_reasons(value) for value in facts] if isinstance(facts, list) else facts


def _tuning_of(folder: RunFolder, only: str | None) -> dict[str, dict[str, Any]]:
    """Returns the settings of tuning.json by machine, item and interface, each with the state that was reached."""
    content = folder.read_json("tuning.json")
    rows = content.get("settings", []) if isinstance(content, Mapping) else []
    found: dict[str, dict[str, Any]] = {}
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, Mapping) or "item" not in row:
            continue
        configuration = row.get("configuration") or DEFAULT
        host = str(row.get("host") or "")
        if configuration not in (DEFAULT, only):
            if only is not None:
                continue
            host = f"{host}, {configuration}"
        state = next((row[name] for name in _STATES if row.get(name) is not None), None)
        item = found.setdefault(host, {}).setdefault(str(row["item"]), {})
        item[str(row.get("device") or "machine")] = state if state is not None else row.get("outcome")
    return found


Kind = Literal["settings", "identities", "volatile", "redacted"]
_TUNING: Final = "tuning"


@frozen
class Difference:
    """One value that differs: its path without the machine, its places, its values, and why it matters.

    ``values`` are in the order of the runs: ``NOT_RECORDED`` where a run does not mention it at all, and None where the
    run says that it is unknown. ``places`` are the machines or configurations in which it differs; it is empty for what
    the run itself is set to.
    """

    path: str
    places: tuple[str, ...]
    values: tuple[Any, ...]
    rank: int
    why: str


@frozen
class Differences:
    """Differences between two runs: ``settings``, most important first, and by kind what is not a setting."""

    settings: tuple[Difference, ...]
    identities: tuple[Difference, ...]
    volatile: tuple[Difference, ...]
    redacted: tuple[Difference, ...]
    lacking: tuple[str, ...]
    """Sentences about files that one of the runs, or both, do not have."""

    @property
    def equal(self) -> bool:
        """Whether both runs were made in the same way with the same settings, as far as both disclose them."""
        return not self.settings and not self.lacking


def find_differences(one: RunFolder, other: RunFolder) -> Differences:
    """Finds the differences in the resolved bench file, tuning, inventory, map of cores and versions."""
    rows = differences_between(_lay_beside(read_settings(one), read_settings(other), one, other))
    return Differences(**rows, lacking=tuple(_find_lacking(one, other)))


def differences_between(told: Sequence[Mapping[str, Any]]) -> dict[Kind, tuple[Difference, ...]]:
    """Returns what differs between the settings of runs, as ``read_settings`` has them, the most important first."""
    found: dict[tuple[str, str], tuple[tuple[Any, ...], list[str]]] = {}
    for place in dict.fromkeys(place for each in told for place in each):
        for path, values in _find_differences([each.get(place, NOT_RECORDED) for each in told], ""):
            found.setdefault((path, repr(values)), (values, []))[1].append(place)
    rows: dict[Kind, list[Difference]] = {"settings": [], "identities": [], "volatile": [], "redacted": []}
    for (path, _), (values, places) in found.items():
        known = importance_of(path)
        row = Difference(path, tuple(filter(None, places)), values, known.rank, known.why)
        rows[_kind_of(path, values)].append(row)
    return {kind: tuple(sorted(each, key=lambda row: (row.rank, row.path, row.places))) for kind, each in rows.items()}


def _lay_beside(
    says: dict[str, Any], others: dict[str, Any], one: RunFolder, other: RunFolder
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Lays the settings of a run without configurations beside each configuration of a run that compares some."""
    names, other_names = (plan.compared if (plan := folder.plan()) is not None else () for folder in (one, other))
    if names and not other_names:
        return says, _repeat(others, names, says)
    return (_repeat(says, other_names, others), others) if other_names and not names else (says, others)


def _repeat(says: dict[str, Any], names: Sequence[str], beside: Mapping[str, Any]) -> dict[str, Any]:
    """Repeats for each configuration what a run says of itself, and of a machine that the other has in each of them."""
    found: dict[str, Any] = {"": {}}
    for place, settings in says.items():
        of_each = [f"{place}, {name}" for name in names] if place else list(names) if settings else []
        known = of_each if not place else [each for each in of_each if each in beside]
        found.update(dict.fromkeys(known or [place], settings))
    return found


def _kind_of(path: str, values: Iterable[Any]) -> Kind:
    if is_volatile(path):
        return "volatile"
    if any(_has_token(value) for value in values):
        return "redacted"
    return "identities" if is_identity(path) else "settings"


def _has_token(value: Any) -> bool:
    return is_redacted(value if isinstance(value, str) else json.dumps(value) if value is not NOT_RECORDED else None)


def _find_lacking(one: RunFolder, other: RunFolder) -> Iterator[str]:
    names = ("plan.json", "inventory.json")
    for name in names:
        has = [(folder.path / name).is_file() for folder in (one, other)]
        if has[0] != has[1]:
            yield f"{(other if has[0] else one).run_id} has no {name}"
    if not any((folder.path / name).is_file() for folder in (one, other) for name in names):
        yield f"neither run has {' or '.join(names)}: how they were made is not known"


def _find_differences(values: Sequence[Any], path: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yields the leaves that differ between runs; where a run has nothing below a path, only that path."""
    first = values[0]
    if all(value is first or (value == first and type(value) is type(first)) for value in values[1:]):
        return
    # Lists each setting, even where a run has none.
    if not path or (path.startswith(_TUNING) and any(isinstance(value, Mapping) for value in values)):
        values = [{} if value is NOT_RECORDED else value for value in values]
    if all(isinstance(value, Mapping) for value in values):
        for name in dict.fromkeys(name for value in values for name in value):
            below = f"{path}.{name}" if path else str(name)
            yield from _find_differences([value.get(name, NOT_RECORDED) for value in values], below)
    elif all(index_by_name(value) is not None for value in values):
        yield from _find_differences([index_by_name(value) for value in values], path)
    else:
        yield path, tuple(values)
