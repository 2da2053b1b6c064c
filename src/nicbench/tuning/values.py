"""What a value under /proc or /sys is, whatever way the kernel prints it. Pure: text in, answer out."""

from __future__ import annotations

import json
import re

from nicbench.core.tuning import Values

_SELECTED = re.compile(r"\[([^\]\s]+)\]")
_CPU_MASK_PATH = re.compile(r"(_cpus|_rxqs|smp_affinity|default_smp_affinity)$")
_HEX_MASK = re.compile(r"[0-9a-fA-F,]+")


def plain_value(text: str) -> str:
    """The value as one would write it: single spaces, and of ``always [madvise] never`` the selected word."""
    words = " ".join(text.split())
    selected = _SELECTED.findall(words)
    return selected[0] if len(selected) == 1 and " " in words else words


def same_value(path: str, one: str, other: str) -> bool:
    """Whether two texts of the same file mean the same. Masks of CPUs are read back padded and with commas."""
    first, second = plain_value(one), plain_value(other)
    if first == second:
        return True
    if _CPU_MASK_PATH.search(path) and _HEX_MASK.fullmatch(first) and _HEX_MASK.fullmatch(second):
        return _mask(first) == _mask(second)
    return False


def cpu_mask(cpus: tuple[int, ...]) -> str:
    """The mask of these CPUs as the kernel takes it: groups of 32 bits in hex, the highest first."""
    number = sum(1 << cpu for cpu in set(cpus))
    groups = [f"{number & 0xFFFFFFFF:x}"]
    while number := number >> 32:
        groups[-1] = groups[-1].zfill(8)
        groups.append(f"{number & 0xFFFFFFFF:x}")
    return ",".join(reversed(groups))


def values_in_words(values: Values | None) -> str:
    """A setting in a line: ``rx 4096, tx 4096``."""
    if values is None:
        return "-"
    return ", ".join(f"{key} {value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items())


def _mask(text: str) -> int:
    return int("".join(group.zfill(8) for group in text.split(",")), 16)
