"""Interrupts of an adapter: which they are (sysfs, ``/proc/interrupts``), and which CPUs take them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_ROW = re.compile(r"^\s*(\d{1,7}):(.*)$")
_MSI = re.compile(r"/msi_irqs/(\d{1,7})$")
_QUEUE = re.compile(
    r"(?:^|[^0-9a-z])(?:txrx|rxtx|txr|tx|rx|fp|slice|comp|input|output|ntfy-block|ntfy-blk|q|io|mana_q)"
    r"[-.@]?(\d{1,5})",
    re.IGNORECASE,
)
_ONLY_A_NUMBER = re.compile(r"\w*-(\d{1,5})")  # eth0-3 of sfc, mlx4-3 of mlx4_core
_NO_QUEUE = re.compile(r"(?:^|[^0-9a-z])(?:config|async|misc|ctrl|mgmnt|fdir|link|event|pages|oicr)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Interrupt:
    """One interrupt. ``queue`` is null where its name says none (link changes, management)."""

    number: int
    name: str
    queue: int | None


def parse_interrupts(text: str) -> dict[int, str]:
    """``/proc/interrupts``: number to name, the word after chip and trigger; the columns of counts are left out."""
    lines = text.splitlines()
    columns = sum(word.startswith("CPU") for word in lines[0].split()) if lines else 0
    found: dict[int, str] = {}
    for line in lines[1:]:
        if row := _ROW.match(line):
            words = row[2].split()[columns:]
            # "PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0"; several names are separated by commas.
            names = words[2:] if len(words) > 2 else words
            found[int(row[1])] = " ".join(names)
    return found


def numbers_of(paths: Iterable[str]) -> list[int]:
    """The numbers in paths of ``device/msi_irqs``."""
    return sorted({int(found[1]) for path in paths if (found := _MSI.search(path))})


def queue_of(name: str, device: str) -> int | None:
    """The queue in the name of an interrupt of ``device``: ``ens1f0-TxRx-3``, ``mlx5_comp3@pci:..``, ``eth0-fp-3``.

    What the interface is called says nothing: ``link1``, ``rx0``.
    """
    plain = _whole(device).sub("", name.partition("@")[0])
    if _NO_QUEUE.search(plain):
        return None
    if found := list(_QUEUE.finditer(plain)):
        return int(found[-1][1])
    alone = _ONLY_A_NUMBER.fullmatch(plain)
    return int(alone[1]) if alone else None


def interrupts_of_device(
    device: str, bus: str | None, msi: Iterable[int], names: Mapping[int, str]
) -> tuple[Interrupt, ...]:
    """Returns the interrupts of an interface by its PCI function, or by its name if the bus does not list them."""
    owned = set(msi)
    if not owned:
        ours = _whole(device)
        of_bus = re.compile(rf"@pci:{re.escape(bus)}$") if bus else None
        owned = {number for number, name in names.items() if ours.search(name) or (of_bus and of_bus.search(name))}
    known = ((number, names.get(number, "")) for number in sorted(owned))
    # An interrupt that is allocated and not requested has no name, and is nobody's.
    return tuple(Interrupt(number, name, queue_of(name, device)) for number, name in known if name)


def _whole(device: str) -> re.Pattern[str]:
    """Finds the name of an interface where it is not a part of a longer one."""
    return re.compile(rf"(?<![\w.]){re.escape(device)}(?![\w.])")
