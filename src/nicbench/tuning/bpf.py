"""BPF programs: brought to where they are needed and loaded with bpftool, seen and detached with ip.

Nothing here knows what a program does. ``xdp.py`` attaches them, undo first. A program is loaded by libbpf, and has its
name for bpftool and tc in a BPF file system of a mount namespace of its own, which ends with the command: ip(8) would
look for any that is mounted, and fails where that one is out of its reach.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nicbench.core.errors import HostError
from nicbench.engine.binaries import deploy_file, find_program
from nicbench.hosts.base import Host

_OWN = ("unshare", "--mount", "--propagation", "unchanged", "sh", "-ec")
_MOUNT = "mount --make-rprivate /sys; mount -t bpf bpf /sys/fs/bpf; "


def with_own_names(script: str, *arguments: str) -> tuple[str, ...]:
    """Returns the command that runs a script of sh (``$1``..) in whose ``/sys/fs/bpf`` names end with it."""
    return (*_OWN, _MOUNT + script, "sh", *arguments)


def with_program(program: Path, script: str, *arguments: str) -> tuple[str, ...]:
    """Returns the command that loads an object file of one program, and runs a script; ``$NAMED`` is the program."""
    load = "NAMED=/sys/fs/bpf/program; bpftool prog load $1 $NAMED; shift; "
    return with_own_names(load + script, str(program), *arguments)


def attachment(program: Path, device: str, mode: str, *, replaces: bool = False) -> tuple[str, ...]:
    """Returns the command that loads an XDP program and attaches it; ``replaces``: also in the place of another."""
    overwrite = " overwrite" if replaces else ""
    return with_program(program, f"bpftool net attach {mode} pinned $NAMED dev $1{overwrite}", device)


async def deploy_program(host: Host, name: str) -> Path:
    """Path on ``host`` of the BPF program whose source is ``NAME.bpf.c``, copied there where it is another machine.

    NotReadyError where it is not compiled, or cannot be put there.
    """
    return Path(await deploy_file(host, find_program(name)))


async def attached_program(host: Host, device: str) -> int | None:
    """Returns the id of the XDP program on ``device``, None without one; HostError if the device does not exist."""
    done = await host.run(("ip", "-j", "link", "show", "dev", device))
    return program_of_link(json.loads(done.stdout)[0])


def program_of_link(link: Mapping[str, Any]) -> int | None:
    """The program's id in one object of ``ip -j link``."""
    xdp = link.get("xdp")
    if not isinstance(xdp, dict):
        return None
    for entry in (xdp, *xdp.get("attached", ())):
        number = entry.get("prog", {}).get("id")
        if isinstance(number, int):
            return number
    return None


async def detach(host: Host, device: str, program_id: int | None = None) -> None:
    """Detaches, unless nothing is there or, with ``program_id``, something else is."""
    present = await attached_program(host, device)
    if present is None or program_id not in (None, present):
        return
    for mode in ("xdp", "xdpdrv", "xdpgeneric"):
        await host.run(("ip", "link", "set", "dev", device, mode, "off"), check=False)
        if await attached_program(host, device) is None:
            return
    raise HostError(f"the XDP program (id {present}) cannot be detached", place=device)


async def map_id(host: Host, program_id: int, name: str) -> int:
    """Id of the map called ``name`` of a loaded program. The kernel cuts names after 15 characters."""
    done = await host.run(("bpftool", "-j", "prog", "show", "id", str(program_id)))
    for number in json.loads(done.stdout).get("map_ids", ()):
        shown = await host.run(("bpftool", "-j", "map", "show", "id", str(number)))
        if json.loads(shown.stdout).get("name") == name[:15]:
            return int(number)
    raise HostError(f"XDP program {program_id} has no map called {name}", place=host.name)


async def write_map(
    host: Host, map_number: int, key: int, value: int, *, key_bytes: int = 4, value_bytes: int = 8
) -> None:
    """Writes one unsigned integer into an array or hash map."""
    command = ("bpftool", "map", "update", "id", str(map_number), "key", *_bytes(key, key_bytes))
    await host.run((*command, "value", *_bytes(value, value_bytes)))


async def read_map(host: Host, map_number: int, key: int, *, key_bytes: int = 4) -> int:
    """Reads one unsigned integer; in a per-CPU map the sum over the CPUs."""
    done = await host.run(("bpftool", "-j", "map", "lookup", "id", str(map_number), "key", *_bytes(key, key_bytes)))
    return value_of_lookup(done.stdout)


def value_of_lookup(text: str) -> int:
    """The number in the answer of ``bpftool -j map lookup``: a list of bytes in the machine's order."""
    return _value_of_entry(json.loads(text))


async def read_numbers(host: Host, map_number: int) -> tuple[int, ...]:
    """Reads a whole array of unsigned integers, in the order of its keys; in a per-CPU map the sums over the CPUs."""
    done = await host.run(("bpftool", "-j", "map", "dump", "id", str(map_number)))
    return values_of_dump(done.stdout)


def values_of_dump(text: str) -> tuple[int, ...]:
    """The numbers in the answer of ``bpftool -j map dump``, in the order of their keys."""
    numbers = {_number_of_bytes(entry["key"]): _value_of_entry(entry) for entry in json.loads(text)}
    return tuple(numbers[key] for key in sorted(numbers))


def _value_of_entry(entry: Mapping[str, Any]) -> int:
    return sum(_number_of_bytes(one["value"]) for one in entry.get("values", [entry]))


def _number_of_bytes(words: Sequence[str]) -> int:
    return int.from_bytes(bytes(int(word, 16) for word in words), sys.byteorder)


def _bytes(number: int, length: int) -> tuple[str, ...]:
    """``bpftool`` takes values byte by byte, in the machine's order; hex keeps it from reading octal."""
    return ("hex", *(f"{byte:02x}" for byte in number.to_bytes(length, sys.byteorder)))
