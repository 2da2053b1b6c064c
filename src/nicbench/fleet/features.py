"""What Slurm is told of a machine: its cards, drivers, speeds and kernel, and the cables to other machines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from nicbench.first_steps.cabling import Neighbour, find_neighbours
from nicbench.first_steps.ports import FoundPort, free_ports, ports_of_this_machine
from nicbench.stages.inventory import THIS_MACHINE, inventory_of

_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9_.+-]+")
_BRACKETS: Final = re.compile(r"\[([^\]]+)\]")


async def collect_features(name: str, cables_s: float) -> list[str]:
    """The features of this machine, which others know as ``name``; changes nothing.

    With ``cables_s`` every free port that is up sends test frames for so many seconds, and hears those of the ports of
    other machines that do the same at that time. NotReadyError without the right to do so.
    """
    ports = await ports_of_this_machine()
    facts = (await inventory_of(None, redact=False))[THIS_MACHINE]
    heard = find_neighbours([port.name for port in free_ports(ports) if port.is_up], name, cables_s) if cables_s else ()
    return features_of(name, facts, ports, heard)


def features_of(
    name: str, facts: Mapping[str, Any], ports: Iterable[FoundPort], heard: Iterable[Neighbour]
) -> list[str]:
    """The features of a machine, from its inventory, its ports, and the ports that it hears. Pure.

    Ports that lead out of the machine count for nothing: no test may use them.
    """
    usable = [port for port in ports if port.never is None]
    adapters = facts.get("pci_adapters") or {}
    found: dict[str, list[str | None]] = {
        "kernel": _kernels(facts),
        "card": [_card(adapters[port.bus]) for port in usable if port.bus in adapters],
        "driver": [port.driver for port in usable],
        "speed": [f"{port.speed_bits_per_s / 1e9:g}g" for port in usable if port.speed_bits_per_s],
        "cable": [
            *(_cable(f"{name}.{one.device}", f"{one.machine}.{one.port}") for one in heard),
            *(
                _cable(f"{name}.{port.name}", port.neighbour.replace(", port ", "."))
                for port in usable
                if port.neighbour
            ),
        ],
    }
    return [
        f"{feature}={value}"
        for feature, values in found.items()
        for value in dict.fromkeys(map(_as_value, values))
        if value
    ]


def _kernels(facts: Mapping[str, Any]) -> list[str | None]:
    """The release, and its version alone: ``6.12.8-amd64`` and ``6.12``."""
    release = str((facts.get("kernel") or {}).get("release") or "")
    version = re.match(r"\d+\.\d+", release)
    return [release, *([version[0]] if version else [])]


def _card(adapter: Mapping[str, Any]) -> str | None:
    """The name of a card as it is called, which PCI's list has in brackets: ``MT27800 Family [ConnectX-5]``."""
    model = adapter.get("model") or adapter.get("id")
    named = _BRACKETS.search(str(model or ""))
    return named[1] if named else model


def _cable(one: str, other: str) -> str:
    """The same name for both ends of a cable."""
    return "--".join(sorted((one, other)))


def _as_value(text: str | None) -> str:
    return _NOT_ALLOWED.sub("-", text or "").strip("-").lower()
