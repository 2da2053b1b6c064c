"""How likely a setting that differs is to change results, and the text of its values."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cache
from itertools import takewhile
from typing import Any, Final

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
    return _cut(text, longest)


def shorten_apart(values: Sequence[Any], path: str, longest: int = LONGEST) -> tuple[str, ...]:
    """Returns values that differ as texts that do: of long ones that begin alike, the part around the difference."""
    whole = [shorten(value, path, sys.maxsize) for value in values]
    texts = tuple(_cut(text, longest) for text in whole)
    if len(set(texts)) == len(set(whole)):
        return texts
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*whole, strict=False))
    begin = max(0, sum(1 for _ in alike) - longest // 4)
    return tuple(_cut(f"…{text[begin:]}" if begin else text, longest) for text in whole)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _without_point_zero(value: Any) -> Any:
    """Returns the value with 500000 for 500000.0, also in lists and mappings: a reader need not know of floats."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, Mapping):
        return {name: _without_point_zero(each) for name, each in value.items()}
    return [_without_point_zero(each) for each in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class Importance:
    """How much a setting matters: ``rank`` counts from 1, the most important; ``why`` explains it to the reader."""

    rank: int
    why: str


# Patterns of ``subject.fact.field``, without the machine; the first that matches applies. `*` also matches dots.
_TABLE: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
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
