"""Asks a host about XDP by two programs without dependencies, which its Python reads from stdin.

That works on every host (ssh, namespaces, containers) that has a Python, and copies nothing to it. A host without one
does not say, and the callers go by its kernel's version and its drivers.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from nicbench.core.errors import NicbenchError
from nicbench.hosts.base import Host
from nicbench.system.xdp import live_frames_trial, netdev_query

Kernel = tuple[int, int]
_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Flags:
    """What the kernel says of one interface; None is what it does not know of yet (Linux 6.3 to 6.7)."""

    features: int
    receive_metadata: int | None = None
    socket: int | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """Whether the kernel made a frame by XDP; None where nobody could try. ``reason`` is the kernel's."""

    works: bool | None
    reason: str = ""


async def ask_flags(host: Host) -> dict[str, Flags]:
    """The flags of every interface in the host's network namespace; empty where the kernel does not say."""
    return parse_flags(await _output_of(host, netdev_query))


async def ask_flags_within(host: Host, prefix: tuple[str, ...]) -> dict[str, Flags]:
    """As ``ask_flags``, by a command that runs another (``unshare --net ..``)."""
    return parse_flags(await _output_of(host, netdev_query, prefix))


def queues_command(host: Host) -> tuple[tuple[str, ...], str]:
    """The command by which the kernel says what each receive queue got, and its standard input."""
    return (*python_of(host), "queues"), _source_of(netdev_query)


async def try_live_frames(host: Host) -> Attempt:
    """Has the kernel make one frame, which the program that makes it drops."""
    return parse_attempt(await _output_of(host, live_frames_trial))


async def kernel_of(host: Host) -> Kernel | None:
    """The kernel's version, None where it cannot be read."""
    return parse_kernel(await host.read_file("/proc/sys/kernel/osrelease") or "")


def python_of(host: Host) -> tuple[str, ...]:
    """The command that runs a program from its stdin: our own Python where it is the same machine."""
    return (sys.executable if host.shares_files else "python3", "-I", "-")


async def _output_of(host: Host, program: ModuleType, prefix: tuple[str, ...] = ()) -> str:
    text = _source_of(program)
    try:
        return (await host.run((*prefix, *python_of(host)), input_text=text, timeout_s=_TIMEOUT_S, check=False)).stdout
    except NicbenchError:
        return ""


def _source_of(program: ModuleType) -> str:
    return Path(str(program.__file__)).read_text(encoding="utf-8")


def parse_flags(text: str) -> dict[str, Flags]:
    """Flags by interface of what ``netdev_query.py`` prints; empty where the kernel does not say."""
    return {
        name: Flags(flags["features"], _number(flags, "receive_metadata"), _number(flags, "socket"))
        for name, flags in _object(text).items()
        if isinstance(flags, dict) and _number(flags, "features") is not None
    }


def parse_received(text: str) -> dict[str, tuple[int, ...]]:
    """Frames of each receive queue, from 0 on, by interface, of what ``netdev_query.py queues`` prints; an interface
    whose driver does not tell the kernel is left out.
    """
    found: dict[str, tuple[int, ...]] = {}
    for name, queues in _object(text).items():
        if isinstance(queues, dict) and set(queues) == {str(number) for number in range(len(queues))}:
            frames = [_number(queues, str(number)) for number in range(len(queues))]
            if frames and None not in frames:
                found[name] = tuple(each or 0 for each in frames)
    return found


def parse_attempt(text: str) -> Attempt:
    """Of what ``live_frames_trial.py`` prints; unknown where it is nothing."""
    found = _object(text)
    works, reason = found.get("works"), found.get("reason")
    if not isinstance(works, bool):
        return Attempt(None)
    return Attempt(works, reason if isinstance(reason, str) else "")


def parse_kernel(release: str) -> Kernel | None:
    """``6.1.0-21-amd64`` is 6.1."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", release)
    return (int(found[1]), int(found[2])) if found else None


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(flags: Mapping[str, Any], name: str) -> int | None:
    value = flags.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
