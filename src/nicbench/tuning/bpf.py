"""XDP programs: compiled with clang when first needed, seen and detached with ip, their maps used with bpftool.

Nothing here knows what a program does. ``xdp.py`` attaches them, undo first.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nicbench.core.cache import cache_folder
from nicbench.core.errors import HostError, NotReadyError
from nicbench.engine.binaries import deploy_file
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost

_CLANG_FLAGS = ("-O2", "-g", "-Wall", "-Werror", "-target", "bpf")
_COMPILE_TIMEOUT_S = 60.0


async def compile_program(host: Host, source: Path, cache: Path | None = None) -> Path:
    """Compiles a BPF C file where it has not been compiled yet; gives its path on ``host``.

    The object's name holds a hash of the text and flags, so a changed source is compiled anew. NotReadyError where the
    cache cannot be written: a shared temporary folder is no way out, as root loads what lies there. For a host that is
    another machine it is compiled here, and copied: a host under test needs no compiler.
    """
    if host.shares_files:
        return await _compile(host, source, cache)
    return Path(await deploy_file(host, await _compile(LocalHost(), source, cache)))


async def _compile(host: Host, source: Path, cache: Path | None) -> Path:
    arguments = (*_CLANG_FLAGS, *_include_flags())
    try:
        folder = (cache or cache_folder()) / "bpf"
        target = _object_path(source, arguments, folder)
        if target.exists():
            return target
        folder.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f"{target.name}.{os.getpid()}")
        temporary.touch()
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        raise NotReadyError(
            f"compiled XDP programs cannot be kept: {error}",
            place=str(getattr(error, "filename", None) or "the cache folder"),
            next_step="set XDG_CACHE_HOME to a folder that you may write to",
        ) from error
    command = ("clang", *arguments, "-c", str(source), "-o", str(temporary))
    try:
        done = await host.run(command, timeout_s=_COMPILE_TIMEOUT_S, check=False)
        if done.status != 0:
            raise NotReadyError(
                f"clang cannot compile an XDP program: {done.stderr.strip()[-2000:]}",
                place=str(source),
                next_step="apt-get install clang libbpf-dev",
            )
        temporary.rename(target)
    finally:
        temporary.unlink(missing_ok=True)
    return target


def _include_flags() -> tuple[str, ...]:
    """asm/types.h stands in the multiarch folder, which clang does not search for the bpf target."""
    return tuple(f"-I{folder}" for folder in sorted(Path("/usr/include").glob("*-linux-gnu*")))


def _object_path(source: Path, arguments: tuple[str, ...], folder: Path) -> Path:
    digest = hashlib.sha256(source.read_bytes() + "\0".join(arguments).encode()).hexdigest()[:16]
    return folder / f"{source.name.removesuffix('.bpf.c')}-{digest}.o"


async def attached_program(host: Host, device: str) -> int | None:
    """Id of the XDP program on ``device``, None where there is none; HostError where the device does not exist."""
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
